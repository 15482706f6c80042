"""BLEU, chrF and the tokenizer 13a by the package sacrebleu, on random lines that are hard to tokenize, and on the
captions of Multi30k if they are present.

Texts are bytes; each line ends with a zero.
"""

import os
import pathlib
import random

import numpy as np
import sacrebleu
import torch
from reference import write_case
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

WORDS = """a the The man Man's woman dog's isn't riding Straße Café naïve Über état être Ж мир Δx 山 山路 日本語。 東京、 한국 🙂
1 12 1,000.50 3.14 .5 5. 1,2,3 20-30 5-year-old 10- -10 T-shirt re-use x-ray- - -- – — ... … . , .. ., ,. : ; ! ? !? ¿ ¡
( ) [ ] { } (hi) [x] {y} a/b C++ C# @home #1 $5 5$ 50% & && R&D &quot; &amp; &lt; &gt; &amp;lt; &nbsp; <skipped> <b> < > <=
= + * ^ ~ ` ' " '' "" „so“ “so” ‘so’ «so» it’s \\ | _ a_b U.S. U.S.A. e.g. 3rd 4:30 http://a.b/c?d=1&e=2 a,b a,1 1,a a.b 1.b a.1
é. .é é,é -é é- 9é ٣.٣ １，０００．５ x² ½""".split()

# White space includes more than the blank, and some of these characters only look like white space.
SPACES = [" "] * 40 + ["  ", "\t", " \r ", "\u00a0", "\u2003", "\u3000", "\u200b", "\x0b", "\x0c", "\x1c", "\x1f", "\x85",
                       "\u2028", "\u1680", "\u180e", "\u202f", "\ufeff", "\n", "-\n", ""]


def line(rng, longest):
    words = [rng.choice(WORDS) for _ in range(rng.randint(0, longest))]
    text = "".join(word + rng.choice(SPACES) for word in words)
    return text if rng.random() < 0.3 else text.rstrip()


def changed(rng, text, rate):
    """A line that has much in common with `text`."""
    words = text.split(" ")
    result = []
    for word in words:
        chance = rng.random()
        if chance < rate:
            continue
        result.append(rng.choice(WORDS) if chance < 2 * rate else word)
        if chance > 1 - rate:
            result.append(word)
    if result and rng.random() < rate:
        i, j = rng.randrange(len(result)), rng.randrange(len(result))
        result[i], result[j] = result[j], result[i]
    return " ".join(result)


def as_bytes(lines):
    return torch.frombuffer(bytearray(b"".join(text.encode() + b"\0" for text in lines)), dtype=torch.uint8)


def add_corpus(inputs, outputs, name, hypotheses, references):
    inputs[f"{name}/outputs"] = as_bytes(hypotheses)
    for r, lines in enumerate(references):
        inputs[f"{name}/references/{r}"] = as_bytes(lines)
    scores = [sacrebleu.BLEU().corpus_score(hypotheses, references).score,
              sacrebleu.CHRF().corpus_score(hypotheses, references).score]
    outputs[f"{name}/scores"] = torch.tensor(scores, dtype=torch.float64)


def tokenizer(directory):
    rng = random.Random(1)
    lines = [line(rng, 12) for _ in range(3000)] + WORDS + ["", " ", "\n", "-", "-\n", "a-\nb", "&amp;quot;", "<ski<skipped>pped>"]
    tokenize = Tokenizer13a()
    write_case(directory, "tokenizer", inputs={"lines": as_bytes(lines)},
               outputs={"tokens": as_bytes([tokenize(text.rstrip()) for text in lines])})


