"""Reference losses, logits and gradients of whole small models, from transformers and PyTorch's own modules."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from reference import (
    columns_transposed, concatenated, contiguous, linear, normal_, plain, plain_experts, rows, transposed, write_case,
)  # fmt: skip
from safetensors.torch import save_file
from transformers import (
    BartConfig, BertConfig, BigBirdConfig, DistilBertConfig, Gemma2Config, Gemma3TextConfig, GPT2Config, LlamaConfig, Olmo2Config, LongformerConfig,
    MistralConfig, MixtralConfig, MptConfig, PhiConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config, Qwen3MoeConfig, RobertaConfig, T5Config,
)  # fmt: skip
from transformers.models.bart.modeling_bart import BartForConditionalGeneration, BartForSequenceClassification
from transformers.models.bert.modeling_bert import (
    BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification, BertModel,
)  # fmt: skip
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdForMaskedLM
from transformers.models.distilbert.modeling_distilbert import DistilBertForSequenceClassification
from transformers.models.gemma2.modeling_gemma2 import Gemma2ForCausalLM
from transformers.models.gemma3.modeling_gemma3 import Gemma3ForCausalLM
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.longformer.modeling_longformer import LongformerForMaskedLM
from transformers.models.mistral.modeling_mistral import MistralForCausalLM
from transformers.models.mixtral.modeling_mixtral import MixtralForCausalLM
from transformers.models.mpt.modeling_mpt import MptForCausalLM
from transformers.models.olmo2.modeling_olmo2 import Olmo2ForCausalLM
from transformers.models.phi.modeling_phi import PhiForCausalLM
from transformers.models.qwen2.modeling_qwen2 import Qwen2ForCausalLM
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeForCausalLM
from transformers.models.roberta.modeling_roberta import RobertaForMaskedLM
from transformers.models.t5.modeling_t5 import T5ForConditionalGeneration

# The constants and the shape of small_config() in tests/support/small_models.h.
V, START = 31, 1
LAYERS, D, HEADS, WIDTH, POSITIONS = 2, 24, 4, 40, 32
BUCKETS, MAX_DISTANCE = 8, 6
B, T, S = 3, 10, 8
LENGTHS, SOURCE_LENGTHS = torch.tensor([10, 6, 1]), torch.tensor([8, 3, 5])
EAGER = {"attn_implementation": "eager", "use_cache": False}


def tokens(*shape):
    return torch.randint(0, V, shape)


def visible(lengths, n):
    """The attention mask of transformers: 1 = a real token."""
    return (torch.arange(n)[None] < lengths[:, None]).long()


def real_positions(lengths, n):
    """Flat indices b·n + t of the real tokens."""
    return visible(lengths, n).flatten().nonzero().flatten()


def parts(*tables):
    merged = {}
    for table in tables:
        merged |= table
    return merged


# ---- decoders: one forward pass over right-padded rows, predictions at the real positions ---------------------------


def write_decoder(out, name, model, parameters):
    normal_(plain_experts(model))
    ids = tokens(B, T)
    positions = real_positions(LENGTHS, T)
    targets = tokens(len(positions))
    logits = model(input_ids=ids, attention_mask=visible(LENGTHS, T)).logits.flatten(0, 1)[positions]
    loss = F.cross_entropy(logits, targets)
    inputs = {"ids": ids, "lengths": LENGTHS, "positions": positions, "targets": targets}
    write_case(
        out, name, inputs=inputs, outputs={"logits": logits, "loss": loss}, loss=loss, parameters=parameters(model)
    )


def gpt2_parameters(model):
    def conv(name, module):  # stored (in, out)
        return {f"{name}.weight": transposed(module.weight), f"{name}.bias": plain(module.bias)}

    body = model.transformer
    d = body.wte.weight.shape[1]
    entries = parts(
        {
            "token_embedding.weight": plain(body.wte.weight),
            "decoder_embedder.position_embedding.weight": plain(body.wpe.weight),
        },
        linear("decoder.final_norm", body.ln_f),
    )
    for i, block in enumerate(body.h):
        at = f"decoder.layers.{i}"
        for n, projection in enumerate("qkv"):
            weight, bias = block.attn.c_attn.weight, block.attn.c_attn.bias
            entries[f"{at}.self_attention.{projection}.weight"] = columns_transposed(weight, n * d, (n + 1) * d)
            entries[f"{at}.self_attention.{projection}.bias"] = rows(bias, n * d, (n + 1) * d)
        entries |= parts(
            conv(f"{at}.self_attention.out", block.attn.c_proj),
            conv(f"{at}.feed_forward.up", block.mlp.c_fc),
            conv(f"{at}.feed_forward.down", block.mlp.c_proj),
            linear(f"{at}.residual.self_attention_norm", block.ln_1),
            linear(f"{at}.residual.feed_forward_norm", block.ln_2),
        )
    return entries


def make_gpt2():
    config = GPT2Config(
        vocab_size=V, n_positions=POSITIONS, n_embd=D, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, **EAGER,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def random_gpt2():
    """A model that generates, and its parameters as tensors of the zoo."""
    model = normal_(make_gpt2())
    return model, gpt2_parameters(model)


def gpt2(out):
    write_decoder(out, "gpt2", make_gpt2(), gpt2_parameters)


def weight_only(name, norm):
    return {f"{name}.weight": plain(norm.weight)}


def network_parameters(at, network, names=("gate", "up", "down")):
    return parts(*(linear(f"{at}.{name}", getattr(network, f"{name}_proj")) for name in names))


def expert_parameters(at, mlp):
    """transformers 5 has gate and up of all experts in one tensor (E, 2F, D), and down in (E, D, F)."""
    gate_up, down = mlp.experts.gate_up_proj, mlp.experts.down_proj
    F = gate_up.shape[1] // 2
    entries = {
        f"{at}.router.weight": plain(mlp.gate.weight),
        f"{at}.gate.weight": (lambda p: p[:, :F].flatten(0, 1), gate_up),
        f"{at}.up.weight": (lambda p: p[:, F:].flatten(0, 1), gate_up),
        f"{at}.down.weight": (lambda p: p.flatten(0, 1), down),
    }
    if hasattr(mlp, "shared_expert"):
        entries |= parts(
            network_parameters(f"{at}.shared", mlp.shared_expert), linear(f"{at}.shared_gate", mlp.shared_expert_gate)
        )
    return entries


def llama_like_parameters(model, fused=False):
    """Llama, Qwen and Gemma: the same names, more or fewer biases and norms."""
    body = model.model
    entries = parts(
        {"token_embedding.weight": plain(body.embed_tokens.weight)}, weight_only("decoder.final_norm", body.norm)
    )
    if model.lm_head.weight is not body.embed_tokens.weight:
        entries["head.output.weight"] = plain(model.lm_head.weight)
    for i, layer in enumerate(body.layers):
        at, attention, mlp = f"decoder.layers.{i}", layer.self_attn, layer.mlp
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        if fused:
            entries[f"{at}.self_attention.qkv.weight"] = concatenated(*(p.weight for p in projections))
            entries[f"{at}.feed_forward.gate_up.weight"] = concatenated(mlp.gate_proj.weight, mlp.up_proj.weight)
        else:
            for name, projection in zip("qkv", projections):
                entries |= linear(f"{at}.self_attention.{name}", projection)
        if hasattr(mlp, "experts"):
            entries |= expert_parameters(f"{at}.experts", mlp)
        else:
            entries |= network_parameters(f"{at}.feed_forward", mlp, ["down"] if fused else ["gate", "up", "down"])
        entries |= parts(
            linear(f"{at}.self_attention.out", attention.o_proj),
            weight_only(f"{at}.residual.self_attention_norm", layer.input_layernorm)
            if hasattr(layer, "input_layernorm")
            else {},
        )
        if hasattr(attention, "q_norm"):
            entries |= parts(
                weight_only(f"{at}.self_attention.q_norm", attention.q_norm),
                weight_only(f"{at}.self_attention.k_norm", attention.k_norm),
            )
        if hasattr(layer, "pre_feedforward_layernorm"):  # Gemma 2: a norm on each side of each sub-layer
            entries |= parts(
                weight_only(f"{at}.residual.self_attention_output_norm", layer.post_attention_layernorm),
                weight_only(f"{at}.residual.feed_forward_norm", layer.pre_feedforward_layernorm),
                weight_only(f"{at}.residual.feed_forward_output_norm", layer.post_feedforward_layernorm),
            )
        elif hasattr(layer, "post_feedforward_layernorm"):  # OLMo 2: a norm behind each sub-layer
            entries |= parts(
                weight_only(f"{at}.residual.self_attention_output_norm", layer.post_attention_layernorm),
                weight_only(f"{at}.residual.feed_forward_output_norm", layer.post_feedforward_layernorm),
            )
        else:
            entries |= weight_only(f"{at}.residual.feed_forward_norm", layer.post_attention_layernorm)
    return entries


SHAPE = {
    "vocab_size": V, "hidden_size": 32, "intermediate_size": 44, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, **EAGER,
}  # fmt: skip


def llama(out):
    scaling = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }  # fmt: skip
    config = LlamaConfig(**SHAPE, rms_norm_eps=1e-5, rope_theta=5000.0, rope_scaling=scaling, tie_word_embeddings=False)
    write_decoder(out, "llama", LlamaForCausalLM(config), llama_like_parameters)
    config = LlamaConfig(**SHAPE, rms_norm_eps=1e-5, tie_word_embeddings=True)
    write_decoder(out, "llama_fused", LlamaForCausalLM(config), lambda model: llama_like_parameters(model, fused=True))


    for name, biases in {"attention": {"attention_bias": True}, "mlp": {"mlp_bias": True}}.items():
        config = LlamaConfig(**SHAPE, rms_norm_eps=1e-5, tie_word_embeddings=True, **biases)
        write_decoder(out, f"llama_{name}_bias", LlamaForCausalLM(config), llama_like_parameters)


def qwen(out):
    config = Qwen2Config(**SHAPE, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=True)
    write_decoder(out, "qwen2", Qwen2ForCausalLM(config), llama_like_parameters)
    config = Qwen3Config(**SHAPE, head_dim=12, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=False)
    write_decoder(out, "qwen3", Qwen3ForCausalLM(config), llama_like_parameters)


def olmo2(out):
    config = Olmo2Config(**SHAPE, rms_norm_eps=1e-6, rope_theta=5000.0, tie_word_embeddings=False, pad_token_id=None)
    write_decoder(out, "olmo2", Olmo2ForCausalLM(config), llama_like_parameters)


def mixtures(out):
    config = MixtralConfig(
        **SHAPE, num_local_experts=5, num_experts_per_tok=3, rms_norm_eps=1e-5, tie_word_embeddings=False
    )
    write_decoder(out, "mixtral", MixtralForCausalLM(config), llama_like_parameters)
    experts = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 10}
    config = Qwen2MoeConfig(
        **SHAPE, **experts, shared_expert_intermediate_size=14, rms_norm_eps=1e-6, tie_word_embeddings=True
    )
    write_decoder(out, "qwen2_moe", Qwen2MoeForCausalLM(config), llama_like_parameters)
    config = Qwen3MoeConfig(
        **SHAPE, **experts, head_dim=12, norm_topk_prob=True, decoder_sparse_step=2, rms_norm_eps=1e-6,
        tie_word_embeddings=True,
    )  # fmt: skip
    write_decoder(out, "qwen3_moe", Qwen3MoeForCausalLM(config), llama_like_parameters)


def gemma2(out):
    config = Gemma2Config(
        **SHAPE, head_dim=12, query_pre_attn_scalar=10, attn_logit_softcapping=None, final_logit_softcapping=None,
        sliding_window=64, rms_norm_eps=1e-6, pad_token_id=None,
    )  # fmt: skip
    write_decoder(out, "gemma2", Gemma2ForCausalLM(config), llama_like_parameters)
    config = Gemma2Config(
        **SHAPE, head_dim=12, query_pre_attn_scalar=10, attn_logit_softcapping=1.5, final_logit_softcapping=3.0,
        sliding_window=4, layer_types=["sliding_attention", "full_attention"], rms_norm_eps=1e-6, pad_token_id=None,
    )  # fmt: skip
    write_decoder(out, "gemma2_soft_caps", Gemma2ForCausalLM(config), llama_like_parameters)


def mistral(out):
    config = MistralConfig(**SHAPE, sliding_window=4, rms_norm_eps=1e-5, tie_word_embeddings=False)
    write_decoder(out, "mistral", MistralForCausalLM(config), llama_like_parameters)


def gemma3(out):
    """A layer with a sliding window and a full one, whose rotary positions have another base and are scaled."""
    config = Gemma3TextConfig(
        **SHAPE, head_dim=12, query_pre_attn_scalar=10, sliding_window=4, rms_norm_eps=1e-6, pad_token_id=None,
        layer_types=["sliding_attention", "full_attention"], rope_theta=5e5, rope_local_base_freq=1e4,
        rope_scaling={"rope_type": "linear", "factor": 4.0},
    )  # fmt: skip
    write_decoder(out, "gemma3", Gemma3ForCausalLM(config), llama_like_parameters)


def phi(out):
    def parameters(model):
        body = model.model
        entries = parts(
            {"token_embedding.weight": plain(body.embed_tokens.weight)},
            linear("decoder.final_norm", body.final_layernorm),
            linear("head.output", model.lm_head),
        )
        for i, layer in enumerate(body.layers):
            at, attention = f"decoder.layers.{i}", layer.self_attn
            entries |= parts(
                linear(f"{at}.self_attention.q", attention.q_proj),
                linear(f"{at}.self_attention.k", attention.k_proj),
                linear(f"{at}.self_attention.v", attention.v_proj),
                linear(f"{at}.self_attention.out", attention.dense),
                linear(f"{at}.feed_forward.up", layer.mlp.fc1),
                linear(f"{at}.feed_forward.down", layer.mlp.fc2),
                linear(f"{at}.residual.norm", layer.input_layernorm),
            )
        return entries

    config = PhiConfig(**(SHAPE | {"num_key_value_heads": 4}), partial_rotary_factor=0.5)
    write_decoder(out, "phi", PhiForCausalLM(config), parameters)


def mpt(out):
    def parameters(model):
        body = model.transformer
        entries = parts(
            {"token_embedding.weight": plain(body.wte.weight)}, weight_only("decoder.final_norm", body.norm_f)
        )
        for i, block in enumerate(body.blocks):
            at = f"decoder.layers.{i}"
            entries |= parts(
                linear(f"{at}.self_attention.qkv", block.attn.Wqkv),
                linear(f"{at}.self_attention.out", block.attn.out_proj),
                linear(f"{at}.feed_forward.up", block.ffn.up_proj),
                linear(f"{at}.feed_forward.down", block.ffn.down_proj),
                weight_only(f"{at}.residual.self_attention_norm", block.norm_1),
                weight_only(f"{at}.residual.feed_forward_norm", block.norm_2),
            )
        return entries

    config = MptConfig(vocab_size=V, d_model=D, n_heads=3, n_layers=LAYERS, max_seq_len=32, use_cache=False)
    write_decoder(out, "mpt", MptForCausalLM(config), parameters)


# ---- encoders -------------------------------------------------------------------------------------------------------


def bert_parameters(bert):
    table = bert.embeddings
    entries = parts(
        {
            "token_embedding.weight": plain(table.word_embeddings.weight),
            "encoder_embedder.position_embedding.weight": plain(table.position_embeddings.weight),
            "encoder_embedder.segment_embedding.weight": plain(table.token_type_embeddings.weight),
        },
        linear("encoder_embedder.embedding_norm", table.LayerNorm),
    )
    for i, layer in enumerate(bert.encoder.layer):
        at, attention = f"encoder.layers.{i}", layer.attention
        entries |= parts(
            linear(f"{at}.self_attention.q", attention.self.query),
            linear(f"{at}.self_attention.k", attention.self.key),
            linear(f"{at}.self_attention.v", attention.self.value),
            linear(f"{at}.self_attention.out", attention.output.dense),
            linear(f"{at}.feed_forward.up", layer.intermediate.dense),
            linear(f"{at}.feed_forward.down", layer.output.dense),
            linear(f"{at}.residual.self_attention_norm", attention.output.LayerNorm),
            linear(f"{at}.residual.feed_forward_norm", layer.output.LayerNorm),
        )
        if hasattr(attention.self, "query_global"):  # Longformer
            entries |= parts(
                linear(f"{at}.self_attention.global_q", attention.self.query_global),
                linear(f"{at}.self_attention.global_k", attention.self.key_global),
                linear(f"{at}.self_attention.global_v", attention.self.value_global),
            )
    return entries


def write_masked(out, name, model, body, transform, inputs, *, call):
    """A model with masked tokens. `transform`: the dense map, the norm and the bias of its head."""
    ids, lengths = inputs["ids"], inputs["lengths"]
    positions = real_positions(lengths, ids.shape[1])[::3]
    targets = tokens(len(positions))
    logits = model(input_ids=ids, attention_mask=visible(lengths, ids.shape[1]), **call).logits
    logits = logits.flatten(0, 1)[positions]
    loss = F.cross_entropy(logits, targets)
    dense, norm, bias = transform
    head = parts(linear("head.transform", dense), linear("head.norm", norm), {"head.output.bias": plain(bias)})
    write_case(
        out, name, inputs=inputs | {"positions": positions, "targets": targets},
        outputs={"logits": logits, "loss": loss}, loss=loss, parameters=parts(bert_parameters(body), head),
    )  # fmt: skip


def longformer(out):
    """Windows of 2 and 3 tokens on each side. The class token is global, then the tokens 3 and 7, too."""
    config = LongformerConfig(
        vocab_size=V, hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=WIDTH,
        max_position_embeddings=POSITIONS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=None, attention_window=[4, 6],
    )  # fmt: skip
    n = 24
    lengths = torch.tensor([24, 13, 6])
    for name in ("longformer", "longformer_ids"):
        ids = tokens(B, n)
        by_id = name == "longformer_ids"
        is_global = torch.isin(ids, torch.tensor([3, 7])) if by_id else torch.arange(n).expand(B, n) == 0
        model = normal_(LongformerForMaskedLM(config))
        head = model.lm_head
        write_masked(
            out, name, model, model.longformer, (head.dense, head.layer_norm, head.bias),
            {"ids": ids, "lengths": lengths},
            call={"position_ids": torch.arange(n).expand(B, n), "global_attention_mask": is_global.long()},
        )  # fmt: skip


def roberta(out):
    config = RobertaConfig(
        vocab_size=V, hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=WIDTH,
        max_position_embeddings=POSITIONS + 2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        type_vocab_size=1, pad_token_id=1, attn_implementation="eager", layer_norm_eps=1e-12,
    )  # fmt: skip
    model = normal_(RobertaForMaskedLM(config))
    ids = tokens(B, T)
    ids[ids == 1] = 3  # padding counts no positions
    ids[visible(LENGTHS, T) == 0] = 1
    head = model.lm_head
    write_masked(
        out, "roberta", model, model.roberta, (head.dense, head.layer_norm, head.bias),
        {"ids": ids, "lengths": LENGTHS}, call={},
    )  # fmt: skip


def counter_random(*coordinates):
    """CounterRandom of base/random.h: numbers below n."""
    mask, increment = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    state = 0
    for c in coordinates:
        state = mix(state ^ mix((c + increment) & mask))

    def below(n):
        nonlocal state
        while True:
            state = (state + increment) & mask
            x = mix(state)
            if x <= mask - ((mask % n + 1) % n):
                return x % n

    return below


def random_blocks(block, n_blocks, n_random, seed):
    """The random blocks of BlocksPattern (layers/attention/kinds/sparse_patterns.h) with a window and globals of 1."""
    near = {0, block - 1, block, block + 1, n_blocks - 1}
    others = [other for other in range(n_blocks) if other not in near]
    below = counter_random(seed, block)
    for i in range(len(others) - 1, 0, -1):
        j = below(i + 1)
        others[i], others[j] = others[j], others[i]
    return others[:n_random]


def big_bird(out):
    """Blocks of 2 tokens, of which a query sees its neighbours, the first, the last and 2 random ones."""
    n, n_blocks, n_random = 32, 16, 2
    config = BigBirdConfig(
        vocab_size=V, hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=WIDTH,
        max_position_embeddings=POSITIONS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=None, attention_type="block_sparse", block_size=2, num_random_blocks=n_random,
    )  # fmt: skip

    # The zoo's random blocks in the place of NumPy's. A layer's seed is its number.
    def drawn(self, *_, **__):
        blocks = [random_blocks(block, n_blocks, n_random, self.seed) for block in range(1, n_blocks - 1)]
        return [np.array(blocks)] * HEADS

    BigBirdBlockSparseAttention._bigbird_block_rand_mask_with_head = drawn
    model = normal_(BigBirdForMaskedLM(config)).train()
    head = model.cls.predictions
    write_masked(
        out, "big_bird", model, model.bert, (head.transform.dense, head.transform.LayerNorm, head.bias),
        {"ids": tokens(2, n), "lengths": torch.tensor([n, n])}, call={},
    )  # fmt: skip


def bert(out):
    classes = 5
    config = BertConfig(
        vocab_size=V, hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=WIDTH,
        max_position_embeddings=POSITIONS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        classifier_dropout=0.0, pad_token_id=None, num_labels=classes, attn_implementation="eager",
    )  # fmt: skip
    ids, segments = tokens(B, T), torch.randint(0, 2, (B, T))
    call = {"input_ids": ids, "token_type_ids": segments, "attention_mask": visible(LENGTHS, T)}
    inputs = {"ids": ids, "segments": segments, "lengths": LENGTHS}

    model = normal_(BertForMaskedLM(config))
    positions = real_positions(LENGTHS, T)[::3]
    targets = tokens(len(positions))
    labels = torch.full((B * T,), -100).index_copy(0, positions, targets).view(B, T)
    result = model(**call, labels=labels)
    head = model.cls.predictions
    write_case(
        out, "bert_masked", inputs=inputs | {"positions": positions, "targets": targets},
        outputs={"logits": result.logits.flatten(0, 1)[positions], "loss": result.loss}, loss=result.loss,
        parameters=parts(
            bert_parameters(model.bert),
            linear("head.transform", head.transform.dense),
            linear("head.norm", head.transform.LayerNorm),
            {"head.output.bias": plain(head.bias)},
        ),
    )  # fmt: skip

    model = normal_(BertModel(config))
    result = model(**call, output_attentions=True)
    maps = {f"map_{i}": weights for i, weights in enumerate(result.attentions)}
    write_case(
        out, "bert_headless", inputs=inputs,
        outputs={"pooled": result.pooler_output, "hidden": result.last_hidden_state} | maps,
        loss=result.pooler_output.square().sum(),
        parameters=parts(bert_parameters(model), linear("head.pooler", model.pooler.dense)),
    )  # fmt: skip

    model = normal_(BertForTokenClassification(config))
    targets = torch.randint(0, classes, (len(positions),))
    logits = model(**call).logits.flatten(0, 1)[positions]
    loss = F.cross_entropy(logits, targets)
    write_case(
        out, "bert_tokens", inputs=inputs | {"positions": positions, "targets": targets},
        outputs={"logits": logits, "loss": loss}, loss=loss,
        parameters=parts(bert_parameters(model.bert), linear("head.classifier", model.classifier)),
    )  # fmt: skip

    model = normal_(BertForSequenceClassification(config))
    targets = torch.randint(0, classes, (B,))
    result = model(**call, labels=targets)
    states = model.bert(**call)
    hidden, real = states.last_hidden_state, visible(LENGTHS, T).unsqueeze(-1).float()
    embeddings = {
        "mean": (hidden * real).sum(1) / real.sum(1),  # as in sentence-transformers
        "cls": hidden[:, 0],
        "last": hidden[torch.arange(B), LENGTHS - 1],
        "pooler": states.pooler_output,
    }
    write_case(
        out, "bert_classifier", inputs=inputs | {"targets": targets},
        outputs={"logits": result.logits, "loss": result.loss} | embeddings, loss=result.loss,
        parameters=parts(
            bert_parameters(model.bert),
            linear("head.pooler", model.bert.pooler.dense),
            linear("head.classifier", model.classifier),
        ),
    )  # fmt: skip


def distilbert(out):
    classes = 5
    config = DistilBertConfig(
        vocab_size=V, dim=D, n_layers=LAYERS, n_heads=HEADS, hidden_dim=WIDTH, max_position_embeddings=POSITIONS,
        dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0, pad_token_id=None, num_labels=classes,
        attn_implementation="eager",
    )  # fmt: skip
    model = normal_(DistilBertForSequenceClassification(config))
    table = model.distilbert.embeddings
    entries = parts(
        {
            "token_embedding.weight": plain(table.word_embeddings.weight),
            "encoder_embedder.position_embedding.weight": plain(table.position_embeddings.weight),
        },
        linear("encoder_embedder.embedding_norm", table.LayerNorm),
        linear("head.pooler", model.pre_classifier),
        linear("head.classifier", model.classifier),
    )
    for i, layer in enumerate(model.distilbert.transformer.layer):
        at, attention = f"encoder.layers.{i}", layer.attention
        entries |= parts(
            linear(f"{at}.self_attention.q", attention.q_lin),
            linear(f"{at}.self_attention.k", attention.k_lin),
            linear(f"{at}.self_attention.v", attention.v_lin),
            linear(f"{at}.self_attention.out", attention.out_lin),
            linear(f"{at}.feed_forward.up", layer.ffn.lin1),
            linear(f"{at}.feed_forward.down", layer.ffn.lin2),
            linear(f"{at}.residual.self_attention_norm", layer.sa_layer_norm),
            linear(f"{at}.residual.feed_forward_norm", layer.output_layer_norm),
        )
    ids, targets = tokens(B, T), torch.randint(0, classes, (B,))
    result = model(input_ids=ids, attention_mask=visible(LENGTHS, T), labels=targets)
    write_case(
        out, "distilbert_classifier", inputs={"ids": ids, "lengths": LENGTHS, "targets": targets},
        outputs={"logits": result.logits, "loss": result.loss}, loss=result.loss, parameters=entries,
    )  # fmt: skip


# ---- encoder-decoders -----------------------------------------------------------------------------------------------


def write_encoder_decoder(out, name, forward, parameters, label_smoothing=0.0):
    """forward: (source ids, its attention mask, decoder ids) → logits (B, T, V)."""
    source, target = tokens(B, S), tokens(B, T)
    positions = real_positions(LENGTHS, T)
    targets = tokens(len(positions))
    logits = forward(source, visible(SOURCE_LENGTHS, S), target).flatten(0, 1)[positions]
    loss = F.cross_entropy(logits, targets, label_smoothing=label_smoothing)
    inputs = {
        "ids": source, "lengths": SOURCE_LENGTHS, "decoder_ids": target, "decoder_lengths": LENGTHS,
        "positions": positions, "targets": targets,
    }  # fmt: skip
    write_case(
        out, name, inputs=inputs, outputs={"logits": logits, "loss": loss}, loss=loss, parameters=parameters()
    )


class Transformer(torch.nn.Module):
    """The model of Vaswani et al. 2017 with torch.nn's layers; embeddings are shared, tied and scaled by √D."""

    def __init__(self, d_model, n_heads, width, norm_first):
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
        self.d_model = d_model
        self.token = torch.nn.Embedding(V, d_model)
        self.encoder = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(d_model, n_heads, width, **options), LAYERS,
            norm=torch.nn.LayerNorm(d_model) if norm_first else None, enable_nested_tensor=False,
        )  # fmt: skip
        self.decoder = torch.nn.TransformerDecoder(
            torch.nn.TransformerDecoderLayer(d_model, n_heads, width, **options), LAYERS,
            norm=torch.nn.LayerNorm(d_model) if norm_first else None,
        )  # fmt: skip

    def embed(self, ids):
        d = self.d_model
        table = torch.zeros(ids.shape[1], d)
        for p in range(ids.shape[1]):
            for i in range(0, d, 2):
                table[p, i] = math.sin(p / 10000 ** (i / d))
                table[p, i + 1] = math.cos(p / 10000 ** (i / d))
        return self.token(ids) * math.sqrt(d) + table

    def forward(self, source, source_visible, target):
        hidden = source_visible == 0
        memory = self.encoder(self.embed(source), src_key_padding_mask=hidden)
        n = target.shape[1]
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        y = self.decoder(self.embed(target), memory, tgt_mask=future, memory_key_padding_mask=hidden)
        return y @ self.token.weight.t()

    def names(self):
        entries = {"token_embedding.weight": plain(self.token.weight)}
        for side, stack in (("encoder", self.encoder), ("decoder", self.decoder)):
            if stack.norm is not None:
                entries |= linear(f"{side}.final_norm", stack.norm)
            for i, layer in enumerate(stack.layers):
                at = f"{side}.layers.{i}"
                norms = ["self_attention_norm", "feed_forward_norm"]
                attentions = {"self_attention": layer.self_attn}
                if side == "decoder":
                    norms.insert(1, "cross_attention_norm")
                    attentions["cross_attention"] = layer.multihead_attn
                for name, attention in attentions.items():
                    entries |= linear(f"{at}.{name}.out", attention.out_proj)
                    for n, projection in enumerate("qkv"):
                        begin, end = n * self.d_model, (n + 1) * self.d_model
                        prefix = f"{at}.{name}.{projection}"
                        entries[f"{prefix}.weight"] = rows(attention.in_proj_weight, begin, end)
                        entries[f"{prefix}.bias"] = rows(attention.in_proj_bias, begin, end)
                for n, name in enumerate(norms, start=1):
                    entries |= linear(f"{at}.residual.{name}", getattr(layer, f"norm{n}"))
                entries |= linear(f"{at}.feed_forward.up", layer.linear1)
                entries |= linear(f"{at}.feed_forward.down", layer.linear2)
        return entries


