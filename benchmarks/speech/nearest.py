#!/usr/bin/env python3
"""A baseline for spoken digits that learns nothing: a recording says what its nearest training recording says.

Usage: nearest.py [DATA] [--split test] [--json]       DATA: the folder of the corpus fsdd; default datasets/fsdd

The distance of two recordings is that of dynamic time warping (Sakoe & Chiba 1978, symmetric, without a limit of slope) between
13 cepstral coefficients every 10 ms, without their mean over the recording. Prints the share of the recordings that are wrong,
with Wilson's interval of 95 %.
"""

import argparse
import csv
import functools
import json
import sys
import wave
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.shares import share_text, wilson  # noqa: E402

WINDOW, HOP, FFT, BANDS, COEFFICIENTS = 0.025, 0.010, 512, 40, 13


def samples_of(path):
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            sys.exit(f"{path}: needs 16 bits, mono")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768, file.getframerate()


@functools.cache  # all recordings of a corpus have one rate
def mel_filters(rate):
    """[BANDS, FFT / 2 + 1]: triangles at equal distances in mel."""
    edges = 700 * (np.exp(np.linspace(0, np.log1p(rate / 2 / 700), BANDS + 2)) - 1)
    bins = np.arange(FFT // 2 + 1) * rate / FFT
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    return np.maximum(np.minimum(rising, falling), 0)


def cepstra_of(path):
    """[frames, COEFFICIENTS]"""
    samples, rate = samples_of(path)
    window, hop = int(WINDOW * rate), int(HOP * rate)
    samples = np.pad(samples, (0, max(window - len(samples), 0)))
    frames = np.lib.stride_tricks.sliding_window_view(samples, window)[::hop] * np.hamming(window)
    mel = np.abs(np.fft.rfft(frames, FFT)) ** 2 @ mel_filters(rate).T
    angle = np.pi * (np.arange(BANDS) + 0.5) / BANDS * np.arange(COEFFICIENTS)[:, None]
    cepstra = np.log(mel + 1e-8) @ np.cos(angle).T
    return (cepstra - cepstra.mean(axis=0)).astype(np.float32)


def distances(one, others, lengths):
    """[N]: of one [T, C] to others [N, S, C], of which lengths [N] frames count."""
    squares = (one**2).sum(-1)[None, :, None] + (others**2).sum(-1)[:, None, :] - 2 * np.einsum("tc,nsc->nts", one, others)
    local = np.sqrt(np.maximum(squares, 0)).transpose(1, 2, 0)  # [T, S, N]
    row = None
    for cost in local:
        above, row = row, np.empty_like(cost)
        for s, here in enumerate(cost):
            if above is None:
                row[s] = 2 * here if s == 0 else row[s - 1] + here
            elif s == 0:
                row[s] = above[s] + here
            else:
                row[s] = np.minimum(np.minimum(above[s], row[s - 1]) + here, above[s - 1] + 2 * here)
    return row[lengths - 1, np.arange(len(lengths))] / (len(one) + lengths)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT / "datasets/fsdd")
    parser.add_argument("--split", default="test")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    training = rows_of(options.data / "train.tsv")
    cepstra = [cepstra_of(options.data / row["audio"]) for row in training]
    lengths = np.array([len(frames) for frames in cepstra])
    others = np.zeros((len(cepstra), lengths.max(), COEFFICIENTS), np.float32)
    for other, frames in zip(others, cepstra):
        other[: len(frames)] = frames
    tests = rows_of(options.data / f"{options.split}.tsv")
    wrong = 0
    for row in tests:
        nearest = int(distances(cepstra_of(options.data / row["audio"]), others, lengths).argmin())
        wrong += training[nearest]["text"] != row["text"]
    if options.json:
        print(json.dumps({"wrong": wrong, "of": len(tests), "interval": wilson(wrong, len(tests))}))
    else:
        print(f"wrong: {share_text(wrong, len(tests))}")


if __name__ == "__main__":
    main()
