"""Clients that ask a server of OpenAI's completions in a stream, with the standard library alone."""

import asyncio
import json
import random
import resource
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """A prompt of single letters, which has a token for each, and how many tokens are written."""

    prompt: str
    new: int


@dataclass
class Answer:
    """`moments`: when the request was sent, and when each piece of text came."""

    moments: list = field(default_factory=list)
    text: str = ""
    tokens: int = 0


def mixed_requests(n, shortest, longest, least_new, most_new):
    """Requests whose lengths differ evenly on a logarithmic scale, the same each time."""
    draw = random.Random(1)

    def between(least, most):
        return round(least * (most / least) ** draw.random())

    return [
        Request(
            " ".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=between(shortest, longest))), between(least_new, most_new)
        )
        for _ in range(n)
    ]


async def lines_of(reader, is_chunked):
    """The lines of a body, whose chunks may end anywhere."""
    rest = b""
    while True:
        if is_chunked:
            size = int((await reader.readline()).split(b";")[0] or b"0", 16)
            piece = await reader.readexactly(size) if size else b""
            await reader.readline()
        else:
            piece = await reader.read(1 << 16)
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
        if not piece:
            return


async def ask(address, request, extra):
    """Sends one request and reads its stream to the end."""
    url = urlsplit(address)
    body = {
        "prompt": request.prompt,
        "max_tokens": request.new,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **{name: value(request) for name, value in extra.items()},
    }
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    answer = Answer([time.monotonic()])
    try:
        writer.write(head.encode() + data)
        await writer.drain()
        status = (await reader.readline()).decode().strip()
        headers = {}
        while line := (await reader.readline()).decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip().lower()
        is_finished = False
        async for line in lines_of(reader, headers.get("transfer-encoding") == "chunked"):
            if " 200 " not in status + " ":
                raise RuntimeError(f"the server answered {status}: {line.decode(errors='replace')[:200]}")
            if not line.startswith(b"data:"):
                continue
            if line.strip() == b"data: [DONE]":
                is_finished = True
                break
            event = json.loads(line[5:])
            if "error" in event:
                raise RuntimeError(f"the server broke off: {event['error'].get('message')}")
            answer.tokens = (event.get("usage") or {}).get("completion_tokens", answer.tokens)
            for choice in event["choices"]:
                answer.text += choice.get("text", "")
                if not choice.get("finish_reason") or choice.get("text"):
                    answer.moments.append(time.monotonic())
        if not is_finished:
            raise RuntimeError("the server ended a stream in its middle")
    finally:
        writer.close()
    return answer


def quantile(values, share):
    """The smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def load(address, requests, n_clients, extra):
    """All requests by `n_clients` clients, each of which asks when it has its answer. `extra` are keys of a request, each with
    a function of the request. Returns figures and the texts."""

    async def run():
        answers, waiting = [None] * len(requests), list(reversed(range(len(requests))))

        async def client():
            while waiting:
                i = waiting.pop()
                answers[i] = await ask(address, requests[i], extra)

        async with asyncio.TaskGroup() as group:
            for _ in range(n_clients):
                group.create_task(client())
        return answers

    begin, processor = time.monotonic(), cpu_seconds()
    try:
        answers = asyncio.run(run())
    except BaseExceptionGroup as problems:
        raise RuntimeError(str(problems.exceptions[0])) from None
    seconds = time.monotonic() - begin
    # An output that ends within its first character has no event with a text.
    first = [answer.moments[1] - answer.moments[0] for answer in answers if len(answer.moments) > 1]
    between = [b - a for answer in answers for a, b in zip(answer.moments[1:], answer.moments[2:])]
    wrong = [(answer.tokens, request.new) for answer, request in zip(answers, requests) if answer.tokens != request.new]
    if wrong:
        raise RuntimeError(
            f"{len(wrong)} of {len(requests)} answers have another length, such as {wrong[0][0]} for {wrong[0][1]} tokens"
        )
    tokens = sum(answer.tokens for answer in answers)
    return {
        "requests": len(requests), "seconds": seconds, "tokens": tokens, "tokens_per_second": tokens / seconds,
        "requests_per_second": len(requests) / seconds, "client_cpus": (cpu_seconds() - processor) / seconds,
        "first_median": quantile(first, 0.5), "first_p99": quantile(first, 0.99),
        "between_median": quantile(between, 0.5), "between_p99": quantile(between, 0.99),
    }, [answer.text for answer in answers]  # fmt: skip


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
