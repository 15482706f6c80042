"""Reference outputs and gradients for every layer, from PyTorch's modules, transformers, or explicit loops."""

import math

import torch
import torch.nn.functional as F
from reference import concatenated, linear, normal_, plain, rows, write_case
from transformers import LlamaConfig, T5Config
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5 import modeling_t5

B, T, S, D, H = 2, 7, 5, 12, 3


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def future(n):
    """True above the diagonal, which a causal mask hides."""
    return torch.ones(n, n, dtype=torch.bool).triu(1)


# ---- attention ------------------------------------------------------------------------------------------------------


def split_projections(mha, prefix=""):
    """torch.nn.MultiheadAttention's stacked input projection as three projections."""
    d = mha.embed_dim
    entries = linear(f"{prefix}out", mha.out_proj)
    for i, name in enumerate("qkv"):
        entries[f"{prefix}{name}.weight"] = rows(mha.in_proj_weight, i * d, (i + 1) * d)
        entries[f"{prefix}{name}.bias"] = rows(mha.in_proj_bias, i * d, (i + 1) * d)
    return entries


def stacked_projections(mha, prefix=""):
    return {
        f"{prefix}qkv.weight": plain(mha.in_proj_weight),
        f"{prefix}qkv.bias": plain(mha.in_proj_bias),
        **linear(f"{prefix}out", mha.out_proj),
    }


def multi_head_attention(out):
    def case(name, projections, cross=False, mask=None, lengths=None):
        mha = normal_(torch.nn.MultiheadAttention(D, H, batch_first=True))
        inputs = {"x": leaf(B, T, D)}
        source = inputs["x"]
        if cross:
            source = inputs["memory"] = leaf(B, S, D)
        padding = None
        if lengths is not None:
            inputs["lengths"] = torch.tensor(lengths)
            padding = torch.arange(source.shape[1])[None] >= inputs["lengths"][:, None]
        y, weights = mha(
            inputs["x"], source, source, attn_mask=mask, key_padding_mask=padding, average_attn_weights=False
        )
        weights = weights.detach()
        write_case(out, name, inputs=inputs, outputs={"y": y, "weights": weights}, parameters=projections(mha))

    case("attention_self", split_projections)
    case("attention_self_fused", stacked_projections)
    case("attention_causal", split_projections, mask=future(T))
    case("attention_padding", split_projections, lengths=[T, 3])
    case("attention_causal_padding", stacked_projections, mask=future(T), lengths=[4, T])
    case("attention_cross", split_projections, cross=True)
    case("attention_cross_fused", stacked_projections, cross=True)
    case("attention_cross_padding", split_projections, cross=True, lengths=[2, S])


def grouped_query_attention(out):
    """Each key/value head serves H/K query heads; computed one head after the other."""
    heads, width = 6, 4

    def case(name, kv_heads, *, clip=None, gated=False, sinks=None, normed=False):
        q, k, v, o = (
            normal_(torch.nn.Linear(a, b, bias=False))
            for a, b in ((D, heads * width), (D, kv_heads * width), (D, kv_heads * width), (heads * width, D))
        )
        x = leaf(B, T, D)
        gate = normal_(torch.nn.Linear(D, heads * width, bias=False))
        gains = {"q_norm": leaf(heads * width), "k_norm": leaf(kv_heads * width)}

        def head_of(map_, i, gain=None):
            vectors = map_(x)[:, :, i * width : (i + 1) * width]
            if normed and gain is not None:
                vectors = torch.nn.functional.layer_norm(vectors, (width,)) * gain[i * width : (i + 1) * width]
            return vectors.clamp(-clip, clip) if clip else vectors

        pieces = []
        for h in range(heads):
            g = h // (heads // kv_heads)
            query, key, value = head_of(q, h, gains["q_norm"]), head_of(k, g, gains["k_norm"]), head_of(v, g)
            scores = (query @ key.transpose(1, 2) / math.sqrt(width)).masked_fill(future(T), -math.inf)
            if sinks is not None:  # one more score without a value
                scores = torch.cat([scores, sinks[h].expand(B, T, 1)], -1)
            pieces.append(scores.softmax(-1)[:, :, :T] @ value)
        together = torch.cat(pieces, -1)
        y = o(together * torch.sigmoid(gate(x)) if gated else together)
        parameters = linear("q", q) | linear("k", k) | linear("v", v) | linear("out", o)
        if gated:
            parameters |= linear("gate", gate)
        if sinks is not None:
            parameters |= {"sinks": plain(sinks)}
        if normed:
            parameters |= {f"{name}.weight": plain(gain) for name, gain in gains.items()}
        write_case(out, name, inputs={"x": x}, outputs={"y": y}, parameters=parameters)

    case("attention_grouped", 2)
    case("attention_multi_query", 1)
    case("attention_clipped", 3, clip=0.4)
    case("attention_gated", 2, gated=True)
    case("attention_sinks", 2, sinks=leaf(heads))
    case("attention_each_head", 3, normed=True)


