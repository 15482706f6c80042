#!/usr/bin/env python3
"""OpenAI's own client for Python with `zoo serve`: models, completions, streams, log-probabilities, chats, JSON schemas, tools,
embeddings, transcriptions, and errors.

    openai_client.py ZOO

What a stream says is what an answer in one piece says; a text that is scored gets the log-probabilities that it had when it was
written; `zoo generate` says the same; a seed repeats a text. Exit code without the packages: 77, or 1 if ZOO_REQUIRE_REFERENCES is
set.
"""

import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "parity")]
from references_python import SKIPPED, begin  # noqa: E402

begin()
try:
    import jsonschema
    import openai
except ModuleNotFoundError as missing:
    print(f"{missing}: scripts/setup.sh --tests installs it")
    sys.exit(1 if "ZOO_REQUIRE_REFERENCES" in os.environ else SKIPPED)
from models import make_models  # noqa: E402
from server import serving  # noqa: E402

KEY = "a key of the test"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "size": {"enum": ["small", "large", 7]},
        "red": {"type": "boolean"},
    },
    "required": ["name", "size", "red"],
    "additionalProperties": False,
}
ORDER = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1, "maximum": 12},
        "price": {"type": "number", "exclusiveMinimum": 0, "maximum": 100},
        "day": {"type": "string", "format": "date"},
    },
    "required": ["n", "price", "day"],
    "additionalProperties": False,
}


def check(condition, what):
    if not condition:
        sys.exit(f"openai_client.py: {what}")


def check_close(a, b, what, tolerance=2e-3):
    check(len(a) == len(b) and all(math.isclose(x, y, abs_tol=tolerance) for x, y in zip(a, b)), f"{what}: {a} and {b}")


def check_models(client, names):
    listed = client.models.list().data
    check({model.id for model in listed} == set(names), f"the models are {[model.id for model in listed]}")
    check(client.models.retrieve("gpt").id == "gpt", "a model cannot be asked for")
    check(all(model.object == "model" and model.owned_by == "transformer-zoo" for model in listed), f"{listed}")


