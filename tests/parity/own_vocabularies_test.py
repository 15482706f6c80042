#!/usr/bin/env python3
"""The vocabularies that are learnt here, as `zoo export` writes them, give transformers the same tokens and texts.

  own_vocabularies_test.py PROGRAM

ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from references_python import begin

TEXT = "Où est la mer ?\nthe ship came home at night\n“Who is there?” she asked; 山高水長\t1, 22, 345\n"
TEXTS = [TEXT, "the mer", "unseen: Ω ß ▁", "  two  blanks ", "<eos> is text", "<unk>, <pad><0x41> and\n\n <mas", "\nline\n", ""]
MASKED = ["the <mask> came", "<mask>. the", "at home<mask>", "<mask> <mask> the"]

RUN = """
task: {task}
data: {{train: train.txt, valid: train.txt, sequence_length: 16, tokenizer: {{{kind}, lowercase: {lowercase}}}}}
model: {{architecture: {architecture}, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 16, position: learned,
        {keys}}}
training: {{steps: 1, batch_size: 2, threads: 1}}
"""
PIECES = "type: sentencepiece, vocab_size: 340"
KINDS = {"char": ("type: char", ("false", "true")), "byte": ("type: byte", ("false", "true")),
         "bpe": ("type: bpe", ("false",)), "wordpiece": ("type: wordpiece", ("true",)),
         "unigram": (PIECES, ("false", "true")), "pieces-bpe": (PIECES + ", model: bpe", ("false",)),
         "pieces-nfkc": (PIECES + ", normalization: nfkc", ("false",))}
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

        def decode(directory, ids):
            return zoo("tokenizer", "decode", directory, "--ids", str(ids))

        for task, (architecture, keys) in MODELS.items():
            for kind, (described, folds) in KINDS.items():
                for lowercase in folds:
                    name = f"{task}-{kind}-{lowercase}"
                    (made / f"{name}.yaml").write_text(RUN.format(task=task, kind=described, lowercase=lowercase,
                                                                  architecture=architecture, keys=keys))
                    zoo("train", f"{name}.yaml", "--out", name, "--device", "cpu")
                    zoo("export", name, f"{name}-hub")
                    theirs = AutoTokenizer.from_pretrained(made / f"{name}-hub")
                    # transformers finds all special tokens in a text or none: in files of encoders it finds masks.
                    for text in TEXTS if task == "language_modeling" else [text for text in TEXTS if "<" not in text]:
                        # The vocabulary of a decoder has no token for an unknown character.
                        if kind == "char" and theirs.unk_token is None and not set(text) <= set(TEXT):
                            continue
                        ids, again = encode(name, text), encode(f"{name}-hub", text)
                        encoded = theirs(text, add_special_tokens=False)["input_ids"]
                        assert ids == encoded, (name, text, ids, encoded)
                        assert again == encoded, (name, text, again, encoded)
                        if theirs.unk_token_id not in ids:
                            assert theirs.decode(ids, skip_special_tokens=True) + "\n" == decode(name, ids), (name, text)
                        if kind in ("byte", "bpe", "unigram", "pieces-bpe") and lowercase == "false":
                            assert theirs.decode(ids) == text, (name, text)
                    framed = theirs("the", "mer")
                    if task == "masked_language_modeling":
                        assert framed["input_ids"][0] == theirs.cls_token_id
                        assert framed["input_ids"].count(theirs.sep_token_id) == 2
                        assert framed["token_type_ids"][-1] == 1
                        for text in MASKED:
                            for directory in (name, f"{name}-hub"):
                                found = json.loads(zoo("generate", directory, "--prompt", text, "--json", "--device", "cpu"))
                                ids = found["results"][0]["prompt_ids"]
                                assert ids == theirs(text, add_special_tokens=False)["input_ids"], (directory, text, ids)
    print("equal")


if __name__ == "__main__":
    main()