def shaw_attention(out):
    """Equations 3 and 4 of Shaw et al. 2018, one pair of positions at a time."""
    heads, reach = 2, 3
    width = D // heads

    def case(name, causal):
        projections = {n: normal_(torch.nn.Linear(D, D)) for n in ("q", "k", "v", "out")}
        a_k, a_v = leaf(2 * reach + 1, width), leaf(2 * reach + 1, width)
        x = leaf(B, T, D)
        q, k, v = (projections[n](x).view(B, T, heads, width) for n in "qkv")
        rows_out = []
        for b in range(B):
            for i in range(T):
                seen = range(i + 1) if causal else range(T)
                mixed = []
                for h in range(heads):
                    at = [max(-reach, min(reach, j - i)) + reach for j in seen]
                    e = torch.stack([q[b, i, h] @ (k[b, j, h] + a_k[r]) / math.sqrt(width) for j, r in zip(seen, at)])
                    alpha = e.softmax(0)
                    mixed.append(sum(alpha[n] * (v[b, j, h] + a_v[r]) for n, (j, r) in enumerate(zip(seen, at))))
                rows_out.append(torch.cat(mixed))
        y = projections["out"](torch.stack(rows_out).view(B, T, D))
        parameters = {"relative_keys": plain(a_k), "relative_values": plain(a_v)}
        for n, module in projections.items():
            parameters |= linear(n, module)
        write_case(out, name, inputs={"x": x}, outputs={"y": y}, parameters=parameters)

    case("attention_shaw", False)
    case("attention_shaw_causal", True)


def scaled_dot_product(out):
    d_k, d_v = 5, 9
    q, k, v = leaf(B, H, T, d_k), leaf(B, H, S, d_k), leaf(B, H, S, d_v)
    bias = leaf(1, H, T, S)
    keep = (torch.rand(B, 1, T, S) < 0.7).long()
    keep[..., 0] = 1
    scores = q @ k.transpose(-1, -2) / math.sqrt(d_k) + bias
    weights = scores.masked_fill(keep == 0, -1e9).softmax(-1)
    inputs = {"q": q, "k": k, "v": v, "bias": bias, "keep": keep}
    write_case(
        out, "scaled_dot_product", inputs=inputs, outputs={"y": weights @ v, "weights": weights.detach()}
    )


# ---- positions ------------------------------------------------------------------------------------------------------