def check_completions(client):
    greedy = client.completions.create(model="gpt", prompt="it was", max_tokens=12, temperature=0, logprobs=3)
    choice = greedy.choices[0]
    check(choice.finish_reason == "length" and greedy.usage.completion_tokens == 12, f"{greedy}")
    check("".join(choice.logprobs.tokens) == choice.text, f"the tokens {choice.logprobs.tokens} are not {choice.text!r}")
    check(
        all(max(top.values()) <= log + 1e-6 for top, log in zip(choice.logprobs.top_logprobs, choice.logprobs.token_logprobs)),
        "a greedy token is not the likeliest",
    )
    check(all(len(top) == 3 for top in choice.logprobs.top_logprobs), f"{choice.logprobs.top_logprobs}")
    # The same as a stream.
    events = list(
        client.completions.create(
            model="gpt",
            prompt="it was",
            max_tokens=12,
            temperature=0,
            logprobs=3,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    pieces = [event.choices[0] for event in events if event.choices]
    check("".join(piece.text for piece in pieces) == choice.text, "the stream writes another text")
    check(pieces[-1].finish_reason == "length" and all(piece.finish_reason is None for piece in pieces[:-1]), f"{pieces}")
    streamed = [log for piece in pieces if piece.logprobs for log in piece.logprobs.token_logprobs]
    check_close(streamed, choice.logprobs.token_logprobs, "log-probabilities of the stream")
    check(events[-1].usage.completion_tokens == 12 and len(pieces) > 6, f"{events[-1]}")
    # Scored again as a given text.
    scored = client.completions.create(model="gpt", prompt="it was" + choice.text, max_tokens=0, echo=True, logprobs=0).choices[
        0
    ]
    check(scored.text == "it was" + choice.text, f"the echo is {scored.text!r}")
    # Ids of the model's own: the text of tokens need not become the same tokens again.
    ids = scored.logprobs.token_ids
    again = client.completions.create(model="gpt", prompt=ids, max_tokens=0, echo=True, logprobs=0).choices[0].logprobs
    check(again.token_ids == ids and again.token_logprobs[0] is None, f"ids {ids} are read as {again}")
    check_close(again.token_logprobs[1:], scored.logprobs.token_logprobs[1:], "log-probabilities of ids")
    if scored.logprobs.token_ids[-12:] == choice.logprobs.token_ids:  # else the text has other tokens than were written
        check_close(
            scored.logprobs.token_logprobs[-12:], choice.logprobs.token_logprobs, "log-probabilities of the text that is scored"
        )
    return choice


def check_sampling(client):
    def write(**options):
        return client.completions.create(model="letters", prompt="it", max_tokens=20, **options)

    a, b, c = (write(seed=seed).choices[0].text for seed in (1, 1, 2))
    check(a == b and a != c, f"seeds give {a!r}, {b!r}, {c!r}")
    three = write(seed=1, n=3)
    check(
        [choice.index for choice in three.choices] == [0, 1, 2] and len({choice.text for choice in three.choices}) > 1,
        f"{three}",
    )
    check(three.usage.completion_tokens == 60, f"{three.usage}")
    several = client.completions.create(model="letters", prompt=["it", "the"], max_tokens=3, temperature=0, echo=True)
    check([choice.text[:2] for choice in several.choices] == ["it", "th"], f"{several}")
    whole, stop = (text := write(temperature=0).choices[0].text), text[3:5]
    stopped = write(temperature=0, stop=[stop, "zz"]).choices[0]
    check(
        stopped.text == whole[: whole.find(stop)] and stopped.finish_reason == "stop", f"{whole!r} until {stop!r} is {stopped}"
    )
    first = write(temperature=0, logprobs=1).choices[0].logprobs.token_ids[0]
    other = write(temperature=0, logit_bias={str(first): -100}, logprobs=1).choices[0].logprobs.token_ids[0]
    check(first != other, "a forbidden token was written")
    words = write(temperature=1, seed=4, extra_body={"regex": "(ab|cd){4}"}).choices[0].text
    check(len(words) == 8 and set(words) <= set("abcd"), f"the expression wrote {words!r}")


def check_chat(client):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "it was a"}]
    whole = client.chat.completions.create(
        model="chat", messages=messages, max_tokens=10, temperature=0, logprobs=True, top_logprobs=2
    )
    choice = whole.choices[0]
    check(choice.message.role == "assistant" and whole.usage.completion_tokens <= 10, f"{whole}")
    check("".join(each.token for each in choice.logprobs.content) == choice.message.content, f"{choice}")
    check(all(len(each.top_logprobs) == 2 for each in choice.logprobs.content), f"{choice.logprobs}")
    events = list(
        client.chat.completions.create(
            model="chat", messages=messages, max_tokens=10, temperature=0, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [event.choices[0].delta for event in events if event.choices]
    check(deltas[0].role == "assistant", f"a stream begins with {deltas[0]}")
    check(
        "".join(delta.content or "" for delta in deltas) == choice.message.content, "the stream of a chat says something else"
    )
    check(events[-1].usage.completion_tokens == whole.usage.completion_tokens, f"{events[-1]}")
    # A chat is the completion of what the template writes.
    prompt = "system: Be brief.\nuser: it was a\nassistant: "
    plain = client.completions.create(model="chat", prompt=prompt, max_tokens=10, temperature=0)
    check(plain.choices[0].text == choice.message.content, f"{plain.choices[0].text!r} and {choice.message.content!r}")
    for seed in range(3):
        answer = client.chat.completions.create(
            model="chat",
            messages=messages,
            max_tokens=200,
            seed=seed,
            temperature=1,
            response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}},
        )
        check(answer.choices[0].finish_reason == "stop", f"{answer}")
        jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMA)
    made = client.chat.completions.create(
        model="chat", messages=messages, max_tokens=120, seed=1, response_format={"type": "json_object"}
    )
    if made.choices[0].finish_reason == "stop":
        check(isinstance(json.loads(made.choices[0].message.content), dict), f"{made}")


