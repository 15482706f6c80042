#!/usr/bin/env python3
"""The vocabularies of bytes, characters, BPE and WordPiece that `zoo export` writes give transformers the same tokens as ours.

  own_vocabularies_test.py PROGRAM

ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from references_python import begin

TEXT = "Où est la mer ?\nthe ship came home at night\n“Who is there?” she asked; 山高水長\t1, 22, 333\n"
TEXTS = [TEXT, "the mer", "unseen: Ω ß", "  two  blanks ", "<eos> is text", ""]

RUN = """
task: {task}
data: {{train: train.txt, valid: train.txt, sequence_length: 16, tokenizer: {{type: {kind}, lowercase: {lowercase}}}}}
model: {{architecture: {architecture}, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 16, position: learned,
        {keys}}}
training: {{steps: 1, batch_size: 2, threads: 1}}
"""
KINDS = [("char", ("false", "true")), ("byte", ("false", "true")), ("bpe", ("false",)), ("wordpiece", ("true",))]
MODELS = {
    "language_modeling": ("decoder", "activation: gelu_tanh, norm_placement: pre, tie_embeddings: true"),
    "masked_language_modeling": ("encoder", "activation: gelu, norm_placement: post, n_segments: 2, embedding_norm: true, "
                                            "output_bias: true"),
}


def main():
    begin()
    from transformers import AutoTokenizer

    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        (made / "train.txt").write_text(TEXT * 20)

        def zoo(*words, text=None):
            done = subprocess.run([program, *words], cwd=made, input=text, capture_output=True, text=True)
            assert done.returncode == 0, (words, done.stderr)
            return done.stdout

        def encode(directory, text):
            found = json.loads(zoo("tokenizer", "encode", directory, "--text", text, "--json"))
            return found["results"][0]["ids"]

        for task, (architecture, keys) in MODELS.items():
            for kind, folds in KINDS:
                for lowercase in folds:
                    name = f"{task}-{kind}-{lowercase}"
                    (made / f"{name}.yaml").write_text(RUN.format(task=task, kind=kind, lowercase=lowercase,
                                                                  architecture=architecture, keys=keys))
                    zoo("train", f"{name}.yaml", "--out", name, "--device", "cpu")
                    zoo("export", name, f"{name}-hub")
                    theirs = AutoTokenizer.from_pretrained(made / f"{name}-hub")
                    for text in TEXTS:
                        # The vocabulary of a decoder has no token for an unknown character.
                        if kind == "char" and theirs.unk_token is None and not set(text) <= set(TEXT):
                            continue
                        ids, again = encode(name, text), encode(f"{name}-hub", text)
                        # Special tokens in a text are characters to the vocabularies of characters and bytes.
                        encoded = theirs(text, add_special_tokens=False, split_special_tokens=kind in ("char", "byte"))
                        encoded = encoded["input_ids"]
                        assert ids == encoded, (name, text, ids, encoded)
                        # A tokenizer of the Hub finds its special tokens in a text.
                        assert again == theirs(text, add_special_tokens=False)["input_ids"], (name, text, again)
                        if kind == "byte" and lowercase == "false":
                            assert theirs.decode(ids) == text
                    framed = theirs("the", "mer")
                    if task == "masked_language_modeling":
                        assert framed["input_ids"][0] == theirs.cls_token_id
                        assert framed["input_ids"].count(theirs.sep_token_id) == 2
                        assert framed["token_type_ids"][-1] == 1
    print("equal")


if __name__ == "__main__":
    main()
