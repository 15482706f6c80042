"""Reference logits, losses and gradients of vision models, from transformers."""

import importlib
import io
import json

import numpy as np
import PIL
import torch
import transformers
from PIL import Image, ImageOps
from reference import linear, normal_, plain, write_case
from safetensors.torch import save_file
from torch import nn
from transformers import Dinov2Config, DeiTConfig, ViTConfig
from transformers.models.deit.modeling_deit import DeiTForImageClassification, DeiTForImageClassificationWithTeacher
from transformers.models.dinov2.modeling_dinov2 import Dinov2ForImageClassification
from transformers.models.vit.modeling_vit import ViTForImageClassification, ViTModel

# The shape of small_vit() in vision_parity_test.cpp.
D, HEADS, WIDTH, LAYERS, CLASSES = 24, 4, 40, 2, 5
IMAGE, PATCH, CHANNELS, B = 12, 4, 3, 3


def shaped(parameter, *shape):
    """A parameter that has other dimensions on the other side."""
    return (lambda p: p.reshape(shape), parameter)


def picture_parameters(body):
    """What stands before and after the layers."""
    table = body.embeddings
    convolution = table.patch_embeddings.projection
    return {
        "embedder.class_token": shaped(table.cls_token, 1, D),
        "embedder.positions": shaped(table.position_embeddings, -1, D),
        "embedder.projection.weight": shaped(convolution.weight, D, -1),
        "embedder.projection.bias": plain(convolution.bias),
    } | linear("encoder.final_norm", body.layernorm)


def attention_parameters(at, attention):
    names = {"q": attention.q_proj, "k": attention.k_proj, "v": attention.v_proj, "out": attention.o_proj}
    entries = {}
    for name, module in names.items():
        entries |= linear(f"{at}.self_attention.{name}", module)
    return entries


def vit_parameters(vit):
    entries = picture_parameters(vit)
    for i, layer in enumerate(vit.layers):
        at = f"encoder.layers.{i}"
        entries |= attention_parameters(at, layer.attention)
        for name, module in {
            "feed_forward.up": layer.mlp.fc1,
            "feed_forward.down": layer.mlp.fc2,
            "residual.self_attention_norm": layer.layernorm_before,
            "residual.feed_forward_norm": layer.layernorm_after,
        }.items():
            entries |= linear(f"{at}.{name}", module)
    return entries


def dinov2_parameters(dinov2):
    entries = picture_parameters(dinov2)
    for i, layer in enumerate(dinov2.encoder.layer):
        at = f"encoder.layers.{i}"
        entries |= attention_parameters(at, layer.attention)
        for name, module in {
            "feed_forward.up": layer.mlp.fc1,
            "feed_forward.down": layer.mlp.fc2,
            "residual.self_attention_norm": layer.norm1,
            "residual.feed_forward_norm": layer.norm2,
        }.items():
            entries |= linear(f"{at}.{name}", module)
        entries[f"{at}.residual.self_attention_scale"] = plain(layer.layer_scale1.lambda1)
        entries[f"{at}.residual.feed_forward_scale"] = plain(layer.layer_scale2.lambda1)
    return entries


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


SIZES = (("", IMAGE, IMAGE), ("_larger", 20, 24), ("_smaller", 8, 4))


def picture_case(out, name, model, height, width, parameters, **options):
    images, targets = torch.randn(B, CHANNELS, height, width), torch.randint(0, CLASSES, (B,))
    logits = model(pixel_values=images, **options).logits
    loss = torch.nn.functional.cross_entropy(logits, targets)
    write_case(
        out, name, inputs={"images": images, "targets": targets}, outputs={"logits": logits, "loss": loss}, loss=loss,
        parameters=parameters,
    )  # fmt: skip


def deit(out):
    config = DeiTConfig(
        hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=WIDTH,
        image_size=IMAGE, patch_size=PATCH, num_channels=CHANNELS, num_labels=CLASSES, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager",
    )  # fmt: skip
    for name, model_class in (
        ("deit", DeiTForImageClassification),
        ("deit_teacher", DeiTForImageClassificationWithTeacher),
    ):
        for size, height, width in SIZES:
            model = normal_(model_class(config))
            table = model.deit.embeddings
            parameters = vit_parameters(model.deit)
            parameters["embedder.distillation_token"] = shaped(table.distillation_token, 1, D)
            if name == "deit":
                parameters |= linear("head.classifier", model.classifier)
            else:
                parameters |= linear("head.classifier", model.cls_classifier)
                parameters |= linear("head.distillation_classifier", model.distillation_classifier)
            picture_case(out, name + size, model, height, width, parameters, interpolate_pos_encoding=True)


def dinov2(out):
    config = Dinov2Config(
        hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, mlp_ratio=2, image_size=IMAGE,
        patch_size=PATCH, num_channels=CHANNELS, num_labels=CLASSES, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, use_mask_token=False, layer_norm_eps=1e-12, attn_implementation="eager",
    )  # fmt: skip
    for size, height, width in SIZES:
        model = normal_(Dinov2ForImageClassification(config))
        parameters = dinov2_parameters(model.dinov2) | linear("head.classifier", model.classifier)
        picture_case(out, "dinov2" + size, model, height, width, parameters)


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


FILTERS = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]  # by their numbers


