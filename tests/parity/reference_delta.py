"""The gated delta rule and Gated DeltaNet of transformers' Qwen3-Next, and the short convolution of LFM2."""

import torch
from reference import linear, normal_, plain, write_case
from transformers.models.lfm2.configuration_lfm2 import Lfm2Config
from transformers.models.lfm2.modeling_lfm2 import Lfm2ShortConv
from transformers.models.qwen3_next import modeling_qwen3_next as qwen
from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig

B, T, H, DK, DV = 2, 70, 3, 6, 4


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def rule(out):
    """Inputs (B, T, H, …), g = log α."""
    for name, function in (("chunk", qwen.torch_chunk_gated_delta_rule), ("recurrent", qwen.torch_recurrent_gated_delta_rule)):
        with torch.no_grad():
            k = torch.nn.functional.normalize(torch.randn(B, T, H, DK), dim=-1)
            g, beta = -torch.rand(B, T, H), torch.rand(B, T, H)
        inputs = {"q": leaf(B, T, H, DK), "k": k.requires_grad_(), "v": leaf(B, T, H, DV), "g": g.requires_grad_(),
                  "beta": beta.requires_grad_(), "before": leaf(B, H, DK, DV)}
        y, state = function(inputs["q"], inputs["k"], inputs["v"], g=inputs["g"], beta=inputs["beta"],
                            initial_state=inputs["before"], output_final_state=True)
        write_case(out, f"rule_{name}", inputs=inputs, outputs={"y": y, "sum": state})


def module(out):
    d_model, width = 20, 6
    for name, key_heads, value_heads in (("net", 4, 4), ("net_grouped", 2, 4)):
        config = Qwen3NextConfig(
            hidden_size=d_model, linear_num_key_heads=key_heads, linear_num_value_heads=value_heads,
            linear_key_head_dim=width, linear_value_head_dim=width, linear_conv_kernel_dim=4, rms_norm_eps=1e-5,
        )  # fmt: skip
        net = normal_(qwen.Qwen3NextGatedDeltaNet(config, layer_idx=0))
        group = value_heads // key_heads
        parts = {"q": (0, width), "k": (width, 2 * width), "v": (2 * width, (2 + group) * width),
                 "gate": ((2 + group) * width, (2 + 2 * group) * width)}

        def part(first, last):
            """Rows of all heads of a matrix whose rows are sorted by key head."""
            return lambda p: p.view(key_heads, -1, d_model)[:, first:last].reshape(-1, d_model)

        parameters = {f"{ours}.weight": (part(*rows), net.in_proj_qkvz.weight) for ours, rows in parts.items()}
        parameters["beta.weight"] = (part(0, group), net.in_proj_ba.weight)
        parameters["decay.weight"] = (part(group, 2 * group), net.in_proj_ba.weight)
        parameters["conv.weight"] = (lambda p: p.squeeze(1), net.conv1d.weight)
        parameters |= {"A_log": plain(net.A_log), "dt_bias": plain(net.dt_bias), "norm.weight": plain(net.norm.weight)}
        parameters |= linear("out", net.out_proj)
        x = leaf(B, T, d_model)
        write_case(out, name, inputs={"x": x}, outputs={"y": net(x)}, parameters=parameters)


def convolution(out):
    """The short convolution of LFM2 between its two gates."""
    config = Lfm2Config(hidden_size=20, conv_L_cache=3, conv_bias=False, num_hidden_layers=1)
    net = normal_(Lfm2ShortConv(config, layer_idx=0))
    parameters = {"conv.weight": (lambda p: p.squeeze(1), net.conv.weight)}
    parameters |= linear("in", net.in_proj) | linear("out", net.out_proj)
    x = leaf(B, T, 20)
    write_case(out, "convolution", inputs={"x": x}, outputs={"y": net(x)}, parameters=parameters)


CASES = [rule, module, convolution]
