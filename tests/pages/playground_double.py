"""A server that answers like `zoo serve`, without models: every answer follows from the request by simple rules, so a test
knows what the page has to show. It serves the page itself, too.

A prompt or text that begins with “fail:” is refused. The stream of one that begins with “break:” ends in its middle, that of
“error:” with an error.
The model “slow” writes a token in a tenth of a second. What is said in a recording is how long it is and whether it is silent.
"""

import base64
import json
import math
import re
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MARKUP = '<img src=x onerror="window.wasRun = 1">'  # a token that must stay text
WORDS = [" the", " a", " dog", " house", " snow", " runs", " sleeps", " in", " and", ".", "\n", MARKUP, " red", " old"]
CAN = {
    "gpt": ["completions", "attention", "embeddings", "causes"], "gpt-large": ["completions", "attention", "causes", "trained_lens"],
    "slow": ["completions"], "chat": ["completions", "chat"], "bert": ["fill", "attention", "embeddings", "causes"],
    "reviews": ["predict_text", "causes"], "names": ["predict_text"], "de-en": ["completions", "translate", "attention", "causes"],
    "fashion": ["predict_image", "attention", "causes"], "canvases": ["predict_image", "attention"],
    "listener": ["transcribe", "predict_recording"], "loudness": ["predict_recording"],
    "folder": ["fold"], "sure-folder": ["fold"],
}  # fmt: skip
HEADS, LAYERS = 4, 2


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def pieces_of(text):
    return re.findall(r"\n| ?[^\s]+|\s", text)


def form_fields(body, content_type):
    """The parts of a form by name: texts, and files as bytes."""
    boundary = b"--" + content_type.partition("boundary=")[2].encode()
    fields = {}
    for part in body.split(boundary)[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb' name="([^"]*)"', head)[1].decode()
        fields[name] = content if b"filename=" in head else content.decode()
    return fields


def samples_of(wav):
    """The rate and the samples of a WAV file of 16 bits in one channel."""
    if wav[:4] != b"RIFF" or wav[8:12] != b"WAVE":
        raise Refused(400, "the recording: this is no WAV or FLAC file")
    rate = struct.unpack_from("<I", wav, 24)[0]
    return rate, struct.unpack(f"<{(len(wav) - 44) // 2}h", wav[44:])


class Vocabulary:
    """Ids of tokens: those of WORDS first, others as they come."""

    def __init__(self):
        self.tokens = list(WORDS)

    def id_of(self, token):
        if token not in self.tokens:
            self.tokens.append(token)
        return self.tokens.index(token)


def probability_of(token_id, previous, model):
    """Between 0.002 and 0.9, the same each time."""
    return 0.002 + 0.898 * (math.sin(13 * token_id + 7 * previous + len(model)) / 2 + 0.5) ** 3


