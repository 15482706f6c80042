"""Ten steps of the optimisers on given gradients: torch.optim's Adafactor and Muon (with AdamW for the parameters that
Muon does not take), and Lion by the formula of the paper.

A case holds `param/NAME`, `input/NAME_STEP` with the gradients, and `output/NAME_STEP` with the parameters after each
step. The learning rate falls from step to step, as in a schedule.
"""

import torch
from reference import contiguous
from safetensors.torch import save_file

STEPS = 10
SHAPES = {
    "hidden.tall": (24, 10),
    "hidden.wide": (12, 40),
    "hidden.square": (16, 16),
    "table": (20, 8),
    "cube": (3, 5, 4),
    "bias": (11,),
}


def lr_factor(step):
    return 1 - 0.07 * step


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                c = beta1 * m + (1 - beta1) * p.grad
                p -= group["lr"] * (torch.sign(c) + group["weight_decay"] * p)
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


def write(out, name, make_optimizers):
    parameters = {key: torch.randn(shape).requires_grad_() for key, shape in SHAPES.items()}
    tensors = {f"param/{key}": contiguous(value) for key, value in parameters.items()}
    optimizers = make_optimizers(parameters)
    rates = [(group, group["lr"]) for optimizer in optimizers for group in optimizer.param_groups]
    for step in range(STEPS):
        for key, value in parameters.items():
            # The size depends on the parameter and rises with the steps, so that clipping takes effect.
            value.grad = torch.randn(value.shape) * len(key) * 0.1 * 1.5**step
            tensors[f"input/{key}_{step}"] = contiguous(value.grad)
        for group, lr in rates:
            group["lr"] = lr * lr_factor(step)
        for optimizer in optimizers:
            optimizer.step()
        tensors |= {f"output/{key}_{step}": contiguous(value) for key, value in parameters.items()}
    save_file(tensors, out / f"{name}.safetensors")


def groups(parameters, decay, is_decayed):
    """Two groups: parameters with weight decay, and parameters without."""
    wanted = lambda flag: [p for key, p in parameters.items() if is_decayed(key, p) == flag]
    return [{"params": wanted(True), "weight_decay": decay}, {"params": wanted(False), "weight_decay": 0.0}]


def is_matrix(key, parameter):
    return parameter.dim() >= 2


def adafactor(out):
    write(out, "adafactor", lambda p: [torch.optim.Adafactor(groups(p, 0.1, is_matrix), lr=0.3)])
    write(
        out, "adafactor_options",
        lambda p: [
            torch.optim.Adafactor(groups(p, 0.1, is_matrix), lr=0.05, beta2_decay=-0.5, eps=(None, 1.2), d=1.05)
        ],
    )  # fmt: skip


def lion(out):
    write(out, "lion", lambda p: [Lion(groups(p, 0.3, is_matrix), lr=0.02, betas=(0.9, 0.99), weight_decay=0)])


def muon(out):
    def make(parameters, decay=0.1, **options):
        hidden = {key: p for key, p in parameters.items() if key.startswith("hidden.")}
        rest = {key: p for key, p in parameters.items() if key not in hidden}
        is_decayed = lambda key, p: p.dim() >= 2 and key != "table"
        return [
            torch.optim.Muon(hidden.values(), lr=0.05, weight_decay=decay, **options),
            torch.optim.AdamW(groups(rest, decay, is_decayed), lr=0.01, betas=(0.9, 0.98), eps=1e-8),
        ]

    write(out, "muon_original", make)
    write(out, "muon_match_rms_adamw", lambda p: make(p, adjust_lr_fn="match_rms_adamw"))
    write(out, "muon_options", lambda p: make(p, decay=0.0, momentum=0.8, nesterov=False, ns_steps=3))


CASES = [adafactor, lion, muon]