def check_tools(client):
    asked = {
        "model": "chat",
        "messages": [{"role": "user", "content": "it was a"}],
        "tools": [{"type": "function", "function": {"name": "order", "description": "Orders it.", "parameters": ORDER}}],
        "tool_choice": "required",
        "max_tokens": 200,
        "temperature": 1,
    }
    for seed in range(3):
        choice = client.chat.completions.create(**asked, seed=seed).choices[0]
        check(choice.finish_reason == "tool_calls" and choice.message.content is None, f"{choice}")
        call = choice.message.tool_calls[0].function
        arguments = json.loads(call.arguments)
        jsonschema.validate(arguments, ORDER)
        datetime.date.fromisoformat(arguments["day"])
        events = list(client.chat.completions.create(**asked, seed=seed, stream=True))
        parts = [part.function for event in events for part in event.choices[0].delta.tool_calls or []]
        check([part.name for part in parts] == ["order"] and parts[0].arguments == call.arguments, f"{parts} and {call}")
        check(events[-1].choices[0].finish_reason == "tool_calls", f"{events[-1]}")
    plain = client.chat.completions.create(**{**asked, "tool_choice": "none"}).choices[0]
    check(plain.message.tool_calls is None, f"{plain}")


def check_responses(client):
    asked = {"model": "chat", "instructions": "Be brief.", "input": "it was a", "max_output_tokens": 10, "temperature": 0}
    whole = client.responses.create(**asked)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "it was a"}]
    chat = client.chat.completions.create(model="chat", messages=messages, max_tokens=10, temperature=0).choices[0]
    check(whole.output_text == chat.message.content, f"{whole} and {chat}")
    check(whole.status in ("completed", "incomplete") and whole.usage.output_tokens <= 10, f"{whole}")
    events = list(client.responses.create(**asked, stream=True))
    types = [event.type for event in events]
    check(types[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                        "response.content_part.added"], f"{types}")  # fmt: skip
    check(types[-4:-1] == ["response.output_text.done", "response.content_part.done", "response.output_item.done"], f"{types}")
    check(types[-1] == f"response.{whole.status}", f"{types}")
    check([event.sequence_number for event in events] == list(range(len(events))), f"{events}")
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    check(text == whole.output_text == events[-1].response.output_text, f"{text!r}")
    # The server keeps the conversation.
    more = client.responses.create(model="chat", input="so", previous_response_id=whole.id, max_output_tokens=5, temperature=0)
    turns = [{"role": "user", "content": "it was a"}, {"role": "assistant", "content": whole.output_text},
             {"role": "user", "content": "so"}]  # fmt: skip
    again = client.responses.create(model="chat", input=turns, max_output_tokens=5, temperature=0)
    check(more.output_text == again.output_text, f"{more.output_text!r} and {again.output_text!r}")
    check(client.responses.retrieve(whole.id).output_text == whole.output_text, "a response that is kept is another one")
    client.responses.delete(whole.id)
    for lost in (lambda: client.responses.retrieve(whole.id),
                 lambda: client.with_options(api_key="another").responses.retrieve(more.id)):  # fmt: skip
        try:
            check(False, f"{lost()} is not lost")
        except (openai.NotFoundError, openai.AuthenticationError):
            pass
    form = {"format": {"type": "json_schema", "name": "person", "schema": SCHEMA, "strict": True}}
    made = client.responses.create(model="chat", input="it was a", max_output_tokens=200, extra_body={"seed": 1}, text=form)
    check(made.status == "completed", f"{made}")
    jsonschema.validate(json.loads(made.output_text), SCHEMA)
    tools = [{"type": "function", "name": "order", "description": "Orders it.", "parameters": ORDER, "strict": True}]
    called = client.responses.create(model="chat", input="it was a", tools=tools, tool_choice="required", max_output_tokens=200)
    call = called.output[0]
    check(call.type == "function_call" and call.name == "order", f"{called}")
    jsonschema.validate(json.loads(call.arguments), ORDER)
    answered = client.responses.create(
        model="chat", previous_response_id=called.id, max_output_tokens=5, tools=tools,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "done"}],
    )  # fmt: skip
    check(answered.status in ("completed", "incomplete"), f"{answered}")


