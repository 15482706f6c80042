"""Shared by the reference scripts: writes one case into one safetensors file. make_references.py runs the scripts.

A case file holds `param/NAME` and `grad/NAME` under the names of the C++ modules, `input/NAME`, `grad_input/NAME`,
`output/NAME`, and `upstream/NAME`, the gradient with respect to each output.
"""

import torch
from safetensors.torch import save_file


def plain(parameter):
    """A parameter that has the same shape on both sides."""
    return (lambda p: p, parameter)


def transposed(parameter):
    return (lambda p: p.t(), parameter)


def rows(parameter, begin, end):
    return (lambda p: p[begin:end], parameter)


def columns_transposed(parameter, begin, end):
    """Columns of a matrix stored as (in, out), as rows of a matrix stored as (out, in)."""
    return (lambda p: p[:, begin:end].t(), parameter)


def concatenated(*parameters):
    return (lambda *ps: torch.cat(ps, 0), *parameters)


def linear(name, module):
    """The entries of a torch.nn.Linear."""
    entries = {f"{name}.weight": plain(module.weight)}
    if module.bias is not None:
        entries[f"{name}.bias"] = plain(module.bias)
    return entries


def normal_(module, std=0.3):
    """Random values for every parameter, including parameters that start as 0 or 1."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            offset = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.normal_(offset, std)
    return module


def plain_experts(model):
    """Mixtures of experts by plain products: the default of transformers 5 wants widths that are multiples of four."""
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    return model


def contiguous(tensor):
    return tensor.detach().clone().contiguous()


def write_case(directory, name, *, inputs, outputs, parameters=None, loss=None):
    """Backpropagates and writes a case.

    inputs, outputs: name → tensor. Inputs that require a gradient get `grad_input/`.
    parameters: name in C++ → (function, reference parameters…). The function rearranges the reference's parameters and
    their gradients into ours.
    loss: the tensor to backpropagate; default: the sum of all outputs times random upstream gradients.
    """
    parameters = parameters or {}
    tensors = {f"input/{key}": contiguous(value) for key, value in inputs.items()}
    differentiable = {key: value for key, value in outputs.items() if value.requires_grad}
    if loss is None and differentiable:
        upstream = {key: torch.randn(value.shape) for key, value in differentiable.items()}
        tensors |= {f"upstream/{key}": value for key, value in upstream.items()}
        loss = sum((differentiable[key] * upstream[key]).sum() for key in differentiable)
    if loss is not None:
        loss.backward()
    tensors |= {f"output/{key}": contiguous(value) for key, value in outputs.items()}
    for key, value in inputs.items():
        if value.requires_grad:
            tensors[f"grad_input/{key}"] = contiguous(value.grad)
    for key, (arrange, *references) in parameters.items():
        tensors[f"param/{key}"] = contiguous(arrange(*references))
        tensors[f"grad/{key}"] = contiguous(arrange(*(reference.grad for reference in references)))
    save_file(tensors, directory / f"{name}.safetensors")