def transformer(out):
    for placement, norm_first in (("post", False), ("pre", True)):
        model = normal_(Transformer(D, HEADS, WIDTH, norm_first))
        write_encoder_decoder(out, f"transformer_{placement}", model, model.names, label_smoothing=0.1)


def t5(out):
    def parameters(model):
        entries = {"token_embedding.weight": plain(model.shared.weight)}
        if model.lm_head.weight is not model.shared.weight:
            entries["head.output.weight"] = plain(model.lm_head.weight)
        for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
            bias = stack.block[0].layer[0].SelfAttention.relative_attention_bias
            entries |= parts(
                {f"{side}.position_bias.buckets.weight": plain(bias.weight)},
                weight_only(f"{side}.final_norm", stack.final_layer_norm),
            )
            for i, block in enumerate(stack.block):
                at = f"{side}.layers.{i}"
                attentions = {"self_attention": (block.layer[0].SelfAttention, block.layer[0].layer_norm)}
                if side == "decoder":
                    attentions["cross_attention"] = (block.layer[1].EncDecAttention, block.layer[1].layer_norm)
                for name, (attention, norm) in attentions.items():
                    entries |= parts(
                        linear(f"{at}.{name}.q", attention.q),
                        linear(f"{at}.{name}.k", attention.k),
                        linear(f"{at}.{name}.v", attention.v),
                        linear(f"{at}.{name}.out", attention.o),
                        weight_only(f"{at}.residual.{name}_norm", norm),
                    )
                feed_forward = block.layer[-1].DenseReluDense
                if hasattr(feed_forward, "wi"):
                    entries |= linear(f"{at}.feed_forward.up", feed_forward.wi)
                else:
                    entries |= parts(
                        linear(f"{at}.feed_forward.gate", feed_forward.wi_0),
                        linear(f"{at}.feed_forward.up", feed_forward.wi_1),
                    )
                entries |= linear(f"{at}.feed_forward.down", feed_forward.wo)
                entries |= weight_only(f"{at}.residual.feed_forward_norm", block.layer[-1].layer_norm)
        return entries

    shape = {
        "vocab_size": V, "d_model": D, "d_kv": 10, "d_ff": WIDTH, "num_layers": LAYERS,
        "num_decoder_layers": LAYERS + 1, "num_heads": HEADS, "relative_attention_num_buckets": BUCKETS,
        "relative_attention_max_distance": MAX_DISTANCE, "dropout_rate": 0.0, "use_cache": False,
    }  # fmt: skip
    versions = {
        "t5_v1_0": {"feed_forward_proj": "relu", "tie_word_embeddings": True},
        "t5_v1_1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    }
    for name, version in versions.items():
        model = T5ForConditionalGeneration(T5Config(**shape, **version))
        if not version.get("tie_word_embeddings", True):  # transformers 5 ties them until a file has both matrices
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
        normal_(model)
        # T5 does not divide its scores by the root of Dh; its initial q weights are small instead. Without this factor
        # the scores are so large that rounding errors come near the tolerances.
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if key.endswith(".q.weight"):
                    parameter *= shape["d_kv"] ** -0.5

        def forward(source, source_visible, target):
            return model(input_ids=source, attention_mask=source_visible, decoder_input_ids=target).logits

        write_encoder_decoder(out, name, forward, lambda: parameters(model))


def bart_config(**more):
    return BartConfig(
        vocab_size=V, d_model=D, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=WIDTH, decoder_ffn_dim=WIDTH, max_position_embeddings=POSITIONS,
        dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, **(EAGER | {"pad_token_id": None} | more),
    )  # fmt: skip


def make_bart():
    return BartForConditionalGeneration(bart_config())


def bart_parameters(model, first=2):
    """BART's position tables begin with two unused rows. `first`: the first row that the zoo's tables have."""
    entries = {"token_embedding.weight": plain(model.model.shared.weight)}
    for side, stack in (("encoder", model.model.encoder), ("decoder", model.model.decoder)):
        table = rows(stack.embed_positions.weight, first, 2 + POSITIONS)
        entries |= {f"{side}_embedder.position_embedding.weight": table}
        entries |= linear(f"{side}_embedder.embedding_norm", stack.layernorm_embedding)
        for i, layer in enumerate(stack.layers):
            at = f"{side}.layers.{i}"
            attentions = {"self_attention": (layer.self_attn, layer.self_attn_layer_norm)}
            if side == "decoder":
                attentions["cross_attention"] = (layer.encoder_attn, layer.encoder_attn_layer_norm)
            for name, (attention, norm) in attentions.items():
                entries |= parts(
                    linear(f"{at}.{name}.q", attention.q_proj),
                    linear(f"{at}.{name}.k", attention.k_proj),
                    linear(f"{at}.{name}.v", attention.v_proj),
                    linear(f"{at}.{name}.out", attention.out_proj),
                    linear(f"{at}.residual.{name}_norm", norm),
                )
            entries |= parts(
                linear(f"{at}.feed_forward.up", layer.fc1),
                linear(f"{at}.feed_forward.down", layer.fc2),
                linear(f"{at}.residual.feed_forward_norm", layer.final_layer_norm),
            )
    return entries


def random_bart():
    model = normal_(make_bart())
    model.generation_config.update(decoder_start_token_id=START, forced_eos_token_id=None)
    return model, bart_parameters(model)


def bart(out):
    model = normal_(make_bart())

    def forward(source, source_visible, target):
        return model(input_ids=source, attention_mask=source_visible, decoder_input_ids=target).logits

    write_encoder_decoder(out, "bart", forward, lambda: bart_parameters(model))
    model.zero_grad()
    write_encoder_decoder(out, "bart_offset", forward, lambda: bart_parameters(model, first=0))


def bart_classifier(out):
    """The source on both sides, and the last end token of the decoder."""
    classes, pad, end = 5, 0, 2
    config = bart_config(
        num_labels=classes, pad_token_id=pad, eos_token_id=end, decoder_start_token_id=START, classifier_dropout=0.0
    )
    model = normal_(BartForSequenceClassification(config))
    ids, targets = torch.randint(3, V, (B, T)), torch.randint(0, classes, (B,))
    ids[torch.arange(B), LENGTHS - 1] = end
    ids[visible(LENGTHS, T) == 0] = pad
    result = model(input_ids=ids, attention_mask=visible(LENGTHS, T), labels=targets)
    head = model.classification_head
    write_case(
        out, "bart_classifier", inputs={"ids": ids, "lengths": LENGTHS, "targets": targets},
        outputs={"logits": result.logits, "loss": result.loss}, loss=result.loss,
        parameters=parts(
            bart_parameters(model), linear("head.pooler", head.dense), linear("head.classifier", head.out_proj)
        ),
    )  # fmt: skip


# ---- ten steps of AdamW ---------------------------------------------------------------------------------------------


def adamw(out):
    """Weights before the first step, batches, and the loss before each step."""

    def groups(model, decay_all):
        matrices = [p for p in model.parameters() if p.dim() >= 2 or decay_all]
        vectors = [p for p in model.parameters() if p.dim() < 2 and not decay_all]
        return [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]

    def case(name, model, parameters, batch_loss, decay_all, steps=10):
        tensors = {f"param/{key}": contiguous(f(*p)) for key, (f, *p) in parameters.items()}
        optimizer = torch.optim.AdamW(groups(model, decay_all), lr=3e-3, betas=(0.9, 0.98), eps=1e-8)
        losses, norms = [], []
        for step in range(steps):
            batch, loss = batch_loss()
            tensors |= {f"input/{key}_{step}": value for key, value in batch.items()}
            optimizer.zero_grad()
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
            optimizer.step()
            losses.append(loss.item())
        tensors["output/losses"] = torch.tensor(losses)
        tensors["output/gradient_norms"] = torch.tensor(norms)
        tensors |= {f"output/{key}": contiguous(f(*p)) for key, (f, *p) in parameters.items()}
        save_file(tensors, out / f"{name}.safetensors")

    for decay_all in (False, True):
        gpt = normal_(make_gpt2(), std=0.1)

        def decoder_batch():
            ids = tokens(B, T + 1)
            logits = gpt(input_ids=ids[:, :-1]).logits
            batch = {"ids": ids[:, :-1].contiguous(), "targets": ids[:, 1:].flatten()}
            return batch, F.cross_entropy(logits.flatten(0, 1), batch["targets"])

        case("adamw_gpt2_decay_all" if decay_all else "adamw_gpt2", gpt, gpt2_parameters(gpt), decoder_batch, decay_all)

    translator = normal_(Transformer(D, HEADS, WIDTH, norm_first=False), std=0.1)

    def translation_batch():
        source, target = tokens(B, S), tokens(B, T + 1)
        logits = translator(source, visible(SOURCE_LENGTHS, S), target[:, :-1])
        batch = {
            "ids": source, "lengths": SOURCE_LENGTHS.clone(), "decoder_ids": target[:, :-1].contiguous(),
            "targets": target[:, 1:].flatten(),
        }  # fmt: skip
        return batch, F.cross_entropy(logits.flatten(0, 1), batch["targets"], label_smoothing=0.1)

    case("adamw_transformer", translator, translator.names(), translation_batch, False)


CASES = [
    gpt2, llama, qwen, olmo2, mixtures, gemma2, mistral, gemma3, phi, mpt, bert, distilbert, longformer, roberta,
    big_bird, transformer, t5, bart, bart_classifier, adamw,
]  # fmt: skip