def rotary(out):
    head_dim, n, context = 16, 40, 64
    scalings = {
        "none": None,
        "linear": {"rope_type": "linear", "factor": 4.0},
        "ntk": {"rope_type": "dynamic", "factor": 4.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": context},
        "yarn_options": {
            "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": context,
            "beta_fast": 8.0, "beta_slow": 2.0, "attention_factor": 1.3,
        },
        "llama3": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": context,
        },
    }  # fmt: skip
    for name, scaling in scalings.items():
        longer = scaling is not None and "original_max_position_embeddings" in scaling
        config = LlamaConfig(
            hidden_size=2 * head_dim, num_attention_heads=2, head_dim=head_dim, rope_theta=10000.0,
            max_position_embeddings=int(context * scaling["factor"]) if longer else context, rope_scaling=scaling,
        )  # fmt: skip
        module = modeling_llama.LlamaRotaryEmbedding(config)
        if name == "ntk":
            # transformers' base grows with the length of the input; at this length it grows by exactly `factor`.
            length = int(context * (2 - 1 / scaling["factor"]))
            module.inv_freq, module.attention_scaling = ROPE_INIT_FUNCTIONS["dynamic"](config, None, seq_len=length)
            module.max_seq_len_cached = module.original_max_seq_len = 10 * length
        q, k = leaf(B, 2, n, head_dim), leaf(B, 2, n, head_dim)
        rates = module.inv_freq.clone()
        cos, sin = module(q, torch.arange(n)[None])
        q_turned, k_turned = modeling_llama.apply_rotary_pos_emb(q, k, cos, sin)
        outputs = {"q": q_turned, "k": k_turned, "rates": rates}
        write_case(out, f"rotary_half_{name}", inputs={"q": q, "k": k}, outputs=outputs)

    for width in (head_dim, 8):
        x = leaf(B, n, 2, head_dim)  # GPT-J's layout has heads after positions
        sincos = modeling_gptj.create_sinusoidal_positions(n, width)
        sin, cos = (t[None].expand(B, -1, -1) for t in sincos.split(width // 2, -1))
        turned = modeling_gptj.apply_rotary_pos_emb(x[..., :width], sin, cos)
        y = torch.cat([turned, x[..., width:]], -1)
        write_case(out, f"rotary_interleaved_{width}", inputs={"x": x}, outputs={"y": y})


def alibi(out):
    outputs = {}
    n = 6
    for heads in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20):
        outputs[f"bloom_{heads}"] = build_alibi_tensor(torch.ones(1, n), heads, torch.float32).view(heads, n)
        outputs[f"mpt_{heads}"] = build_mpt_alibi_tensor(heads, n).view(heads, n)
    write_case(out, "alibi", inputs={}, outputs=outputs)


def t5_bias(out):
    distances = torch.arange(-300, 301)
    outputs = {}
    for bidirectional in (False, True):
        for buckets, reach in ((32, 128), (8, 20), (6, 50)):
            outputs[f"{'both' if bidirectional else 'causal'}_{buckets}_{reach}"] = (
                modeling_t5.T5Attention._relative_position_bucket(distances, bidirectional, buckets, reach)
            )
    write_case(out, "t5_buckets", inputs={"distances": distances}, outputs=outputs)

    for name, is_decoder in (("t5_attention_encoder", False), ("t5_attention_decoder", True)):
        config = T5Config(
            d_model=D, d_kv=4, num_heads=H, relative_attention_num_buckets=8, relative_attention_max_distance=20,
            dropout_rate=0.0, is_decoder=is_decoder,
        )  # fmt: skip
        attention = normal_(modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0))
        x = leaf(B, 30, D)
        positions = torch.arange(30)
        mask = future(30).float().masked_fill(future(30), -1e9)[None, None] if is_decoder else None
        y, bias = attention(x, mask=mask, cache_position=positions)[:2]
        bias = attention.compute_bias(30, 30)
        parameters = {"bias.buckets.weight": plain(attention.relative_attention_bias.weight)}
        for ours, theirs in (("q", attention.q), ("k", attention.k), ("v", attention.v), ("out", attention.o)):
            parameters |= linear(f"attention.{ours}", theirs)
        write_case(
            out, name, inputs={"x": x}, outputs={"y": y, "bias": bias.detach()}, parameters=parameters
        )


def sinusoidal(out):
    """The rates by powers and by exp and log, in doubles, one element at a time."""
    positions = [0, 1, 2, 5, 63, 1000]
    outputs = {}
    for d in (1, 2, 7, 16, 33):
        power = torch.zeros(len(positions), d, dtype=torch.float64)
        exp_log = torch.zeros(len(positions), d, dtype=torch.float64)
        for row, p in enumerate(positions):
            for j in range(d):
                function = math.sin if j % 2 == 0 else math.cos
                i2 = j - j % 2
                power[row, j] = function(p / 10000 ** (i2 / d))
                exp_log[row, j] = function(p * math.exp(-i2 / d * math.log(10000)))
        outputs |= {f"power_{d}": power.float(), f"exp_log_{d}": exp_log.float()}
    write_case(out, "sinusoidal", inputs={"positions": torch.tensor(positions)}, outputs=outputs)


# ---- norms ----------------------------------------------------------------------------------------------------------


class AnnotatedLayerNorm(torch.nn.Module):
    """As written in "The Annotated Transformer"."""

    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


class OutsideRMSNorm(torch.nn.Module):
    """As in the authors' repository: ε is added to the vector's norm over the root of its width."""

    def __init__(self, d, eps=1e-8):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(d))
        self.d, self.eps = d, eps

    def forward(self, x):
        rms = x.norm(2, dim=-1, keepdim=True) * self.d ** (-1.0 / 2)
        return self.weight * (x / (rms + self.eps))


