"""Requests of somebody who wants to disturb a server, each kind as a function of the server's address and a model's name."""

import json
import socket
import time
from urllib.parse import urlsplit

WAIT = 10  # seconds for an answer


def connect(address):
    url = urlsplit(address)
    return socket.create_connection((url.hostname, url.port), timeout=WAIT)


def head(method="POST", path="/v1/completions", **fields):
    lines = {"Host": "localhost", "Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in fields.items()}}
    return (f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode()


def send(address, data, answer=True):
    """Sends bytes and reads what comes back until the server closes or `WAIT` has passed."""
    with connect(address) as connection:
        connection.sendall(data)
        while answer and connection.recv(1 << 16):
            pass


def post(address, path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    send(address, head(path=path, Content_Length=len(data), Connection="close") + data)


def hold(address, n, data, seconds=5):
    """Opens `n` connections, sends the same bytes on each, and keeps them open."""
    connections = []
    try:
        for _ in range(n):
            connections.append(connect(address))
            connections[-1].sendall(data)
        time.sleep(seconds)
    finally:
        for connection in connections:
            connection.close()


def dripping(address, data, pause=0.2):
    with connect(address) as connection:
        for i in range(len(data)):
            connection.sendall(data[i : i + 1])
            time.sleep(pause)


def leaving(address, data, more=b""):
    """Six clients that ask for a long text and leave, some with a byte more than their request."""
    for _ in range(6):
        with connect(address) as connection:
            connection.sendall(data + more)
    time.sleep(0.2)


def request(address, name, **keys):
    post(address, "/v1/completions", {"model": name, "prompt": "a b c", "max_tokens": 64, **keys})


def whole(name, **keys):
    data = json.dumps({"model": name, "prompt": "a b c", "max_tokens": 1024, **keys}).encode()
    return head(Content_Length=len(data)) + data


def nested(depth):
    return b"[" * depth + b"]" * depth


def schema(**keys):
    return {"json_schema": {"type": "object", **keys}}


KINDS = {
    "bodies that never end": lambda a, m: hold(a, 40, head(Content_Length=31 << 20) + b"{" * (1 << 20)),
    "1,030 heads with one byte": lambda a, m: hold(a, 1030, head(Content_Length=1000) + b"{"),
    "heads that drip": lambda a, m: dripping(a, head()),
    "bodies that drip": lambda a, m: dripping(a, head(Content_Length=20) + b'{"model": 1, "x": 2}'),
    "readers that take nothing": lambda a, m: hold(a, 6, whole(m, stream=True, n=4)),
    "clients that leave": lambda a, m: leaving(a, whole(m, n=4)),
    "clients that send a byte more and leave": lambda a, m: leaving(a, whole(m, n=4), b"x"),
    "bytes that are no HTTP": lambda a, m: send(a, bytes(range(256)) * 64),
    "a head of a megabyte": lambda a, m: send(a, head(X="y" * (1 << 20))),
    "ten thousand lines in a head": lambda a, m: send(a, head(**{f"X{i}": i for i in range(10000)})),
    "a request in another coding": lambda a, m: send(a, head(Transfer_Encoding="xchunked") + b"5\r\nhello\r\n0\r\n\r\n"),
    "a chunk of 2^60 bytes": lambda a, m: send(a, head(Transfer_Encoding="chunked") + b"fffffffffffffff\r\nx"),
    "requests in a row without reading": lambda a, m: send(a, head("GET", "/metrics") * 1000, answer=False),
    "connections without a word": lambda a, m: hold(a, 500, b"", 1),
    "unknown methods with bodies": lambda a, m: send(a, head("BREW", Content_Length=5, Connection="close") + b"hello"),
    "JSON nested 100,000 deep": lambda a, m: post(a, "/v1/completions", nested(100_000)),
    "a number of a megabyte": lambda a, m: post(a, "/v1/completions", b'{"seed": ' + b"9" * (1 << 20) + b"}"),
    "prompts that are no text": lambda a, m: request(a, m, prompt="\ud800\u0000" * 1000),
    "a prompt beyond the model": lambda a, m: request(a, m, prompt="a " * 500_000),
    "ids beyond the vocabulary": lambda a, m: request(a, m, prompt=[-1, 1 << 40]),
    "a thousand prompts": lambda a, m: request(a, m, prompt=["a b c"] * 1000),
    "as many outputs as go": lambda a, m: request(a, m, n=64, max_tokens=512),
    "a penalty that ends in infinity": lambda a, m: request(a, m, repetition_penalty=1e-300),
    "every token suppressed": lambda a, m: request(a, m, logit_bias={str(i): -100 for i in range(5000)}),
    "extremes of every number": lambda a, m: request(a, m, temperature=2, top_p=1e-308, top_k=1, frequency_penalty=2,
                                                     presence_penalty=-2, typical_p=1e-308, min_p=1),
    "stop texts of a megabyte": lambda a, m: request(a, m, stop=["x" * (1 << 20)] * 4),
    "an expression of nine times 9,999": lambda a, m: request(a, m, regex="([a-z ]?){9999}" * 9),
    "an expression with a million states": lambda a, m: request(a, m, regex="(a|b|ab|ba){1,999}" * 20),
    "a schema with a million values": lambda a, m: request(a, m, json_schema={"enum": list(range(1_000_000))}),
    "a schema that contains itself": lambda a, m: request(
        a, m, json_schema={"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}),
    "a schema of a thousand members": lambda a, m: request(
        a, m, **schema(properties={f"k{i}": {"type": "string"} for i in range(1000)})),
    "two thousand texts to embed": lambda a, m: post(a, "/v1/embeddings", {"model": m, "input": ["a b c " * 40] * 2000}),
    "attention of long texts": lambda a, m: post(a, "/attention", {"model": m, "text": "a b c " * 60}),
}
