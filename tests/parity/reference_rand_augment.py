"""The operations of RandAugment by PIL, and their amounts by the formulas of torchvision's RandAugment with 31 bins."""

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from safetensors.torch import save_file


def affine(image, *numbers):
    return image.transform(image.size, Image.Transform.AFFINE, numbers, Image.Resampling.NEAREST, fillcolor=0)


OPERATIONS = {
    "identity": lambda image, amount: image,
    "shear_x": lambda image, amount: affine(image, 1, amount, 0, 0, 1, 0),
    "shear_y": lambda image, amount: affine(image, 1, 0, 0, amount, 1, 0),
    "translate_x": lambda image, amount: affine(image, 1, 0, -int(amount), 0, 1, 0),
    "translate_y": lambda image, amount: affine(image, 1, 0, 0, 0, 1, -int(amount)),
    "rotate": lambda image, amount: image.rotate(amount, Image.Resampling.NEAREST, fillcolor=0),
    "brightness": lambda image, amount: ImageEnhance.Brightness(image).enhance(1 + amount),
    "color": lambda image, amount: ImageEnhance.Color(image).enhance(1 + amount),
    "contrast": lambda image, amount: ImageEnhance.Contrast(image).enhance(1 + amount),
    "sharpness": lambda image, amount: ImageEnhance.Sharpness(image).enhance(1 + amount),
    "posterize": lambda image, amount: ImageOps.posterize(image, int(amount)),
    "solarize": lambda image, amount: ImageOps.solarize(image, amount),
    "autocontrast": lambda image, amount: ImageOps.autocontrast(image),
    "equalize": lambda image, amount: ImageOps.equalize(image),
}


def amounts(height, width):
    """31 amounts of each operation."""
    bins = 31
    none = torch.zeros(bins, dtype=torch.float64)

    def up_to(most):
        return torch.linspace(0, most, bins, dtype=torch.float64)

    return {
        "identity": none, "autocontrast": none, "equalize": none,
        "shear_x": up_to(0.3), "shear_y": up_to(0.3), "rotate": up_to(30.0),
        "translate_x": up_to(150.0 / 331.0 * width), "translate_y": up_to(150.0 / 331.0 * height),
        "brightness": up_to(0.9), "color": up_to(0.9), "contrast": up_to(0.9), "sharpness": up_to(0.9),
        "posterize": (8 - (torch.arange(bins) / ((bins - 1) / 4)).round()).to(torch.float64),
        "solarize": torch.linspace(255.0, 0.0, bins, dtype=torch.float64),
    }  # fmt: skip


def images():
    """Grey and coloured ones: smooth with noise, dark with few values, one value only, hardly any pixels."""
    generator = np.random.default_rng(3)
    for channels in (1, 3):
        slope = np.linspace(30, 220, 23 * 18 * channels).reshape(23, 18, channels)
        yield slope + generator.normal(0, 25, slope.shape)
        yield generator.choice([0, 7, 90], (31, 32, channels))
        yield generator.exponential(40, (40, 37, channels))
        yield np.full((5, 6, channels), 77)
        yield generator.integers(0, 256, (2, 3, channels))


def as_tensor(image):
    pixels = torch.from_numpy(np.array(image))
    return (pixels.unsqueeze(0) if pixels.dim() == 2 else pixels.permute(2, 0, 1)).contiguous()


def rand_augment(out):
    tensors = {}
    for number, pixels in enumerate(images()):
        pixels = np.clip(pixels, 0, 255).astype(np.uint8)
        image = Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels)
        tensors[f"image/{number}"] = as_tensor(image)
        for name, of_bins in amounts(*pixels.shape[:2]).items():
            tensors[f"amounts/{number}/{name}"] = of_bins.clone()
            for bin_ in (0, 4, 9, 17, 30):
                for sign in (1, -1):
                    amount = float(of_bins[bin_]) * sign
                    if sign < 0 and name in ("posterize", "solarize"):
                        continue
                    tensors[f"result/{number}/{name}/{bin_ * sign:+d}"] = as_tensor(OPERATIONS[name](image, amount))
    save_file(tensors, out / "rand_augment.safetensors")


CASES = [rand_augment]
