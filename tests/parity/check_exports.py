"""Compares directories that the zoo has exported with those that it had opened:

    check_exports.py ORIGINALS EXPORTS

For every directory NAME of EXPORTS: the tensors have the same names, types and bits as in ORIGINALS/NAME, transformers
reads an equal configuration, and every other small file is the same. Where names differ, because a version of
transformers has names of its own, transformers must read the same model from both. Prints what differs.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
import transformers
from transformers import AutoConfig


def tensors_of(directory):
    return {name: tensor for path in directory.glob("*.safetensors") for name, tensor in load_file(path).items()}


def config_of(directory):
    config = AutoConfig.from_pretrained(directory).to_dict()
    for key in ("_name_or_path", "transformers_version", "_commit_hash"):
        config.pop(key, None)
    return {key: value for key, value in config.items() if value is not None}  # null is as good as absent


def loaded(directory):
    """The tensors of the model that transformers reads, which must lack nothing."""
    model_class = getattr(transformers, json.loads((directory / "config.json").read_text())["architectures"][0])
    model, report = model_class.from_pretrained(directory, output_loading_info=True)
    return model.state_dict(), report["missing_keys"]


def differences(original, exported):
    before, after = tensors_of(original), tensors_of(exported)
    if before.keys() != after.keys():
        (before, _), (after, missing) = loaded(original), loaded(exported)
        if missing:
            yield f"the export lacks {missing}"
    for name in sorted(before.keys() ^ after.keys()):
        yield f"{name} is only in the {'original' if name in before else 'export'}"
    for name in sorted(before.keys() & after.keys()):
        a, b = before[name], after[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            yield f"{name}: {a.dtype} {tuple(a.shape)}, exported as {b.dtype} {tuple(b.shape)}"
        elif not torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8)):
            yield f"{name} has other bits"
    if config_of(original) != config_of(exported):
        a, b = config_of(original), config_of(exported)
        yield "config: " + ", ".join(f"{k}: {a.get(k)} → {b.get(k)}" for k in a | b if a.get(k) != b.get(k))
    for path in original.iterdir():
        if path.suffix == ".safetensors" or path.name in ("config.json", "model.safetensors.index.json"):
            continue
        other = exported / path.name
        if not other.exists():
            yield f"{path.name} is missing"
        elif path.read_bytes() != other.read_bytes():
            yield f"{path.name} differs"


def main():
    originals, exports = map(pathlib.Path, sys.argv[1:])
    names = sorted(path.name for path in exports.iterdir())
    found = {name: list(differences(originals / name, exports / name)) for name in names}
    print(json.dumps({name: problems for name, problems in found.items() if problems}, indent=1))
    print(f"{len(names)} directories")


main()
