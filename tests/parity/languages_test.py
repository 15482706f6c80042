#!/usr/bin/env python3
"""`zoo generate --source-language --target-language` says what transformers says with these languages' tokens.

  languages_test.py PROGRAM

The models are random: as NLLB (codes such as deu_Latn) and as M2M100 (__de__). ZOO_PYTHON: a Python with transformers;
default that of .venv.
"""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from references_python import begin  # noqa: E402
from zoo_copies import run_zoo  # noqa: E402

CODES = {"nllb": ["eng_Latn", "deu_Latn", "zho_Hans"], "m2m": ["__en__", "__de__", "__ast__"]}
TEXTS = ["it was a dark and stormy night", "the night", "a dark"]


def make_model(directory, kind):
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import M2M100Config, M2M100ForConditionalGeneration, PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=275, show_progress=False, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
    tokenizer.add_special_tokens([AddedToken(code, special=True, normalized=False) for code in CODES[kind]])
    source = CODES[kind][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{source} $A </s>", special_tokens=[(source, tokenizer.token_to_id(source)), ("</s>", 2)])  # fmt: skip
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
                            additional_special_tokens=CODES[kind]).save_pretrained(directory)  # fmt: skip
    config = M2M100Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=32, pad_token_id=1,
        bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, scale_embedding=True,
    )  # fmt: skip
    torch.manual_seed(len(kind))
    model = M2M100ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(0, 0.5) if weights.dim() > 1 else None
    model.save_pretrained(directory)
    return model, tokenizer


def main():
    begin()
    import torch

    program = pathlib.Path(sys.argv[1]).resolve()
    outputs = set()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)

        def zoo(*words, status=0):
            done = run_zoo(program, *words, cwd=made)
            assert done.returncode == status, (words, done.returncode, done.stderr)
            return done.stdout if status == 0 else done.stderr

        for kind, tokens in CODES.items():
            model, tokenizer = make_model(made / kind, kind)
            for source in tokens:
                for target in tokens[1:]:
                    words = ["generate", kind, "--device", "cpu", "--json", "--beam", "1", "--temperature", "0",
                             "--max-new-tokens", "8", "--source-language", source.strip("_"), "--target-language",
                             target.strip("_")]  # fmt: skip
                    for text in TEXTS:
                        said = json.loads(zoo(*words, "--prompt", text))
                        ids = [tokenizer.token_to_id(source), *tokenizer.encode(text, add_special_tokens=False).ids, 2]
                        with torch.no_grad():
                            wanted = model.generate(
                                torch.tensor([ids]), max_new_tokens=8, do_sample=False, num_beams=1,
                                forced_bos_token_id=tokenizer.token_to_id(target),
                            )[0, 1:]  # fmt: skip
                        wanted = tokenizer.decode(wanted.tolist(), skip_special_tokens=True)
                        found = text_of(said)
                        assert found == wanted, (kind, source, target, text, found, wanted)
                        outputs.add(found)
            assert "is no language of this vocabulary: write a code such as" in zoo(
                "generate", kind, "--prompt", "a", "--target-language", "xx", status=2
            )
    assert len(outputs) > 8, outputs
    print(f"equal: {len(outputs)} different outputs")


def text_of(document):
    """The one output of a document of `zoo generate --json`."""
    result = document["results"][0]
    return result["outputs"][0]["text"] if "outputs" in result else result["text"]


if __name__ == "__main__":
    main()