def norms(out):
    modules = {
        "layer_norm": torch.nn.LayerNorm(D, eps=1e-3),
        "layer_norm_no_bias": torch.nn.LayerNorm(D, bias=False),
        "layer_norm_annotated": AnnotatedLayerNorm(D, eps=1e-2),
        "rms_norm_llama": modeling_llama.LlamaRMSNorm(D, eps=1e-3),
        "rms_norm_t5": modeling_t5.T5LayerNorm(D, eps=1e-6),
        "rms_norm_gemma": GemmaRMSNorm(D, eps=1e-3),
        "rms_norm_outside": OutsideRMSNorm(D, eps=1e-2),
    }
    for name, module in modules.items():
        normal_(module)
        x = leaf(B, T, D)
        parameters = {"weight": plain(module.weight)}
        if getattr(module, "bias", None) is not None:
            parameters["bias"] = plain(module.bias)
        write_case(out, name, inputs={"x": x}, outputs={"y": module(x)}, parameters=parameters)


# ---- feed-forward ---------------------------------------------------------------------------------------------------


def feed_forwards(out):
    width = 20
    plain_activations = {
        "relu": torch.nn.ReLU(),
        "gelu": torch.nn.GELU(),
        "gelu_tanh": ACT2FN["gelu_new"],
        "silu": torch.nn.SiLU(),
        "quick_gelu": ACT2FN["quick_gelu"],
    }
    for name, activation in plain_activations.items():
        up, down = normal_(torch.nn.Linear(D, width)), normal_(torch.nn.Linear(width, D))
        x = leaf(B, T, D)
        y = down(activation(up(x)))
        parameters = linear("up", up) | linear("down", down)
        write_case(out, f"feed_forward_{name}", inputs={"x": x}, outputs={"y": y}, parameters=parameters)

    llama = modeling_llama.LlamaMLP(LlamaConfig(hidden_size=D, num_attention_heads=2, intermediate_size=width, mlp_bias=True))
    t5 = modeling_t5.T5DenseGatedActDense(
        T5Config(d_model=D, d_ff=width, feed_forward_proj="gated-gelu", dropout_rate=0.0)
    )
    by_hand = {
        "geglu": (F.gelu, [normal_(torch.nn.Linear(a, b)) for a, b in ((D, width), (D, width), (width, D))]),
        "reglu": (F.relu, [normal_(torch.nn.Linear(a, b)) for a, b in ((D, width), (D, width), (width, D))]),
    }

    def gated(activation, gate, up, down):
        return lambda x: down(activation(gate(x)) * up(x))

    gates = {
        "swiglu": (llama, llama.gate_proj, llama.up_proj, llama.down_proj),
        "geglu_tanh": (t5, t5.wi_0, t5.wi_1, t5.wo),
        **{name: (gated(act, *layers), *layers) for name, (act, layers) in by_hand.items()},
    }
    for name, (forward, gate, up, down) in gates.items():
        for module in (gate, up, down):
            normal_(module)
        for fused in (False, True):
            for module in (gate, up, down):
                module.zero_grad()
            x = leaf(B, T, D)
            parameters = linear("down", down)
            if fused:
                parameters["gate_up.weight"] = concatenated(gate.weight, up.weight)
                if gate.bias is not None:
                    parameters["gate_up.bias"] = concatenated(gate.bias, up.bias)
            else:
                parameters |= linear("gate", gate) | linear("up", up)
            file = f"feed_forward_{name}{'_fused' if fused else ''}"
            write_case(out, file, inputs={"x": x}, outputs={"y": forward(x)}, parameters=parameters)


# ---- residual connections and whole layers --------------------------------------------------------------------------


