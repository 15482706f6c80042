"""Reference logits, losses and gradients of vision models, from transformers."""

import io

import numpy as np
import torch
from PIL import Image, ImageOps
from reference import linear, normal_, plain, write_case
from safetensors.torch import save_file
from torch import nn
from transformers import ViTConfig
from transformers.models.vit.modeling_vit import ViTForImageClassification, ViTModel

# The shape of small_vit() in vision_parity_test.cpp.
D, HEADS, WIDTH, LAYERS, CLASSES = 24, 4, 40, 2, 5
IMAGE, PATCH, CHANNELS, B = 12, 4, 3, 3


def shaped(parameter, *shape):
    """A parameter that has other dimensions on the other side."""
    return (lambda p: p.reshape(shape), parameter)


def vit_parameters(vit):
    table = vit.embeddings
    convolution = table.patch_embeddings.projection
    entries = {
        "embedder.class_token": shaped(table.cls_token, 1, D),
        "embedder.positions": shaped(table.position_embeddings, -1, D),
        "embedder.projection.weight": shaped(convolution.weight, D, -1),
        "embedder.projection.bias": plain(convolution.bias),
    }
    for i, layer in enumerate(vit.layers):
        at, attention = f"encoder.layers.{i}", layer.attention
        for name, module in {
            "self_attention.q": attention.q_proj,
            "self_attention.k": attention.k_proj,
            "self_attention.v": attention.v_proj,
            "self_attention.out": attention.o_proj,
            "feed_forward.up": layer.mlp.fc1,
            "feed_forward.down": layer.mlp.fc2,
            "residual.self_attention_norm": layer.layernorm_before,
            "residual.feed_forward_norm": layer.layernorm_after,
        }.items():
            entries |= linear(f"{at}.{name}", module)
    return entries | linear("encoder.final_norm", vit.layernorm)


def vit(out):
    config = ViTConfig(
        hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=WIDTH,
        image_size=IMAGE, patch_size=PATCH, num_channels=CHANNELS, num_labels=CLASSES, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager",
    )  # fmt: skip
    # The last two sizes have positions between those of the table.
    for name, height, width in (("vit", IMAGE, IMAGE), ("vit_larger", 20, 24), ("vit_smaller", 8, 4)):
        model = normal_(ViTForImageClassification(config))
        images, targets = torch.randn(B, CHANNELS, height, width), torch.randint(0, CLASSES, (B,))
        result = model(pixel_values=images, labels=targets, interpolate_pos_encoding=True)
        write_case(
            out, name, inputs={"images": images, "targets": targets},
            outputs={"logits": result.logits, "loss": result.loss}, loss=result.loss,
            parameters=vit_parameters(model.vit) | linear("head.classifier", model.classifier),
        )  # fmt: skip

    model = normal_(ViTModel(config))
    images = torch.randn(B, CHANNELS, IMAGE, IMAGE)
    result = model(pixel_values=images)
    write_case(
        out, "vit_headless", inputs={"images": images},
        outputs={"pooled": result.pooler_output, "hidden": result.last_hidden_state},
        loss=result.pooler_output.square().sum(),
        parameters=vit_parameters(model) | linear("head.pooler", model.pooler.dense),
    )  # fmt: skip