def check_embeddings(client):
    texts = ["it was red", "it was blue and old"]
    floats = client.embeddings.create(model="bert", input=texts, encoding_format="float")
    packed = client.embeddings.create(model="bert", input=texts)  # the client asks for base64 and unpacks it
    for a, b in zip(floats.data, packed.data):
        check(a.index == b.index and len(a.embedding) == 32, f"{a}")
        check_close(a.embedding, b.embedding, "embeddings in base64", 1e-5)
    alone = client.embeddings.create(model="bert", input=texts[0], encoding_format="float").data[0].embedding
    check_close(alone, floats.data[0].embedding, "the embedding beside others", 1e-4)
    check(floats.usage.prompt_tokens > 0, f"{floats.usage}")


def check_transcriptions(client, zoo, folder):
    """What is said in recordings, as `zoo predict` says it."""
    for i in (0, 5):
        path = folder / f"sounds/{i}.wav"
        command = [zoo, "predict", folder / "speech", "--audio", path, "--device", "cpu"]
        expected = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        with path.open("rb") as file:
            answer = client.audio.transcriptions.create(model="speech", file=file)
        check(answer.text + "\n" == expected, f"the server hears {answer.text!r}, zoo predict {expected!r}")
        check(answer.usage.type == "duration" and 0.2 < answer.usage.seconds < 1, f"{answer.usage}")
        text = client.audio.transcriptions.create(
            model="speech", file=("another name;\".wav", path.read_bytes()), response_format="text", temperature=0
        )
        check(text == expected, f"as text it hears {text!r}, not {expected!r}")
    for wrong in ({"file": b"ID3 no recording"}, {"response_format": "verbose_json"}, {"language": "de"}, {"prompt": "a"}):
        try:
            client.audio.transcriptions.create(**{"model": "speech", "file": path.read_bytes(), **wrong})
        except openai.BadRequestError as error:
            check("\n" not in error.body["message"], f"{wrong}: {error.body['message']!r}")
        else:
            check(False, f"{wrong} is not refused")


def check_errors(client, address):
    def expect(kind, what, call):
        try:
            call()
        except kind as error:
            message = error.body["message"]
            check("\n" not in message and len(message) > 10, f"{what}: {message!r}")
        else:
            check(False, f"{what} raises no {kind.__name__}")

    ask = client.completions.create
    expect(openai.NotFoundError, "a model that is not there", lambda: ask(model="none", prompt="a"))
    expect(openai.BadRequestError, "a temperature of -1", lambda: ask(model="gpt", prompt="a", temperature=-1))
    expect(openai.BadRequestError, "a prompt that is too long", lambda: ask(model="gpt", prompt="it was " * 2000))
    expect(
        openai.BadRequestError,
        "a regular expression that is none",
        lambda: ask(model="gpt", prompt="a", extra_body={"regex": "("}),
    )
    expect(
        openai.BadRequestError,
        "a chat without a template",
        lambda: client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "a"}]),
    )
    expect(
        openai.BadRequestError,
        "a schema that is none",
        lambda: client.chat.completions.create(
            model="chat",
            messages=[{"role": "user", "content": "a"}],
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}},
        ),
    )
    wrong = openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0)
    expect(openai.AuthenticationError, "a wrong key", wrong.models.list)


def check_program(zoo, folder, written):
    """`zoo generate` writes the same with the same log-probabilities."""
    command = [zoo, "generate", folder / "gpt", "--prompt", "it was", "--max-new-tokens", "12", "--temperature", "0", "--json"]
    output = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["results"][0]["outputs"][0]
    check(output["text"] == written.text, f"zoo generate writes {output['text']!r}, the server {written.text!r}")
    check_close(written.logprobs.token_logprobs, output["logprobs"], "log-probabilities of zoo generate")


def main(zoo):
    with tempfile.TemporaryDirectory(prefix="zoo-serving-") as name:
        folder, names = Path(name), ["gpt", "letters", "bert", "speech", "chat"]
        models = make_models(zoo, folder, names)
        with serving(zoo, models.values(), "--api-key", KEY) as address:
            client = openai.OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0, timeout=120)
            check_models(client, names)
            written = check_completions(client)
            check_sampling(client)
            check_chat(client)
            check_tools(client)
            check_responses(client)
            check_embeddings(client)
            check_transcriptions(client, zoo, folder)
            check_errors(client, address)
        check_program(zoo, folder, written)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
