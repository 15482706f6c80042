"""Cases of reference_interop.py: models of pictures and texts."""

import io
import json
import pathlib
import random
import shutil
import tempfile

import reference_interop as shared
import sentencepiece
import torch
from PIL import Image
from reference import contiguous
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

LABELS = ["a dog", "The cat sat on it.", "trees"]
TEMPLATE = "a photo of {}, it was 1984"


def clip_files():
    """The vocabulary and the merges of a tokenizer as that of CLIP, whose words end with a suffix."""
    tokenizer = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ])  # fmt: skip
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=alphabet, end_of_word_suffix="</w>"
    )
    tokenizer.train_from_iterator([shared.TEXT], trainer)
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.model.save(directory)
        vocab = json.loads((pathlib.Path(directory) / "vocab.json").read_text())
        merges = (pathlib.Path(directory) / "merges.txt").read_text()
    # The two special tokens have the highest ids.
    for token in ("<|startoftext|>", "<|endoftext|>"):
        vocab[token] = len(vocab)
    return json.dumps(vocab), merges


def clip_tokenizer(out, name):
    from transformers import CLIPTokenizerFast

    directory = out / f"{name}_files"
    directory.mkdir()
    vocab, merges = clip_files()
    (directory / "vocab.json").write_text(vocab)
    (directory / "merges.txt").write_text(merges)
    return CLIPTokenizerFast.from_pretrained(directory, model_max_length=13)


def picture(out, name, height, width):
    """A smooth picture, whose resized pixels depend little on how programs round."""
    small = torch.rand(1, 3, 4, 5)
    large = torch.nn.functional.interpolate(small, (height, width), mode="bicubic").clamp(0, 1)[0]
    made = Image.fromarray((large * 255).byte().permute(1, 2, 0).numpy())
    made.save(out / f"{name}.png")
    return made


def shape(draw, prefix=""):
    heads, width = draw.choice([2, 3, 5]), draw.choice([4, 6])
    return {
        "hidden_size": heads * width, "num_attention_heads": heads, "intermediate_size": draw.choice([13, 22, 37]),
        "num_hidden_layers": draw.choice([1, 2, 3]),
    }  # fmt: skip


def compared(out, name, model_class, config, tokenizer, processor, seed, *, ids, lengths, padded, mask):
    """Writes a model and what it says of random texts and pictures, and of a picture in a file. `padded`: the texts as
    transformers reads them."""
    torch.manual_seed(seed)
    model = shared.random_weights(model_class._from_config(config, attn_implementation="eager"))
    with torch.no_grad():
        model.logit_scale.fill_(1.3)
    dtype = [torch.float32, torch.bfloat16, torch.float16][seed % 3]
    model = shared.write_model(out, name, model, tokenizer, dtype, sharded=seed % 2 == 1)
    processor.save_pretrained(out / name)
    size = config.vision_config.image_size
    images = torch.randn(shared.B, 3, size, size)
    result = model(input_ids=padded, pixel_values=images, return_loss=True, **mask)
    tensors = {
        "ids": ids, "lengths": lengths, "images": images, "logits_per_image": result.logits_per_image,
        "logits_per_text": result.logits_per_text, "text_vectors": vectors(model.get_text_features(padded, **mask)),
        "image_vectors": vectors(model.get_image_features(images)), "loss": result.loss.detach(),
    }  # fmt: skip
    result.loss.backward()
    shot = picture(out, name, *[(31, 47), (40, 29)][seed % 2])
    pixels = processor(shot, return_tensors="pt")["pixel_values"]
    padding = {"padding": "max_length"} if "Siglip" in model_class.__name__ else {"padding": True}
    with torch.no_grad():
        for key, texts in {"": LABELS, "template_": [TEMPLATE.format(label) for label in LABELS]}.items():
            inputs = tokenizer(texts, return_tensors="pt", truncation=True, **padding)
            scores = model(input_ids=inputs["input_ids"], pixel_values=pixels).logits_per_image
            said = scores.sigmoid() if "Siglip" in model_class.__name__ else scores.softmax(1)
            tensors |= {f"{key}tokens": inputs["input_ids"], f"{key}probabilities": said}
    tensors |= {"pixels": pixels}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    model.save_pretrained(out / "gradients" / name)
    tokenizer.save_pretrained(out / "gradients" / name)
    processor.save_pretrained(out / "gradients" / name)
    save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}.safetensors")


def vectors(found):
    """Of version 5, which returns more."""
    return found if isinstance(found, torch.Tensor) else found.pooler_output