def random_corpora(directory):
    inputs, outputs = {}, {}
    rng = random.Random(2)
    for i in range(150):
        n_lines, longest = rng.choice([1, 1, 2, 5, 30]), rng.choice([1, 2, 3, 4, 8, 25])
        base = [line(rng, longest) for _ in range(n_lines)]
        rate = rng.choice([0.0, 0.05, 0.15, 0.3])
        references = [[changed(rng, text, rate) for text in base] for _ in range(rng.choice([1, 1, 1, 2, 4]))]
        hypotheses = [line(rng, longest) if rng.random() < 0.1 else changed(rng, text, rate) for text in base]
        add_corpus(inputs, outputs, f"{i}", hypotheses, references)
    shared = ["the man is riding"]
    add_corpus(inputs, outputs, "nothing in common", ["a b c d e"], [["v w x y z"]])
    add_corpus(inputs, outputs, "empty outputs", ["", ""], [["a man", "a dog"]])
    add_corpus(inputs, outputs, "empty references", shared, [[""]])
    add_corpus(inputs, outputs, "all empty", [""], [[""]])
    add_corpus(inputs, outputs, "equal", shared, [shared])
    add_corpus(inputs, outputs, "three words", ["the man is"], [["the man is"]])
    add_corpus(inputs, outputs, "lengths equally near", ["a b c d"], [["a b c d e"], ["a b c"]])
    write_case(directory, "random", inputs=inputs, outputs=outputs)


def multi30k(directory):
    folders = [os.environ.get("ZOO_DATA_MIRROR"), os.environ.get("ZOO_DATA", pathlib.Path(__file__).parents[2] / "datasets")]
    folders = [pathlib.Path(folder) / "multi30k" for folder in folders if folder]
    folder = next((folder for folder in folders if (folder / "test_2016_flickr.en").exists()), None)
    if folder is None:
        return
    read = lambda name: (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
    english, german = read("test_2016_flickr.en"), read("test_2016_flickr.de")
    rng = random.Random(3)
    inputs, outputs = {}, {}
    for rate in [0.0, 0.02, 0.1, 0.3]:
        add_corpus(inputs, outputs, f"changed by {rate}", [changed(rng, text, rate) for text in english], [english])
    add_corpus(inputs, outputs, "German", [changed(rng, text, 0.1) for text in german], [german])
    add_corpus(inputs, outputs, "of another language", german, [english])
    write_case(directory, "multi30k", inputs=inputs, outputs=outputs)


def significance(directory):
    """sacreBLEU's tests of two systems, with draws of its own that are written down."""
    from sacrebleu import significance as sb

    rng = random.Random(4)
    reference = [line(rng, 12) for _ in range(60)]
    better, worse = [changed(rng, text, 0.1) for text in reference], [changed(rng, text, 0.14) for text in reference]
    inputs = {"system": as_bytes(better), "baseline": as_bytes(worse), "references": as_bytes(reference)}
    outputs = {}
    seed, n_samples = 9, 1000
    draws = np.random.default_rng(seed).choice(len(better), size=(n_samples, len(better)), replace=True)
    inputs["samples"] = torch.from_numpy(draws.astype("int64"))
    # As its approximate randomisation draws them.
    exchanged = np.random.default_rng(seed).integers(2, size=(n_samples, len(better)), dtype=bool)
    inputs["exchanged"] = torch.from_numpy(exchanged.astype("int64"))
    metrics = {"BLEU": sacrebleu.BLEU(references=[reference]), "chrF": sacrebleu.CHRF(references=[reference])}
    of_baseline = {}
    for name, metric in metrics.items():
        statistics = metric._extract_corpus_statistics(worse, None)
        of_baseline[name] = (statistics, metric._aggregate_and_compute(statistics))
    for test, run in (("ar", sb._paired_ar_test), ("bs", sb._paired_bs_test)):
        _, found = run(of_baseline, "system", better, None, metrics, n_samples=n_samples, n_ar_confidence=0, seed=seed)
        for name, result in found.items():
            outputs[f"{test}/{name}"] = torch.tensor([result.score, of_baseline[name][1].score, result.p_value],
                                                     dtype=torch.float64)
    write_case(directory, "significance", inputs=inputs, outputs=outputs)


CASES = [tokenizer, random_corpora, multi30k, significance]
