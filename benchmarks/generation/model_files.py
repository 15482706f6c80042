"""A model with its prompts, and its files in the form of each engine."""

import json
import random
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.generation.shapes import Lengths, Shape
from benchmarks.measuring.processes import output_of, run_measured

HERE = Path(__file__).resolve().parent
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TYPES = {"CTranslate2": {"fp32": "float32", "int8": "int8", "bf16": "bfloat16"},
         "llama.cpp": {"fp32": "fp32", "int8": "q8_0", "bf16": "bf16"}}


@dataclass
class Model:
    """A model with its prompts, as texts for zoo and as ids for the peers. `work` has its files; they are made when they
    are first asked for."""

    name: str
    shape: Shape
    lengths: Lengths
    work: Path
    arguments: object
    env: dict
    parameters: int = 0
    read_for_a_token: int = 0
    short: list = field(default_factory=list)
    long: list = field(default_factory=list)
    sentences: list = field(default_factory=list)

    @property
    def directory(self):
        return self.work / "directory"

    @property
    def run(self):
        return self.work / "run"

    def ids(self, texts):
        lines = output_of([self.arguments.zoo, "tokenizer", "encode", self.run], self.env,
                          input="\n".join(texts).encode() + b"\n").splitlines()
        return [[int(word) for word in line.split(",")] for line in lines]

    def file_for(self, engine, form):
        if engine == "transformers":
            return self.directory if form == "fp32" else self._made(
                f"directory-{form}", lambda path: self._export(path, form))
        kind = TYPES[engine][form]
        if engine == "llama.cpp":
            return self._made(f"{kind}.gguf", lambda path: self._export(path, kind))
        return self._made(f"ctranslate2-{kind}", lambda path: run_python(
            self, "make_model.py", {"directory": str(self.directory), "converted": str(path), "quantization": kind}))

    def _made(self, name, make):
        path = self.work / name
        if not path.exists():
            make(path)
        return path

    def _export(self, path, weights):
        output_of([self.arguments.zoo, "export", self.run, path, "--weights", weights], self.env)


def run_python(model, program, job, env=None):
    """Runs a program of this folder as a process. Returns its result and what run_measured() says of it."""
    request, answer = model.work / "job.json", model.work / "answer.json"
    request.write_text(json.dumps(job), encoding="utf-8")
    process = run_measured([model.arguments.python, HERE / program, request, answer], {**model.env, **(env or {})},
                           model.work / "log")
    return json.loads(answer.read_text(encoding="utf-8")), process


def letters(draw, n):
    return " ".join(draw.choices(LETTERS, k=n))


def make_model(name, shape, lengths, arguments, env, work):
    work.mkdir()
    model = Model(name, shape, lengths, work, arguments, env)
    made, _ = run_python(model, "make_model.py", {"shape": asdict(shape), "directory": str(model.directory)})
    model.parameters, model.read_for_a_token = made["parameters"], made["read_for_a_token"]
    output_of([arguments.zoo, "import", model.directory, work / "run"], env)
    draw = random.Random(1)
    if shape.has_beams:
        model.sentences = [letters(draw, draw.randint(*lengths.sentence)) for _ in range(lengths.sentences)]
    else:
        n_short = max(arguments.batches)
        model.short = [letters(draw, lengths.short) for _ in range(n_short)]
        model.long = [letters(draw, lengths.long) for _ in range(lengths.long_prompts)]
        wrong = [row for row in model.ids(model.short) if len(row) != lengths.short]
        if wrong:
            raise RuntimeError(f"a prompt of {lengths.short} letters has {len(wrong[0])} tokens")
    return model