def resized(out):
    """Pictures in other sizes, as Pillow makes them of bytes: FILTER/FROM/TO."""
    generator = np.random.default_rng(11)
    tensors = {}
    for height, width in ((5, 7), (64, 48), (20, 20), (37, 150), (1, 33), (33, 1)):
        picture = Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8))
        name = f"{height}x{width}"
        tensors[f"pictures/{name}"] = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        for number, kind in enumerate(FILTERS):
            for to_height, to_width in ((20, 20), (9, 70), (64, 13), (1, 1), (33, 33)):
                changed = np.array(picture.resize((to_width, to_height), number))
                tensors[f"{kind}/{name}/{to_height}x{to_width}"] = torch.from_numpy(changed).permute(2, 0, 1).contiguous()
    # Older versions take rows and columns in another order, which rounds some pixels to the other side.
    tensors["is_newest"] = torch.tensor(int(PIL.__version__.split(".")[0]) >= 13)
    save_file(tensors, out / "resized.safetensors")


def processor_of(family, name, settings):
    """An image processor of transformers, without torchvision where there is one (transformers 5)."""
    try:
        module = importlib.import_module(f"transformers.models.{family}.image_processing_pil_{family}")
        return getattr(module, f"{name}ImageProcessorPil")(**settings)
    except ImportError:
        return getattr(transformers, f"{name}ImageProcessor")(**settings)


HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
SQUARE = {"height": 16, "width": 16}
# Settings of processors for a model that reads 16 x 16 pixels.
PROCESSORS = {
    "usual": ("vit", "ViT", {"size": SQUARE}),
    "defaults": ("vit", "ViT", {"size": 16}),
    "raw": ("vit", "ViT", {"size": SQUARE, "do_normalize": False, "do_rescale": False}),
    "not_normalized": ("vit", "ViT", {"size": SQUARE, "do_normalize": False}),
    "not_rescaled": (
        "vit", "ViT", {"size": SQUARE, "do_rescale": False, "image_mean": [120.0, 127.5, 130.0], "image_std": [127.5] * 3},
    ),
    "doubled": ("vit", "ViT", {"size": SQUARE, "rescale_factor": 1 / 127.5, **HALVES}),
    "switched_off": ("vit", "ViT", {"size": SQUARE, "do_normalize": None, "do_rescale": None}),
    "list": ("vit", "ViT", {"size": [16, 16]}),
    "other_statistics": ("vit", "ViT", {"size": SQUARE, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.2, 0.3, 0.4]}),
    "converted": ("vit", "ViT", {"size": SQUARE, "do_convert_rgb": True, "resample": 0}),
    "cropped_square": ("deit", "DeiT", {"size": {"height": 20, "width": 20}, "crop_size": SQUARE}),
    "not_cropped": ("deit", "DeiT", {"size": SQUARE, "do_center_crop": False, "resample": 1}),
    "only_cropped": ("deit", "DeiT", {"do_resize": False, "crop_size": SQUARE}),
    "clip": ("clip", "CLIP", {"size": {"shortest_edge": 18}, "crop_size": SQUARE}),
    "older_clip": ("clip", "CLIP", {"size": 16, "crop_size": 16}),
    "detr": ("detr", "Detr", {"size": {"shortest_edge": 20, "longest_edge": 33}}),
    "detr_bicubic": ("detr", "Detr", {"size": {"shortest_edge": 17, "longest_edge": 29}, "resample": 3, **HALVES}),
    "older_detr": ("detr", "Detr", {"size": 24, "max_size": 37}),
}
for number, kind in enumerate(FILTERS):
    PROCESSORS[kind] = ("vit", "ViT", {"size": SQUARE, "resample": number})


def processors(out):
    """Pictures as processors of transformers prepare them: configs/NAME is the file, pixels/NAME/PICTURE the result."""
    generator = np.random.default_rng(13)

    def smooth(height, width, channels):
        noise = Image.fromarray(generator.integers(0, 256, (5, 6, channels), dtype=np.uint8).squeeze())
        return noise.resize((width, height), 2)

    pictures = {
        "same": smooth(16, 16, 3),
        "wide": smooth(23, 41, 3),
        "high": smooth(52, 19, 3),
        "small": smooth(9, 13, 3),
        "grey": smooth(30, 20, 1),
        "transparent": smooth(20, 30, 4),
        "palette": smooth(31, 17, 3).quantize(7),
    }
    tensors = {}
    for name, picture in pictures.items():
        file = io.BytesIO()
        picture.save(file, "PNG")
        tensors[f"pictures/{name}"] = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
    for name, (family, kind, settings) in PROCESSORS.items():
        processor = processor_of(family, kind, settings)
        written = settings | {"image_processor_type": f"{kind}ImageProcessor"}
        if name not in ("defaults", "switched_off", "list", "older_clip", "older_detr"):
            written = json.loads(processor.to_json_string())
        tensors[f"configs/{name}"] = torch.frombuffer(bytearray(json.dumps(written).encode()), dtype=torch.uint8)
        for picture_name, picture in pictures.items():
            pixels = processor(picture.convert("RGB"), return_tensors="pt")["pixel_values"]
            tensors[f"pixels/{name}/{picture_name}"] = pixels[0].float().contiguous()
    tensors["is_newest"] = torch.tensor(int(PIL.__version__.split(".")[0]) >= 13)
    save_file(tensors, out / "processors.safetensors")


CASES = [vit, mixer, image_files, resized, processors, deit, dinov2]
