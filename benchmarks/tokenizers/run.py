#!/usr/bin/env python3
"""Measures how fast tokenizers of the Hub encode, against Hugging Face's tokenizers.

    benchmarks/tokenizers/run.py [--corpus FILE] [--part BYTES] [--rounds N] [--threads 1,2]

Trains a byte-level BPE, a WordPiece and a Unigram vocabulary on the first 2 MB of the corpus, and encodes all of it in
parts, with both programs in turns. Prints a Markdown table: MB/s (median over the rounds, least–most) and the median of the
ratios within a round. Before, both have encoded the corpus once. Needs scripts/setup.sh --tests. Exit code 2: bad input, 1:
the ids differ.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The peer: the same protocol as tokenizer_speed.
PEER = """
import sys, time
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1] + "/tokenizer.json")
texts = open(sys.argv[2], "rb").read().decode().split("\\0")[:-1]
for _ in sys.stdin:
    start = time.perf_counter()
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    seconds = time.perf_counter() - start
    print(f"{seconds:.6f} {sum(len(each.ids) for each in encoded)}", flush=True)
"""


def train(directory, text):
    sys.path.insert(0, str(ROOT / "tests/parity"))
    from reference_hub_tokenizers import charsmap
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    lines = text[:2_000_000].splitlines()
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=16_000, show_progress=False,
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    pieces.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=16_000, special_tokens=["[UNK]"],
                                                                show_progress=False))
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer, unigram.pre_tokenizer = normalizers.Precompiled(charsmap()), pre_tokenizers.Metaspace()
    unigram.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=16_000, special_tokens=["<unk>"],
                                                               unk_token="<unk>", show_progress=False))
    for name, tokenizer in [("byte-level BPE", bpe), ("WordPiece", pieces), ("Unigram", unigram)]:
        (directory / name).mkdir()
        tokenizer.save(str(directory / name / "tokenizer.json"))
        yield name


class Program:
    def __init__(self, command, n_threads):
        environment = os.environ | {"RAYON_NUM_THREADS": str(n_threads), "OMP_NUM_THREADS": str(n_threads),
                                    "TOKENIZERS_PARALLELISM": "true" if n_threads > 1 else "false"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.n_threads = n_threads

    def measure(self):
        self.process.stdin.write(f"{self.n_threads}\n")
        self.process.stdin.flush()
        seconds, ids = self.process.stdout.readline().split()
        return float(seconds), int(ids)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"


def main():
    parser = argparse.ArgumentParser(prog="benchmarks/tokenizers/run.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--corpus", type=Path, default=ROOT / "datasets/wikitext-2/wiki.train.tokens",
                        help="default: %(default)s")
    parser.add_argument("--part", type=int, default=20_000, help="characters of a text (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--threads", default="1,2", help="default: %(default)s")
    arguments = parser.parse_args()
    if not arguments.corpus.exists() or min(arguments.part, arguments.rounds) < 1:
        parser.error("no such corpus, or a number less than 1")
    text = arguments.corpus.read_text()
    parts = [text[i:i + arguments.part] for i in range(0, len(text), arguments.part)]
    size = len(text.encode()) / 1e6
    print(f"| tokenizer | threads | zoo, MB/s | tokenizers, MB/s | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "texts").write_bytes(b"".join(part.encode() + b"\0" for part in parts))
        for name in train(directory, text):
            for n_threads in map(int, arguments.threads.split(",")):
                where = [directory / name, directory / "texts"]
                programs = [Program([ROOT / "build/release/tokenizer_speed", *where], n_threads),
                            Program([sys.executable, "-c", PEER, *where], n_threads)]
                rounds = [[program.measure() for program in programs] for _ in range(arguments.rounds + 1)][1:]
                for program in programs:
                    program.close()
                if rounds[0][0][1] != rounds[0][1][1]:
                    print(f"run.py: {name}: {rounds[0][0][1]} ids, tokenizers has {rounds[0][1][1]}", file=sys.stderr)
                    sys.exit(1)
                speeds = [[size / seconds for seconds, _ in each] for each in rounds]
                ratio = statistics.median(ours / theirs for ours, theirs in speeds)
                ours, theirs = zip(*speeds)
                print(f"| {name} | {n_threads} | {spread(ours)} | {spread(theirs)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