def residuals(out):
    def case(placement, names, forward):
        norms = {name: normal_(torch.nn.LayerNorm(D)) for name in names}
        for norm in norms.values():
            with torch.no_grad():
                norm.weight.add_(1.0)
        x, w1, w2 = leaf(B, T, D), leaf(D, D), leaf(D, D)
        y = forward(norms, x, lambda h: torch.tanh(h @ w1), lambda h: torch.relu(h @ w2))
        parameters = {}
        for name, norm in norms.items():
            parameters |= linear(name, norm)
        write_case(
            out, f"residual_{placement}", inputs={"x": x, "w1": w1, "w2": w2}, outputs={"y": y}, parameters=parameters
        )

    def pre(n, x, f, g):
        x = x + f(n["f_norm"](x))
        return x + g(n["g_norm"](x))

    def post(n, x, f, g):
        x = n["f_norm"](x + f(x))
        return n["g_norm"](x + g(x))

    def residual_post(n, x, f, g):
        x = x + n["f_output_norm"](f(x))
        return x + n["g_output_norm"](g(x))

    def sandwich(n, x, f, g):
        x = x + n["f_output_norm"](f(n["f_norm"](x)))
        return x + n["g_output_norm"](g(n["g_norm"](x)))

    def parallel(n, x, f, g):
        h = n["norm"](x)
        return x + f(h) + g(h)

    case("pre", ["f_norm", "g_norm"], pre)
    case("post", ["f_norm", "g_norm"], post)
    case("residual_post", ["f_output_norm", "g_output_norm"], residual_post)
    case("sandwich", ["f_norm", "f_output_norm", "g_norm", "g_output_norm"], sandwich)
    def parallel_norms(n, x, f, g):
        return x + f(n["f_norm"](x)) + g(n["g_norm"](x))

    case("parallel", ["norm"], parallel)
    case("parallel_norms", ["f_norm", "g_norm"], parallel_norms)


def transformer_layers(out):
    for norm_first in (False, True):
        placement = "pre" if norm_first else "post"
        options = {"dim_feedforward": 20, "dropout": 0.0, "batch_first": True, "norm_first": norm_first}
        encoder = normal_(torch.nn.TransformerEncoderLayer(D, H, activation="gelu", **options))
        decoder = normal_(torch.nn.TransformerDecoderLayer(D, H, activation="relu", **options))

        def feed_forward(layer):
            return linear("feed_forward.up", layer.linear1) | linear("feed_forward.down", layer.linear2)

        x = leaf(B, T, D)
        parameters = (
            split_projections(encoder.self_attn, "self_attention.")
            | feed_forward(encoder)
            | linear("residual.self_attention_norm", encoder.norm1)
            | linear("residual.feed_forward_norm", encoder.norm2)
        )
        write_case(
            out, f"encoder_layer_{placement}", inputs={"x": x}, outputs={"y": encoder(x)}, parameters=parameters
        )

        x, memory, lengths = leaf(B, T, D), leaf(B, S, D), torch.tensor([S, 3])
        y = decoder(
            x, memory, tgt_mask=future(T), memory_key_padding_mask=torch.arange(S)[None] >= lengths[:, None]
        )
        parameters = (
            split_projections(decoder.self_attn, "self_attention.")
            | split_projections(decoder.multihead_attn, "cross_attention.")
            | feed_forward(decoder)
            | linear("residual.self_attention_norm", decoder.norm1)
            | linear("residual.cross_attention_norm", decoder.norm2)
            | linear("residual.feed_forward_norm", decoder.norm3)
        )
        inputs = {"x": x, "memory": memory, "lengths": lengths}
        write_case(out, f"decoder_layer_{placement}", inputs=inputs, outputs={"y": y}, parameters=parameters)


# ---- embeddings -----------------------------------------------------------------------------------------------------


def embeddings(out):
    vocabulary = 11
    for tied in (False, True):
        table = torch.nn.Embedding(vocabulary, D)
        head = torch.nn.Linear(D, vocabulary)
        normal_(table), normal_(head)
        if tied:
            head.weight = table.weight
        ids = torch.randint(vocabulary, (B, T))
        vectors = table(ids) * math.sqrt(D)
        log_p = F.log_softmax(head(torch.tanh(vectors) * D**-0.5), -1)
        parameters = {"embedding.weight": plain(table.weight), "output.bias": plain(head.bias)}
        if not tied:
            parameters["output.weight"] = plain(head.weight)
        write_case(
            out, "embedding_tied" if tied else "embedding_separate", inputs={"ids": ids},
            outputs={"vectors": vectors.detach(), "log_probabilities": log_p}, parameters=parameters,
        )  # fmt: skip


CASES = [
    multi_head_attention, grouped_query_attention, shaw_attention, scaled_dot_product, rotary, alibi, t5_bias,
    sinusoidal, norms, feed_forwards, residuals, transformer_layers, embeddings,
]  # fmt: skip