def clip(out):
    """The last one is of the first files, in which the highest id ends a text."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTextConfig, CLIPVisionConfig

    for seed in range(3):
        draw = random.Random(f"clip {seed}")
        name = f"clip_{seed}"
        tokenizer = clip_tokenizer(out, name)
        end = tokenizer.eos_token_id
        act = ["quick_gelu", "gelu", "quick_gelu"][seed]
        size = [20, 21, 20][seed]
        text = CLIPTextConfig(
            **shape(draw), vocab_size=len(tokenizer), max_position_embeddings=13, hidden_act=act,
            eos_token_id=2 if seed == 2 else end,
        )  # fmt: skip
        vision = CLIPVisionConfig(**shape(draw), image_size=size, patch_size=[5, 7, 4][seed], hidden_act=act)
        config = CLIPConfig(
            text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=draw.choice([7, 11])
        )
        processor = CLIPImageProcessor(
            size={"shortest_edge": size + 3 * (seed % 2)}, crop_size={"height": size, "width": size}
        )
        lengths = shared.LENGTHS
        ids = torch.randint(0, end, (shared.B, shared.T))
        ids[torch.arange(shared.B), lengths - 1] = end
        ids[0, 4] = end  # the first one counts
        mask = shared.visible(lengths, shared.T)
        padded = ids * mask + end * (1 - mask)
        compared(out, name, CLIPModel, config, tokenizer, processor, seed, ids=ids, lengths=lengths, padded=padded,
                 mask={"attention_mask": mask})  # fmt: skip


def as_published(out):
    """The first files of CLIP: numbers of positions, and the configurations of the encoders once more, which count."""
    positions = {
        "text_model.embeddings.position_ids": torch.arange(13)[None],
        "vision_model.embeddings.position_ids": torch.arange(17)[None],
    }  # fmt: skip
    written = json.loads((out / "clip_0" / "config.json").read_text())
    shared.stored_as(out, "clip_published_0", "clip_0", more=positions, config={
        "text_config_dict": written["text_config"], "vision_config_dict": written["vision_config"],
        "text_config": written["text_config"] | {"num_attention_heads": 1}, "vision_config": None,
    })  # fmt: skip
    shutil.copy(out / "clip_0.png", out / "clip_published_0.png")
    shutil.copytree(out / "gradients" / "clip_0", out / "gradients" / "clip_published_0")


def siglip_tokenizer(out, name):
    """Pieces in lower case without punctuation; the padding is the end token."""
    from transformers import SiglipTokenizer

    directory = out / f"{name}_files"
    directory.mkdir()
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(shared.TEXT.lower().split("\n") * 3), model_writer=written, minloglevel=3,
        num_threads=1, vocab_size=90, hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        pad_piece="<pad>",
    )  # fmt: skip
    (directory / "spiece.model").write_bytes(written.getvalue())
    return SiglipTokenizer.from_pretrained(directory, model_max_length=15)


def siglip(out):
    """Texts are padded, and the padding is read. The second one has pictures that its patches do not fill."""
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipTextConfig, SiglipVisionConfig

    for seed in range(3):
        draw = random.Random(f"siglip {seed}")
        name = f"siglip_{seed}"
        tokenizer = siglip_tokenizer(out, name)
        size, patch = [(20, 5), (23, 7), (16, 4)][seed]
        act = ["gelu_pytorch_tanh", "gelu", "gelu_pytorch_tanh"][seed]
        vision = SiglipVisionConfig(**shape(draw), image_size=size, patch_size=patch, hidden_act=act)
        text = SiglipTextConfig(
            **shape(draw), vocab_size=len(tokenizer), max_position_embeddings=15, hidden_act=act,
            projection_size=vision.hidden_size,
        )  # fmt: skip
        config = SiglipConfig(text_config=text.to_dict(), vision_config=vision.to_dict())
        processor = SiglipImageProcessor(size={"height": size, "width": size})
        lengths = shared.LENGTHS
        ids = torch.randint(2, len(tokenizer), (shared.B, shared.T))
        padded = torch.full((shared.B, 15), tokenizer.pad_token_id)
        padded[:, : shared.T] = torch.where(shared.visible(lengths, shared.T) == 1, ids, tokenizer.pad_token_id)
        compared(out, name, SiglipModel, config, tokenizer, processor, seed, ids=ids, lengths=lengths, padded=padded,
                 mask={})  # fmt: skip


CASES = [clip, as_published, siglip]
