#!/usr/bin/env python3
"""A Whisper model that is trained here and exported writes in transformers what it writes here, from the same WAV files.

  exported_listener_test.py PROGRAM

ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import math
import pathlib
import sys
import tempfile
import wave

from references_python import begin
from zoo_copies import run_zoo

RATE = 16000
CONFIG = """
task: speech_recognition
data: {{train: sounds.tsv, valid: sounds.tsv, sequence_length: 20, tokenizer: {{type: char}},
       audio: {{n_mels: 16, max_seconds: 1, padding: longest, normalization: {normalization}}}}}
model: {{architecture: {{type: whisper, max_frames: 100, pad_to_max: true}}, d_model: 32, n_layers: 1, n_heads: 2, d_ff: 64,
        max_positions: 20, dropout: 0, position: learned, norm_placement: pre, activation: gelu, key_bias: false,
        tie_embeddings: true}}
training: {{steps: 60, batch_size: 8, threads: 1, optimizer: {{lr: 0.01}}, schedule: {{type: constant}}}}
generation: {{max_new_tokens: 12}}
"""


def write_sounds(directory):
    """Recordings of one to three tones, each of which is "a", "b" or "c"; returns their paths and samples."""
    sounds = []
    for index in range(24):
        tones = [(index // 3**place) % 3 for place in range(1 + index % 3)]
        samples = [
            round(12000 * math.sin(2 * math.pi * 300 * 2**tone * i / RATE)) for tone in tones for i in range(RATE // 5)
        ]
        path = directory / f"{index}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
            file.writeframes(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))
        sounds.append((path.name, "".join("abc"[tone] for tone in tones), [sample / 32768 for sample in samples]))
    (directory / "sounds.tsv").write_text("audio\ttext\n" + "".join(f"{path}\t{text}\n" for path, text, _ in sounds))
    return sounds


def main():
    begin()
    import torch
    from transformers import AutoTokenizer, GenerationMixin, WhisperFeatureExtractor, WhisperForConditionalGeneration

    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        sounds = write_sounds(made)

        def zoo(*words, status=0):
            done = run_zoo(program, *words, cwd=made)
            assert done.returncode == status, (words, done.stderr)
            return done.stdout if status == 0 else done.stderr

        for normalization in ("recording", "whisper"):
            (made / "config.yaml").write_text(CONFIG.format(normalization=normalization))
            zoo("train", "config.yaml", "--out", normalization, "--device", "cpu")
        problem = zoo("export", "recording", "hub", status=2)
        assert "data.audio.normalization is not whisper" in problem and not (made / "hub").exists(), problem
        zoo("export", "whisper", "hub")
        extractor = WhisperFeatureExtractor.from_pretrained(made / "hub")
        tokenizer = AutoTokenizer.from_pretrained(made / "hub")
        model = WhisperForConditionalGeneration.from_pretrained(made / "hub").eval()

        paths = [path for path, _, _ in sounds]
        for directory in ("whisper", "hub"):
            ours = json.loads(zoo("predict", directory, "--device", "cpu", "--json", "--audio", *paths))["results"]
            for (path, _, samples), found in zip(sounds, ours, strict=True):
                inputs = extractor(samples, sampling_rate=RATE, return_tensors="pt").input_features
                start = torch.tensor([[model.config.decoder_start_token_id]])
                with torch.no_grad():
                    ids = GenerationMixin.generate(
                        model, input_features=inputs, decoder_input_ids=start, max_new_tokens=12, do_sample=False
                    )
                assert found["text"] == tokenizer.decode(ids[0], skip_special_tokens=True), (directory, path, found)
            assert len({found["text"] for found in ours}) > 1, ours
    print("equal")


if __name__ == "__main__":
    main()
