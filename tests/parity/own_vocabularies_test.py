#!/usr/bin/env python3
"""The vocabularies that are learnt here, as `zoo export` writes them, give transformers the same tokens and texts.

  own_vocabularies_test.py PROGRAM

ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import pathlib
import sys
import tempfile

from references_python import begin
from zoo_copies import run_zoo

TEXT = "Où est la mer ?\nthe ship came home at night\n“Who is there?” she asked; 山高水長\t1, 22, 345\n"
TEXTS = [TEXT, "the mer", "unseen: Ω ß ▁", "  two  blanks ", "<eos> is text", "<unk>, <pad><0x41> and\n\n <mas", "\nline\n", "",
         "\u0130x \u1c89 \ua7cbZ \U00010d50 ΑΣ"]
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
            done = run_zoo(program, *words, cwd=made, input=text)
            assert done.returncode == 0, (words, done.stderr)
            return done.stdout

        def encode(directory, texts):
            """The ids of each text."""
            found = json.loads(zoo("tokenizer", "encode", directory, "--json", *[word for text in texts for word in ("--text", text)]))
            return {text: result["ids"] for text, result in zip(texts, found["results"], strict=True)}

        def decode(directory, rows):
            lines = "".join(f"{','.join(map(str, ids))}\n" for ids in rows)
            return [result["text"] for result in json.loads(zoo("tokenizer", "decode", directory, "--json", text=lines))["results"]]

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
                    texts = TEXTS if task == "language_modeling" else [text for text in TEXTS if "<" not in text]
                    # The vocabulary of a decoder has no token for an unknown character.
                    if kind == "char" and theirs.unk_token is None:
                        texts = [text for text in texts if set(text) <= set(TEXT)]
                    ours, again = encode(name, texts), encode(f"{name}-hub", texts)
                    for text in texts:
                        encoded = theirs(text, add_special_tokens=False)["input_ids"]
                        assert ours[text] == encoded, (name, text, ours[text], encoded)
                        assert again[text] == encoded, (name, text, again[text], encoded)
                        if kind in ("byte", "bpe", "unigram", "pieces-bpe") and lowercase == "false":
                            assert theirs.decode(encoded) == text, (name, text)
                    known = [text for text in texts if ours[text] and theirs.unk_token_id not in ours[text]]
                    for text, decoded in zip(known, decode(name, [ours[text] for text in known]), strict=True):
                        assert theirs.decode(ours[text], skip_special_tokens=True) == decoded, (name, text)
                    framed = theirs("the", "mer")
                    if task == "masked_language_modeling":
                        assert framed["input_ids"][0] == theirs.cls_token_id
                        assert framed["input_ids"].count(theirs.sep_token_id) == 2
                        assert framed["token_type_ids"][-1] == 1
                        prompts = [word for text in MASKED for word in ("--prompt", text)]
                        for directory in (name, f"{name}-hub"):
                            found = json.loads(zoo("generate", directory, *prompts, "--json", "--device", "cpu"))
                            for text, result in zip(MASKED, found["results"], strict=True):
                                ids = result["prompt_ids"]
                                assert ids == theirs(text, add_special_tokens=False)["input_ids"], (directory, text, ids)
    print("equal")


if __name__ == "__main__":
    main()
