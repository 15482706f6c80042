#!/usr/bin/env python3
"""Models that are trained here with CTC over samples and exported are wav2vec 2.0 and HuBERT models in transformers. They write
what they write here from the same WAV files, and have the same loss.

  exported_ctc_test.py PROGRAM

ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import pathlib
import sys
import tempfile

from exported_listener_test import RATE, write_sounds
from references_python import begin
from zoo_copies import run_zoo

CONFIG = """
task: speech_recognition
data: {{train: sounds.tsv, valid: sounds.tsv, tokenizer: {{type: hub, path: characters}}, audio: {{max_seconds: 1}}}}
model: {{architecture: {{type: wave_encoder, conv_widths: [16, 24, 32], conv_kernels: [16, 8, 8], conv_strides: [8, 8, 8],
                       {wave}}},
        ctc_blank: padding, d_model: 32, n_layers: 2, n_heads: 2, d_ff: 64, activation: gelu, dropout: 0,
        position: {{type: convolution, kernel_size: 8, groups: 4}}, {norms}}}
training: {{steps: 120, batch_size: 8, threads: 1, optimizer: {{lr: 0.01}}, schedule: {{type: constant}}}}
"""
MODELS = {
    "Wav2Vec2ForCTC": {"wave": "masks: {time_share: 0.05}", "norms": "norm_placement: post, embedding_norm: true"},
    "HubertForCTC": {"wave": "conv_norm: each, conv_bias: true, feature_norm: false",
                     "norms": "norm_placement: pre, embedding_norm: false"},
}  # fmt: skip
CLOSE = 1e-4


def write_characters(directory):
    from transformers import Wav2Vec2CTCTokenizer

    names = ["<pad>", "<s>", "</s>", "<unk>", "|", "a", "b", "c"]
    directory.mkdir()
    (directory / "vocab.json").write_text(json.dumps({name: id for id, name in enumerate(names)}))
    Wav2Vec2CTCTokenizer(str(directory / "vocab.json")).save_pretrained(directory)


def spaced(directory, sounds):
    """The same sounds with a blank behind each "a" of a text, for the character between words."""
    texts = [text.replace("a", "a ").strip() for _, text, _ in sounds]
    rows = [f"{path}\t{text}\n" for (path, _, _), text in zip(sounds, texts, strict=True)]
    (directory / "sounds.tsv").write_text("audio\ttext\n" + "".join(rows))
    return texts


def main():
    begin()
    import torch
    import transformers
    from transformers import AutoProcessor

    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        sounds = write_sounds(made)
        texts = spaced(made, sounds)
        write_characters(made / "characters")
        paths = [path for path, _, _ in sounds]

        def zoo(*words):
            done = run_zoo(program, *words, cwd=made)
            assert done.returncode == 0, (words, done.stderr)
            return done.stdout

        for name, keys in MODELS.items():
            run, hub = f"run-{name}", f"hub-{name}"
            (made / "config.yaml").write_text(CONFIG.format(**keys))
            zoo("train", "config.yaml", "--out", run, "--device", "cpu")
            zoo("export", run, hub)
            processor = AutoProcessor.from_pretrained(made / hub)
            model, report = getattr(transformers, name).from_pretrained(made / hub, output_loading_info=True)
            assert not any(report.values()), (name, report)
            loss, n_labels, written = 0, 0, []
            for (_, _, samples), text in zip(sounds, texts, strict=True):
                inputs = processor(samples, sampling_rate=RATE, return_tensors="pt")
                labels = processor(text=text, return_tensors="pt").input_ids
                with torch.no_grad():
                    found = model(**inputs, labels=labels)
                loss, n_labels = loss + found.loss.item() * labels.numel(), n_labels + labels.numel()
                written.append(processor.batch_decode(found.logits.argmax(-1))[0])
            assert len(set(written)) > 5 and any(" " in text for text in written), (name, written)
            for directory in (run, hub):
                ours = json.loads(zoo("predict", directory, "--device", "cpu", "--json", "--audio", *paths))["results"]
                assert [one["text"] for one in ours] == written, (name, directory, ours, written)
            measured = json.loads(zoo("evaluate", run, "--data", "sounds.tsv", "--device", "cpu", "--json"))
            assert measured["tokens"] == n_labels, (name, measured, n_labels)
            assert abs(measured["loss"] - loss / n_labels) < CLOSE, (name, measured, loss / n_labels)
    print("equal")


if __name__ == "__main__":
    main()