class Mixer(nn.Module):
    """MLP-Mixer as in the paper's appendix E: patches, layers that mix tokens and channels in turns, a mean."""

    def __init__(self, n_tokens, token_width):
        super().__init__()

        def mlp(width, inner):
            return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

        self.patches = nn.Conv2d(CHANNELS, D, PATCH, stride=PATCH)
        self.norms = nn.ModuleList(nn.LayerNorm(D, eps=1e-12) for _ in range(2 * LAYERS + 1))
        self.of_tokens = nn.ModuleList(mlp(n_tokens, token_width) for _ in range(LAYERS))
        self.of_channels = nn.ModuleList(mlp(D, WIDTH) for _ in range(LAYERS))
        self.classifier = nn.Linear(D, CLASSES)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        for i in range(LAYERS):
            x = x + self.of_tokens[i](self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.of_channels[i](self.norms[2 * i + 1](x))
        return self.classifier(self.norms[-1](x).mean(1))


def mixer(out):
    model = normal_(Mixer((IMAGE // PATCH) ** 2, 7))
    entries = {"embedder.projection.weight": shaped(model.patches.weight, D, -1),
               "embedder.projection.bias": plain(model.patches.bias)}  # fmt: skip
    for i in range(LAYERS):
        at = f"encoder.layers.{i}"
        for name, module in {
            "self_attention.network.up": model.of_tokens[i][0],
            "self_attention.network.down": model.of_tokens[i][2],
            "feed_forward.up": model.of_channels[i][0],
            "feed_forward.down": model.of_channels[i][2],
            "residual.self_attention_norm": model.norms[2 * i],
            "residual.feed_forward_norm": model.norms[2 * i + 1],
        }.items():
            entries |= linear(f"{at}.{name}", module)
    entries |= linear("encoder.final_norm", model.norms[-1]) | linear("head.classifier", model.classifier)
    images, targets = torch.randn(B, CHANNELS, IMAGE, IMAGE), torch.randint(0, CLASSES, (B,))
    logits = model(images)
    loss = nn.functional.cross_entropy(logits, targets)
    write_case(
        out, "mixer", inputs={"images": images, "targets": targets}, outputs={"logits": logits, "loss": loss},
        loss=loss, parameters=entries,
    )  # fmt: skip


def image_files(out):
    """Files in unusual formats, and what PIL reads from them: files/NAME is the bytes, grey/ and rgb/ the pixels."""
    generator = np.random.default_rng(7)
    smooth = np.linspace(0, 255, 23 * 17 * 3).reshape(23, 17, 3) + generator.normal(0, 8, (23, 17, 3))
    colours = Image.fromarray(smooth.clip(0, 255).astype(np.uint8))
    transparent = colours.copy()
    transparent.putalpha(Image.fromarray(generator.integers(0, 256, (23, 17), dtype=np.uint8)))
    deep = Image.fromarray(generator.integers(0, 2**16, (23, 17), dtype=np.uint16))
    palette = transparent.quantize(16)
    images = {
        "rgb.png": colours,
        "grey.png": colours.convert("L"),
        "grey_alpha.png": transparent.convert("LA"),
        "rgba.png": transparent,
        "bits.png": colours.convert("1"),
        "palette.png": colours.quantize(16),
        "palette_alpha.png": palette,
        "deep.png": deep,
        "rgb.jpg": colours,
        "grey.jpg": colours.convert("L"),
        "cmyk.jpg": colours.convert("CMYK"),
        "progressive.jpg": colours,
        "rgb.webp": colours,
        "rgba.webp": transparent,
    }
    images |= {f"turned_{orientation}.jpg": colours for orientation in range(1, 9)}
    images |= {"turned_6.png": colours, "turned_8.webp": colours}
    tensors = {}
    for name, image in images.items():
        file = io.BytesIO()
        options = {
            "jpg": {"quality": 95, "subsampling": 0, "progressive": name.startswith("prog")},
            "png": {},
            "webp": {"lossless": True, "exact": True},
        }[name.split(".")[1]]
        if name.startswith("turned"):
            options["exif"] = Image.Exif()
            options["exif"][0x0112] = int(name[7])
        image.save(file, {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}[name.split(".")[1]], **options)
        tensors[f"files/{name}"] = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        read = Image.open(io.BytesIO(file.getvalue()))
        if name == "deep.png":  # PIL does not reduce 16 bits to 8 as other programs do
            grey = Image.fromarray((np.array(read) >> 8).astype(np.uint8))
            rgb = grey.convert("RGB")
        else:
            read = ImageOps.exif_transpose(read).convert("RGBA")
            white = Image.new("RGBA", read.size, "white")
            rgb = Image.alpha_composite(white, read).convert("RGB")
            grey = rgb.convert("L")
        tensors[f"grey/{name}"] = torch.from_numpy(np.array(grey)).unsqueeze(0)
        tensors[f"rgb/{name}"] = torch.from_numpy(np.array(rgb)).permute(2, 0, 1).contiguous()
    save_file(tensors, out / "image_files.safetensors")


CASES = [vit, mixer, image_files]
