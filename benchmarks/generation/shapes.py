"""The models of the benchmark, the formats of their weights, the engines, and the settings that each is tried with."""

import dataclasses
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """`family` is a model_type of transformers. `new` tokens are written after each prompt."""

    what: str
    family: str
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    context: int
    new: int
    kv_heads: int | None = None
    experts: int | None = None
    active: int | None = None  # experts that work for a token

    @property
    def has_beams(self):
        return self.family == "marian"


@dataclass(frozen=True)
class Lengths:
    """Tokens of prompts, and how often a peer repeats a measurement, unless the first one takes longer than `seconds`.
    zoo repeats it for `seconds`."""

    short: int = 16
    long: int = 512
    cold_new: int = 16
    sentences: int = 64
    sentence: tuple = (11, 19)  # the end token not included
    beams: int = 4
    long_prompts: int = 4
    repeats: int = 2
    seconds: float = 3


SHAPES = {
    "gpt-small": Shape(
        what="GPT of 6 layers, 6 heads, 384 wide, vocabulary 512, context 1024", family="gpt2", width=384, layers=6, heads=6,
        inner=1536, vocabulary=512, context=1024, new=128),
    "gpt2": Shape(
        what="GPT-2's 124 million: 12 layers, 12 heads, 768 wide, vocabulary 50257, context 1024", family="gpt2", width=768,
        layers=12, heads=12, inner=3072, vocabulary=50257, context=1024, new=32),
    "llama-50m": Shape(
        what="Llama of 8 layers, 8 heads, 4 heads of keys, 512 wide, 1376 inside, vocabulary 32000", family="llama", width=512,
        layers=8, heads=8, kv_heads=4, inner=1376, vocabulary=32000, context=2048, new=64),
    "mixture": Shape(
        what="Mixtral of 8 layers, 8 heads, 4 heads of keys, 512 wide, 8 experts of 704 inside, 2 of which work for a token, "
             "vocabulary 32000", family="mixtral", width=512, layers=8, heads=8, kv_heads=4, inner=704, experts=8, active=2,
        vocabulary=32000, context=2048, new=64),
    "marian": Shape(
        what="Marian of 6 + 6 layers, 8 heads, 512 wide, 2048 inside, vocabulary 16000", family="marian", width=512, layers=6,
        heads=8, inner=2048, vocabulary=16000, context=512, new=20),
}
FORMATS = ("fp32", "int8", "bf16")
BYTES = {"fp32": 4, "int8": 1, "bf16": 2}  # of a weight; scales are not counted
# Of each engine, the module that its Python needs.
ENGINES = {"zoo": None, "transformers": "transformers", "CTranslate2": "ctranslate2", "llama.cpp": "xllamacpp"}


def tiny(shape):
    """A model that has every part of the real one, but takes no time."""
    return dataclasses.replace(
        shape, what=f"a tiny {shape.family}", width=64, layers=2, heads=2, kv_heads=shape.kv_heads and 1, inner=64,
        vocabulary=400, context=128, new=8)


TINY_LENGTHS = Lengths(short=4, long=32, cold_new=2, sentences=4, sentence=(3, 5), beams=2, long_prompts=2, repeats=1,
                       seconds=0.05)


@dataclass(frozen=True)
class Setting:
    """What a user can choose for an engine. `batches`: the first only, or all with prompts and cold start."""

    name: str
    threads: int
    everything: bool = True
    env: dict = field(default_factory=dict)
    batch_size: int = 32  # zoo: sequences at once


def settings(engine, shape, threads):
    """What an engine is tried with. One thread, if there are more, is only tried for a single sequence, because prompts and
    batches gain from every thread."""
    counts = [threads] if threads == 1 or engine in ("zoo", "transformers") or shape.has_beams else [threads, 1]
    made = []
    for n in counts:
        name = f"{n} thread" + "s" * (n != 1)
        if engine == "CTranslate2":
            made += [Setting(f"{name}, {'with' if mkl else 'without'} MKL", n, n == threads, {"CT2_USE_MKL": str(mkl)})
                     for mkl in (1, 0)]
        elif engine == "zoo" and shape.has_beams:
            made += [Setting(f"{name}, batch_size {size}", n, batch_size=size) for size in (32, 256)]
        else:
            made.append(Setting(name, n, n == threads))
    return made


def supports(engine, shape, form):
    """Whether an engine has models of this family with weights in this format."""
    if engine == "llama.cpp" and shape.has_beams:
        return False  # it has no beam search
    if engine == "CTranslate2" and shape.experts:
        return False
    return not (engine == "transformers" and form == "int8")
