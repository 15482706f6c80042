"""Models of SentencePiece by transformers' own ("slow") tokenizers: T5, Pegasus, Llama, Marian."""

import io
import json

import sentencepiece
from reference_hub_tokenizers import CORPUS, write
from transformers import LlamaTokenizer, MarianTokenizer, PegasusTokenizer, SiglipTokenizer, T5Tokenizer


def model(**options):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=written, minloglevel=3,
                                             num_threads=1, **options)
    return written.getvalue()


def places_by(tokenizer, processor):
    """Where sentencepiece says that tokens stand, between the added tokens that transformers finds."""

    def places(text):
        parts = tokenizer.tokens_trie.split(text)
        added = [tokenizer.added_tokens_decoder.get(tokenizer.added_tokens_encoder.get(part)) for part in parts]
        found, begin = [], 0
        for i, part in enumerate(parts):
            end = begin + len(part)
            if added[i]:
                found.append((begin, end))
            else:
                if i > 0 and added[i - 1].rstrip:
                    part = part.lstrip()
                at = end - len(part)
                if i + 1 < len(parts) and added[i + 1].lstrip:
                    part = part.rstrip()
                code = part[:part.index("<<") + 2] if part.startswith(">>") and "<<" in part else ""
                if code and hasattr(tokenizer, "spm_source"):
                    found.append((at, at + len(code)))
                    part, at = part[len(code):], at + len(code)
                for piece in processor.encode(part, out_type="immutable_proto").pieces:
                    found.append((at + piece.begin, at + piece.end))
            begin = end
        return found

    return places


def decode_by_sentencepiece(tokenizer):
    """Like SentencePiece itself and tokenizers, which take one blank from a text's beginning. The slow tokenizers take more."""
    tokenizer.convert_tokens_to_string = tokenizer.sp_model.decode


def t5(directory):
    options = {"vocab_size": 600, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "pad_piece": "<pad>"}
    for name, more, keep in [("t5", {}, None), ("t5-20", {"extra_ids": 20}, None), ("t5-plain", {}, ("spiece.model",))]:
        folder = directory / name
        folder.mkdir()
        (folder / "spiece.model").write_bytes(model(**options))
        tokenizer = T5Tokenizer.from_pretrained(folder, **more)
        if not keep:
            tokenizer.save_pretrained(folder)
        decode_by_sentencepiece(tokenizer)
        write(directory, name, keep=keep, reference=tokenizer, n=700, places_of=places_by(tokenizer, tokenizer.sp_model),
              more=["<extra_id_0>", " <extra_id_19> x", "</s>", "<pad>", "<extra_id_1><extra_id_0>"])


def siglip(directory):
    folder = directory / "siglip"
    folder.mkdir()
    options = {"vocab_size": 600, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "pad_piece": "<pad>"}
    (folder / "spiece.model").write_bytes(model(**options))
    tokenizer = SiglipTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write(directory, "siglip", reference=tokenizer, n=700,
          more=["</s>", " </s> a", "<unk>", "a</s>b", "To BE, or not!", "\u2581a", "  a", "x-y. z", "\u0130 \u03a3"])


def pegasus(directory):
    """The class of version 4. Its own pieces of the special tokens' texts, such as </s>, have other ids than the tokens."""
    options = {"vocab_size": 600, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    for name, more, keep in [("pegasus", {}, None), ("pegasus-9", {"offset": 9}, None),
                             ("pegasus-plain", {}, ("spiece.model", "config.json"))]:
        folder = directory / name
        folder.mkdir()
        (folder / "spiece.model").write_bytes(model(**options))
        tokenizer = PegasusTokenizer.from_pretrained(folder, **more)
        if not keep:
            tokenizer.save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps({"model_type": "pegasus"}))
        decode_by_sentencepiece(tokenizer)
        write(directory, name, keep=keep, reference=tokenizer, n=700, frames=False, places_of=places_by(tokenizer, tokenizer.sp_model),
              more=["<mask_1>", " <mask_2> x", "</s>", "<pad>", "<unk_2><unk_5>", "<unk>"])


def llama(directory):
    folder = directory / "llama"
    folder.mkdir()
    options = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity",
               "remove_extra_whitespaces": False, "vocab_size": 800}
    (folder / "tokenizer.model").write_bytes(model(**options))
    LlamaTokenizer(str(folder / "tokenizer.model"), legacy=True).save_pretrained(folder)
    tokenizer = LlamaTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(folder)
    decode_by_sentencepiece(tokenizer)
    write(directory, "llama", reference=tokenizer, n=700, places_of=places_by(tokenizer, tokenizer.sp_model), more=["<s>", "</s> a", "<unk>", "<new>", "a<new>b"])


def marian(directory):
    folder = directory / "marian"
    folder.mkdir()
    pieces = {}
    for name, size in [("source", 500), ("target", 400)]:
        content = model(vocab_size=size)
        (folder / f"{name}.spm").write_bytes(content)
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        pieces |= {processor.IdToPiece(i): None for i in range(3, len(processor))}
    tokens = ["</s>", "<unk>", *sorted(pieces), ">>fra<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer", "source_lang": "en",
                                                              "target_lang": "de"}))
    tokenizer = MarianTokenizer.from_pretrained(folder)
    write(directory, "marian", reference=tokenizer, n=700, frames=False,
          places_of=places_by(tokenizer, tokenizer.spm_source),
          more=["</s>", "<pad>", ">>fra<< to be", ">>x<< y", ">> "])


CASES = [t5, siglip, llama, marian, pegasus]
