"""Spectrograms by transformers' feature extractor of Whisper, the formula of torchaudio's resampling, and error rates by
the package jiwer.

Texts are bytes; each line ends with a zero.
"""

import math
import random

import jiwer
import numpy as np
import torch
from reference import write_case
from transformers import WhisperFeatureExtractor

RATE = 16000


def recordings():
    """Sounds with silence, noise, and tones that rise, of several lengths."""
    rng = np.random.default_rng(1)
    seconds = {"short": 0.1, "odd": 0.777, "long": 3.21}
    for name, length in seconds.items():
        t = np.arange(int(length * RATE)) / RATE
        sound = 0.3 * np.sin(2 * np.pi * (200 + 900 * t) * t) + 0.1 * np.sin(2 * np.pi * 3000 * t) * (t % 0.5 < 0.2)
        sound = sound * (t % 0.3 < 0.2) + 0.003 * rng.standard_normal(len(t))
        yield name, sound.astype(np.float32)
    yield "silence", np.zeros(RATE, dtype=np.float32)
    yield "quiet", (1e-4 * rng.standard_normal(RATE)).astype(np.float32)


def log_mel(directory):
    for n_mels in (80, 128):
        extractor = WhisperFeatureExtractor(feature_size=n_mels)
        inputs, outputs = {}, {}
        for name, sound in recordings():
            inputs[name] = torch.from_numpy(sound)
            for key, padding in (("batch", False), ("longest", "max_length")):
                features = extractor(sound, sampling_rate=RATE, padding=padding, return_tensors="pt").input_features
                outputs[f"{key}/{name}"] = features[0]
        outputs["filters"] = torch.from_numpy(extractor.mel_filters.T.copy())
        write_case(directory, f"log_mel_{n_mels}", inputs=inputs, outputs=outputs)


def torchaudio_resample(sound, old, new, width=6, rolloff=0.99):
    """torchaudio.functional.resample with its defaults (sinc_interp_hann), after its source."""
    common = math.gcd(old, new)
    old, new = old // common, new // common
    base = min(old, new) * rolloff
    reach = math.ceil(width * old / base)
    index = torch.arange(-reach, reach + old, dtype=torch.float64)[None, None] / old
    t = torch.arange(0, -new, -1, dtype=torch.float64)[:, None, None] / new + index
    t = (t * base).clamp(-width, width)
    window = torch.cos(t * math.pi / width / 2) ** 2
    t = t * math.pi
    kernels = torch.where(t == 0, torch.ones_like(t), t.sin() / t) * window * base / old
    padded = torch.nn.functional.pad(sound[None, None].double(), (reach, reach + old))
    result = torch.nn.functional.conv1d(padded, kernels, stride=old).transpose(1, 2).reshape(-1)
    return result[: math.ceil(new * len(sound) / old)].float()


def resampling(directory):
    torch.manual_seed(3)
    inputs, outputs = {}, {}
    for old, new in ((8000, 16000), (16000, 8000), (44100, 16000), (48000, 16000), (192000, 16000), (4000, 16000),
                     (11025, 16000), (16000, 22050), (80800, 160000), (1001, 1000)):
        sound = torch.rand(3000) - 0.5
        inputs[f"{old}-{new}"] = sound
        outputs[f"{old}-{new}"] = torchaudio_resample(sound, old, new)
    write_case(directory, "resampling", inputs=inputs, outputs=outputs)


WORDS = "one two three four five six seven eight nine zero a I'm don't Straße naïve 日本 x".split()
SPACES = [" "] * 20 + ["  ", "   ", "\t", " \t", "\u00a0"]


def changed(rng, words):
    result = []
    for word in words:
        chance = rng.random()
        if chance < 0.1:
            continue
        result.append(rng.choice(WORDS) if chance < 0.25 else word)
        if chance > 0.9:
            result.append(rng.choice(WORDS))
    return result


def as_bytes(lines):
    return torch.frombuffer(bytearray(b"".join(text.encode() + b"\0" for text in lines)), dtype=torch.uint8)


def error_rates(directory):
    rng = random.Random(4)
    references, outputs = [], []
    for _ in range(400):
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 12))]
        join = lambda items: "".join(word + rng.choice(SPACES) for word in items)
        references.append(join(words))
        outputs.append(join(changed(rng, words)) if rng.random() < 0.9 else "")
    rates = {}
    for name, process in (("words", jiwer.process_words), ("characters", jiwer.process_characters)):
        rows = []
        for reference, output in zip(references, outputs):
            found = process(reference, output)
            rows.append([found.substitutions + found.deletions + found.insertions,
                         found.hits + found.substitutions + found.deletions])
        rates[name] = torch.tensor(rows)
    rates["corpus"] = torch.tensor([jiwer.wer(references, outputs), jiwer.cer(references, outputs)], dtype=torch.float64)
    write_case(directory, "error_rates", inputs={"references": as_bytes(references), "outputs": as_bytes(outputs)},
               outputs=rates)


CASES = [log_mel, resampling, error_rates]