class Double:
    def __init__(self, page, policy, key=None, models=None):
        self.page, self.policy, self.key = page, policy, key
        self.models = list(CAN) if models is None else models
        self.vocabulary = Vocabulary()
        self.requests = []  # (path, body)
        self.cancelled = threading.Event()  # a reader left a stream
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                double.answer(self, None)

            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                body, kind = self.rfile.read(length), self.headers.get("Content-Type", "")
                double.answer(self, form_fields(body, kind) if kind.startswith("multipart/form-data") else json.loads(body))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    # ---- HTTP ----------------------------------------------------------------------------------------------------------

    def answer(self, handler, body):
        path = handler.path
        if path == "/":
            headers = {"Content-Security-Policy": self.policy, "X-Content-Type-Options": "nosniff"}
            return self.send(handler, 200, self.page.encode(), "text/html; charset=utf-8", headers)
        self.requests.append((path, body))
        try:
            if self.key and handler.headers.get("Authorization") != f"Bearer {self.key}":
                raise Refused(401, "the key is missing or wrong")
            result = self.result(path, body)
        except Refused as refused:
            error = {"error": {"message": str(refused), "type": "invalid_request_error", "param": None, "code": None}}
            return self.send(handler, refused.status, json.dumps(error).encode())
        if isinstance(result, dict):
            return self.send(handler, 200, json.dumps(result).encode())
        return self.stream(handler, result)

    def send(self, handler, status, body, kind="application/json", headers=None):
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def stream(self, handler, events):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        try:
            for event in events:
                if event is None:
                    return  # it breaks
                handler.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                handler.wfile.flush()
            handler.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.cancelled.set()

    # ---- What is answered ----------------------------------------------------------------------------------------------

    def result(self, path, body):
        if path == "/v1/models":
            return {"object": "list", "data": [self.model(name) for name in self.models]}
        text = body.get("prompt") or body.get("text") or (body.get("texts") or [""])[0]
        if body.get("model") not in self.models:
            raise Refused(404, f"there is no model {body.get('model')}")
        if isinstance(text, str) and text.startswith("fail:"):
            raise Refused(400, f"the text is refused: {text[5:]}")
        answers = {
            "/v1/completions": self.completion,
            "/v1/chat/completions": self.chat,
            "/fill": self.fill,
            "/translate": self.translate,
            "/predict": self.predict,
            "/fold": self.fold,
            "/v1/audio/transcriptions": self.transcription,
            "/attention": self.attention,
            "/slices": self.slices,
            **{path: lambda body, path=path: self.causes(path, body) for path in ("/lens", "/attribute", "/ablate", "/patch")},
        }
        if path not in answers:
            raise Refused(404, f"there is no {path}")
        return answers[path](body)

    def model(self, name):
        return {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "transformer-zoo",
            "zoo": {
                "task": "language_modeling",
                "family": "gpt2",
                "parameters": 10_795_776,
                "max_length": 256,
                "can": CAN[name],
                **({"max_seconds": 5} if "predict_recording" in CAN[name] else {}),
            },
        }

    def slices(self, body):
        """Two slices of a text in two parts. The second model is better at one of them."""
        verdict = {"value": 2.5, "difference": -0.5, "low": -0.7, "high": -0.3, "n": 2, "p_corrected": 0.01, "verdict": "better"}
        has_baseline = body.get("baseline") is not None
        parts = {"bits": [[1.0, 2.0]] * 19, "bytes": [[8.0, 8.0]] * 19}
        if has_baseline and body["baseline"] != parts:
            raise Refused(400, "the baseline is no answer of this server")
        rows = [("novelty", "new words", 0.25, verdict), ("characters", "digits", 0.125, None)]
        return {
            "object": "slices",
            "model": body["model"],
            "bytes": len(body["text"].encode()),
            "tokens": 4,
            "bits_per_byte": 1.875,
            "slices": [
                {"kind": kind, "name": name, "share": share, "bits_per_byte": 2.0, "baseline": test if has_baseline else None}
                for kind, name, share, test in rows
            ],
            "parts": parts,
        }

    def causes(self, path, body):
        """What a page draws of an answer; the numbers follow from the places in a table."""

        def grid(title, corner, rows, columns, names=None):
            values = [[round(0.9 - 0.11 * i - 0.07 * j, 3) for j in range(len(columns))] for i in range(len(rows))]
            texts = [[names[(i + j) % len(names)] for j in range(len(columns))] for i in range(len(rows))] if names else []
            hints = [[f"{corner} {row}: {text}" for text in line] for row, line in zip(rows, texts)]
            return {"title": title, "note": "Of a double.", "corner": corner, "rows": rows, "columns": columns,
                    "values": values, "texts": texts, "hints": hints}  # fmt: skip

        def signed(n):
            return [round((-1) ** i * 0.1 * (i + 1), 2) for i in range(n)]

        def bars(names):
            items = [{"name": name, "value": value} for name, value in zip(names, signed(len(names)))]
            return [{"title": "Parts", "note": "Of a double.", "items": items}]

        view = {"kind": path, "name": body["model"], "title": "", "summary": f"{path} of {body['model']}.", "grids": [], "bars": []}
        layers, heads = [str(i) for i in reversed(range(LAYERS))], [str(i) for i in range(HEADS)]
        if "image" in body:
            width, height = png_size(body["image"])
            places = [f"row {i // 2} column {i % 2}" for i in range(4)]
            part = [width / 4, 0, width / 2, height]
            if path == "/attribute":
                view["pictures"] = [{"title": "Parts of the picture", "note": "Of a double.", "rows": 2, "columns": 2,
                                     "values": [signed(4)[:2], signed(4)[2:]], "part": part}]  # fmt: skip
                return {"view": {**view, "bars": bars(places)}}
            return {"view": {**view, "grids": [grid("After each layer", "depth", layers, ["answer"])]}}
        tokens = (body["clean"] if path == "/patch" else body["text"]).split()
        if path == "/lens":
            view["grids"] = [grid("After each layer", "depth", ["2", *layers], tokens, [MARKUP, "cold", "late"])]
            view["bars"] = bars(["embedding", MARKUP])
        elif path == "/attribute":
            sides = [("Source", tokens), ("Target", body["target"].split())] if "target" in body else [("Tokens", tokens)]
            view["texts"] = [{"title": title, "note": "Of a double.", "tokens": side, "values": signed(len(side)), "most": 1.0}
                             for title, side in sides]  # fmt: skip
            view["bars"] = bars(tokens)
        elif path == "/ablate":
            view["grids"] = [grid("Without a head", "layer", layers, heads)]
        else:
            if len(tokens) != len(body["corrupt"].split()):
                raise Refused(400, f"the clean text has {len(tokens)} tokens and the corrupted one another number")
            view["grids"] = [grid("Heads", "layer", layers, heads), grid("Residual streams", "before layer", layers, tokens)]
        return {"view": view}

    def logprobs(self, ids, previous, model):
        tokens, log, top = [], [], []
        for token_id in ids:
            probability = None if previous is None else probability_of(token_id, previous, model)
            others = [(i, probability_of(i, previous or 0, model)) for i in range(len(WORDS))]
            if probability is not None:
                others = list({**dict(others), token_id: probability}.items())
            others = sorted(others, key=lambda pair: -pair[1])[:8]
            tokens.append(self.vocabulary.tokens[token_id])
            log.append(None if probability is None else math.log(probability))
            top.append([{"id": i, "token": self.vocabulary.tokens[i], "logprob": math.log(p)} for i, p in others])
            previous = token_id
        return {
            "tokens": tokens,
            "token_logprobs": log,
            "token_ids": ids,
            "top": top,
            "text_offset": [0] * len(ids),
            "top_logprobs": [{each["token"]: each["logprob"] for each in row} for row in top],
        }

    def next_id(self, previous, seed):
        return (5 * previous + 3 + seed) % len(WORDS)

    def completion(self, body):
        prompt, model = body["prompt"], body["model"]
        ids = prompt if isinstance(prompt, list) else [self.vocabulary.id_of(piece) for piece in pieces_of(prompt)]
        if any(i >= len(self.vocabulary.tokens) for i in ids):
            raise Refused(400, "prompt: there is no such token")

        def event(ids, previous, end=None):
            text = "".join(self.vocabulary.tokens[i] for i in ids)
            return {
                "id": "cmpl-1",
                "object": "text_completion",
                "created": 0,
                "model": model,
                "choices": [{"index": 0, "text": text, "logprobs": self.logprobs(ids, previous, model), "finish_reason": end}],
            }

        def events():
            n = body.get("max_tokens", 16)
            if ids:
                yield event(ids, None, "length" if n == 0 else None)
            previous = ids[-1] if ids else 0
            for i in range(n):
                if isinstance(prompt, str) and prompt.startswith("break:") and i == 2:
                    yield None
                if isinstance(prompt, str) and prompt.startswith("error:") and i == 2:
                    yield {"error": {"message": "the model is too hot", "type": "server_error", "param": None, "code": None}}
                    return
                if model == "slow":
                    time.sleep(0.1)
                token = self.next_id(previous, body.get("seed", 0))
                yield event([token], previous, "length" if i == n - 1 else None)
                previous = token
            yield {
                "id": "cmpl-1",
                "object": "text_completion",
                "created": 0,
                "model": model,
                "choices": [],
                "usage": {"prompt_tokens": len(ids), "completion_tokens": n, "total_tokens": len(ids) + n},
            }

        return events()

    def chat(self, body):
        last = body["messages"][-1]["content"]
        system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "none")
        code = f"code {body.get('seed', 0) % 2}\n    `{MARKUP}`"
        answer = f"You said: {last} {MARKUP} in `a {MARKUP}` and `` b`c ``\n```python\n{code}\n```\nsystem: {system}"

        def events():
            def event(delta, end=None):
                return {
                    "id": "chatcmpl-1",
                    "object": "chat.completion.chunk",
                    "created": 0,
                    "model": body["model"],
                    "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
                }

            yield event({"role": "assistant", "content": ""})
            for piece in re.findall(r".{1,7}", answer, re.DOTALL):
                if last.startswith("slow:"):
                    time.sleep(0.1)
                yield event({"content": piece})
            yield event({}, "stop")
            yield {**event({}), "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 41, "total_tokens": 50}}

        return events()

    def fill(self, body):
        parts, words = body["text"].split("<mask>"), ["cold", "long", MARKUP, "sunny", "dark"]
        if len(parts) == 1:
            raise Refused(400, "text: it has no <mask>")

        def whole(place, word):
            between = ["<mask>"] * (len(parts) - 1)
            between[place] = word
            return parts[0] + "".join(mask + part for mask, part in zip(between, parts[1:]))

        return {
            "masks": [
                {
                    "position": place,
                    "candidates": [
                        {"id": i, "token": word, "probability": 0.5 / (i + 1), "text": whole(place, word)}
                        for i, word in enumerate(words[: body["top"]])
                    ],
                }
                for place in range(len(parts) - 1)
            ]
        }

    def translate(self, body):
        def one(text):
            source = [*text.split(), "</s>"]
            target = ["<s>", *(word.upper() for word in text.split())]
            weights = [
                [0.8 if t == s else 0.2 / max(1, len(source) - 1) for s in range(len(source))] for t in range(len(target))
            ]
            return {
                "text": text.upper(),
                "score": -1.25,
                "alignment": {"source": source, "target": target, "weights": weights, "layer": 1, "alignment_errors": [0.3, 0.125]},
            }

        return {"translations": [one(text) for text in body["texts"]]}

    def transcription(self, body):
        rate, samples = samples_of(body["file"])
        heard = "nothing" if max(map(abs, samples), default=0) == 0 else MARKUP
        return {"text": f"{len(samples) / rate:.2f} seconds of {heard}", "usage": {"type": "duration", "seconds": 1}}

    def fold(self, body):
        """A helix; `sure-folder` is surer of each residue than of the one before it."""
        letters, sure = body["sequence"], body["model"] == "sure-folder"
        if not letters.isalpha():
            raise Refused(400, "sequence: character 1 of the sequence is no letter")
        n = len(letters)
        places = [x for i in range(n) for x in (2.3 * math.cos(1.745 * i), 2.3 * math.sin(1.745 * i), 1.5 * i)]
        plddt = [100 * (i + 1) / n if sure else 0 for i in range(n)]
        trace = {"chains": ["A"], "chain": [0] * n, "letters": letters, "numbers": [str(i + 1) for i in range(n)],
                 "places": places, "b": plddt}  # fmt: skip
        structure = {"title": "sequence", "predicted": sure, "tm_score": 0.5 if sure else None, "trace": trace,
                     "aligned_error": None, "truth": None}  # fmt: skip
        return {"model": body["model"], "mean_plddt": sum(plddt) / n if sure else None, "ptm": 0.5 if sure else None,
                "pdb": f"REMARK {letters}\nEND\n", "structure": structure}  # fmt: skip

    def predict(self, body):
        if "recordings" in body:
            _, samples = samples_of(base64.b64decode(body["recordings"][0].partition(",")[2]))
            most = max(map(abs, samples)) / 32768
            return {"predictions": [{"labels": [{"label": "loud", "probability": most}, {"label": "quiet", "probability": 1 - most}]}]}
        if "images" in body:
            width, height = png_size(body["images"][0])
            if body["model"] == "canvases":
                box = [width / 4, height / 4, width / 2, height / 2]
                return {
                    "predictions": [
                        {
                            "objects": [
                                {"label": "Sneaker", "score": 0.93, "box": box},
                                {"label": "Bag", "score": 0.31, "box": [0, 0, width / 4, height / 4]},
                                {"label": "Coat", "score": 0.28, "box": [width / 4, height / 4, width / 2, height / 3]},
                                {"label": "Shirt", "score": 0.25, "box": box},
                            ]
                        }
                    ]
                }
            return {"predictions": [{"labels": [{"label": "Bag", "probability": 0.8}, {"label": "Coat", "probability": 0.2}]}]}
        if body["model"] == "names":
            return {
                "predictions": [
                    {
                        "tokens": [
                            {"token": word, "label": "PER" if word.istitle() else "O", "probability": 0.9}
                            for word in body["texts"][0].split()
                        ]
                    }
                ]
            }
        labels = ["same", "other"] if "pairs" in body else ["good", "bad"]
        return {
            "predictions": [{"labels": [{"label": labels[0], "probability": 0.7}, {"label": labels[1], "probability": 0.3}]}]
        }

    def attention(self, body):
        if "image" in body:
            return self.attention_of_picture(body)
        source, target = body["text"].split(), (body.get("target") or "DIE ANTWORT").split()
        if body["model"] == "de-en":
            read, written = ["<bos>", *target], [*target, "<eos>"]
            shapes = [("encoder", source, source), ("decoder", read, read), ("cross", read, source)]
            return {"source": source, "target": read, "target_next": written, "maps": [self.map(*shape) for shape in shapes]}
        name = "encoder" if body["model"] == "bert" else "decoder"
        return {"source": source, "target": [], "maps": [self.map(name, source, source)]}

    def map(self, name, rows, columns):
        def row(layer, head, t):
            values = [
                0 if name == "decoder" and s > t else 1 + (layer + 2 * head + 3 * t + 5 * s) % 7 for s in range(len(columns))
            ]
            return [round(value / sum(values), 4) for value in values]

        return {
            "name": name,
            "layers": [[[row(layer, head, t) for t in range(len(rows))] for head in range(HEADS)] for layer in range(LAYERS)],
        }

    def attention_of_picture(self, body):
        width, height = png_size(body["image"])
        grid = {"width": width, "height": height, "rows": 4, "columns": 4, "part": [0, 0, width, height]}
        places = [f"row {i // 4} column {i % 4}" for i in range(16)]
        if body["model"] == "canvases":
            queries = ["query 0", "query 1: Sneaker 0.93", "query 2"]
            return {
                "source": places,
                "target": queries,
                "image": {**grid, "special": 0},
                "maps": [self.map("encoder", places, places), self.map("cross", queries, places)],
            }
        return {
            "source": ["class", *places],
            "target": [],
            "image": {**grid, "special": 1},
            "maps": [self.map("encoder", ["class", *places], ["class", *places])],
        }


def png_size(uri):
    data = base64.b64decode(uri.partition(",")[2])
    if not data.startswith(b"\x89PNG"):
        raise Refused(400, "images[0]: it is no picture")
    return struct.unpack(">II", data[16:24])
