"""Tiny decoders of further families for reference_interop.py: parallel sub-layers, ALiBi, stacked matrices, factors."""

import random


def shape(draw, *, widths=(8, 12), grouped=True):
    """Odd sizes, with heads of which a half or a quarter can be turned."""
    width = draw.choice(widths)
    kv_heads = draw.choice([1, 2, 3]) if grouped else draw.choice([2, 3, 5])
    heads = kv_heads * (draw.choice([1, 2, 3]) if grouped else 1)
    return {
        "hidden_size": heads * width, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "intermediate_size": draw.choice([13, 22, 37]), "num_hidden_layers": draw.choice([1, 2, 3]),
        "max_position_embeddings": draw.choice([32, 64]), "vocab_size": 300,
    }  # fmt: skip


def without(sizes, *keys):
    return {key: value for key, value in sizes.items() if key not in keys}


SPECIAL = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}


def neox(causal):
    from transformers import GPTJConfig, GPTNeoXConfig

    for seed in range(3):
        draw = random.Random(f"neox {seed}")
        sizes = without(shape(draw, widths=(8, 16), grouped=False), "num_key_value_heads")
        config = GPTNeoXConfig(
            **sizes, **SPECIAL, use_parallel_residual=seed != 1, rotary_pct=[0.25, 0.5, 1.0][seed], rotary_emb_base=[10000, 500, 10000][seed],
            hidden_act=["gelu", "gelu_new", "relu"][seed], attention_bias=seed != 2, tie_word_embeddings=seed == 1,
        )  # fmt: skip
        causal(f"gpt_neox_{seed}", config, seed)
    for seed in range(2):
        draw = random.Random(f"gptj {seed}")
        sizes = shape(draw, grouped=False)
        config = GPTJConfig(
            vocab_size=300, n_embd=sizes["hidden_size"], n_head=sizes["num_attention_heads"], n_positions=48,
            n_layer=sizes["num_hidden_layers"], n_inner=[None, 17][seed], rotary_dim=[4, 8][seed], **SPECIAL,
        )  # fmt: skip
        causal(f"gptj_{seed}", config, seed)


def opt(causal):
    from transformers import OPTConfig

    for seed in range(4):
        draw = random.Random(f"opt {seed}")
        sizes = without(shape(draw, grouped=False), "num_key_value_heads", "intermediate_size")
        config = OPTConfig(
            **sizes, ffn_dim=draw.choice([13, 22]), word_embed_proj_dim=sizes["hidden_size"] if seed < 3 else 10, **SPECIAL,
            do_layer_norm_before=seed % 2 == 0, enable_bias=seed != 2, activation_function=["relu", "relu", "gelu", "relu"][seed],
        )  # fmt: skip
        causal(f"opt_{seed}", config, seed)


def alibi(causal):
    from transformers import BloomConfig, MptConfig

    for seed in range(2):
        draw = random.Random(f"alibi {seed}")
        sizes = shape(draw, grouped=False)
        config = BloomConfig(
            vocab_size=300, hidden_size=sizes["hidden_size"], n_head=sizes["num_attention_heads"],
            n_layer=sizes["num_hidden_layers"], **SPECIAL, **({"seq_length": 64} if seed else {}),
        )  # fmt: skip
        causal(f"bloom_{seed}", config, seed, has_positions=False)
        attention = {"clip_qkv": [None, 0.5][seed], "softmax_scale": [None, 0.3][seed]}
        config = MptConfig(
            vocab_size=300, d_model=sizes["hidden_size"], n_heads=sizes["num_attention_heads"], max_seq_len=64,
            n_layers=sizes["num_hidden_layers"], attn_config=attention, **SPECIAL,
        )  # fmt: skip
        causal(f"mpt_{seed}", config, seed, has_positions=False)


def falcon(causal):
    from transformers import FalconConfig

    kinds = [
        {"multi_query": True}, {"new_decoder_architecture": True, "num_kv_heads": 2},
        {"multi_query": False, "bias": True, "parallel_attn": False},
        {"new_decoder_architecture": True, "num_kv_heads": 3, "num_ln_in_parallel_attn": 1},
    ]  # fmt: skip
    for seed, kind in enumerate(kinds):
        draw = random.Random(f"falcon {seed}")
        sizes = without(shape(draw), "num_key_value_heads", "intermediate_size")
        heads = 6
        sizes |= {"num_attention_heads": heads, "hidden_size": heads * 8}
        config = FalconConfig(**sizes, **kind, **SPECIAL, ffn_hidden_size=draw.choice([22, 37]), tie_word_embeddings=seed != 3)
        causal(f"falcon_{seed}", config, seed)


def phi(causal):
    from transformers import Phi3Config, PhiConfig

    for seed in range(2):
        draw = random.Random(f"phi {seed}")
        config = PhiConfig(**shape(draw, widths=(8, 16)), **SPECIAL, partial_rotary_factor=[0.5, 0.25][seed])
        causal(f"phi_{seed}", config, seed)
    for seed in range(3):
        draw = random.Random(f"phi3 {seed}")
        sizes = shape(draw)
        scaling = {}
        if seed == 2:
            pairs = sizes["hidden_size"] // sizes["num_attention_heads"] // 4
            sizes["max_position_embeddings"] = 48
            scaling = {
                "partial_rotary_factor": 0.5, "original_max_position_embeddings": 24, "rope_scaling": {
                    "type": "longrope", "short_factor": [1 + 0.3 * i for i in range(pairs)],
                    "long_factor": [2.0 + i for i in range(pairs)],
                },
            }  # fmt: skip
        config = Phi3Config(**sizes, **SPECIAL, **scaling, sliding_window=[None, 4, None][seed])
        causal(f"phi3_{seed}", config, seed)


def relatives(causal):
    from transformers import GraniteConfig, OlmoConfig, SmolLM3Config, Starcoder2Config

    for seed in range(2):
        draw = random.Random(f"relatives {seed}")
        tied = {"tie_word_embeddings": bool(seed % 2)}
        config = OlmoConfig(**shape(draw), **SPECIAL, **tied, clip_qkv=[None, 0.6][seed], attention_bias=seed == 1)
        causal(f"olmo_{seed}", config, seed)
        config = GraniteConfig(
            **shape(draw), **SPECIAL, **tied, attention_bias=seed == 1, mlp_bias=seed == 1,
            embedding_multiplier=[12.0, 0.7][seed], residual_multiplier=[0.22, 1.3][seed], attention_multiplier=[0.1, 0.5][seed],
            logits_scaling=[6.0, 1.0][seed],
        )  # fmt: skip
        causal(f"granite_{seed}", config, seed)
        config = Starcoder2Config(**shape(draw), **SPECIAL, **tied, use_bias=seed == 0, sliding_window=[None, 4][seed])
        causal(f"starcoder2_{seed}", config, seed)
    for seed in range(3):
        draw = random.Random(f"smollm3 {seed}")
        layers = {"num_hidden_layers": 5}
        kinds = [{}, {"no_rope_layers": [0, 1, 1, 0, 1]}, {"no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": 4}]
        config = SmolLM3Config(**(shape(draw) | layers), **SPECIAL, **kinds[seed], tie_word_embeddings=seed != 1)
        causal(f"smollm3_{seed}", config, seed)


def cohere(causal):
    from transformers import Cohere2Config, CohereConfig

    for seed in range(2):
        draw = random.Random(f"cohere {seed}")
        config = CohereConfig(
            **shape(draw), **SPECIAL, use_qk_norm=seed == 1, logit_scale=[0.5, 1.0][seed], rope_theta=8000.0,
            attention_bias=seed == 1, tie_word_embeddings=seed == 0,
        )  # fmt: skip
        causal(f"cohere_{seed}", config, seed)
        sizes = shape(draw) | {"num_hidden_layers": 5, "head_dim": 6}
        config = Cohere2Config(**sizes, **SPECIAL, sliding_window=4, logit_scale=0.3, rope_theta=9000.0)
        causal(f"cohere2_{seed}", config, seed)


def glm(causal):
    from transformers import Glm4Config, GlmConfig

    for seed in range(2):
        draw = random.Random(f"glm {seed}")
        for name, config_class in (("glm", GlmConfig), ("glm4", Glm4Config)):
            config = config_class(
                **shape(draw), **SPECIAL, head_dim=[8, 12][seed], attention_bias=seed == 0, rms_norm_eps=1e-5,
                tie_word_embeddings=seed == 1,
            )  # fmt: skip
            causal(f"{name}_{seed}", config, seed)


def gpt_oss(causal):
    from transformers import GptOssConfig

    for seed in range(3):
        draw = random.Random(f"gpt_oss {seed}")
        heads = {"num_attention_heads": 6, "num_key_value_heads": [2, 3, 1][seed]}
        sizes = shape(draw) | heads | {"num_hidden_layers": 3, "max_position_embeddings": 32}
        yarn = {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 32.0, "beta_slow": 1.0,
            "truncate": False,
        }  # fmt: skip
        config = GptOssConfig(
            **sizes, **SPECIAL, head_dim=[8, 6, 12][seed], sliding_window=4, num_local_experts=[5, 4, 3][seed],
            num_experts_per_tok=[2, 3, 1][seed], rope_theta=900.0, rope_scaling=[yarn, {"rope_type": "default"}, yarn][seed],
            layer_types=None if seed < 2 else ["full_attention", "sliding_attention", "full_attention"],
        )  # fmt: skip
        causal(f"gpt_oss_{seed}", config, seed)


def latent_shape(draw):
    """Odd sizes of latent attention and of small experts."""
    return without(shape(draw, grouped=False), "vocab_size") | {
        "vocab_size": 300, "num_hidden_layers": 3, "max_position_embeddings": 32, "qk_nope_head_dim": draw.choice([6, 10]),
        "qk_rope_head_dim": draw.choice([2, 4]), "v_head_dim": draw.choice([5, 7]), "kv_lora_rank": draw.choice([6, 10]),
        "moe_intermediate_size": draw.choice([5, 9]), "n_shared_experts": draw.choice([1, 2]),
    }  # fmt: skip


def deepseek(causal):
    import transformers
    from transformers import DeepseekV2Config, DeepseekV3Config

    is_newest = not transformers.__version__.startswith("4.")
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 32.0, "beta_slow": 1.0}
    for seed in range(3):
        draw = random.Random(f"deepseek {seed}")
        sizes = latent_shape(draw) | {"q_lora_rank": [None, 9, 6][seed], "attention_bias": seed == 2}
        # Version 4 does not multiply the scores of V2 by what mscale_all_dim gives.
        scales = {"mscale": 0.8, "mscale_all_dim": 0.6} if is_newest else {}
        groups = [{"topk_method": "greedy"}, {"topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 2}]
        config = DeepseekV2Config(
            **sizes, **SPECIAL, **groups[seed % 2], n_routed_experts=[5, 6, 4][seed], num_experts_per_tok=[2, 3, 1][seed],
            first_k_dense_replace=[0, 1, 2][seed], routed_scaling_factor=[1.0, 1.7, 0.6][seed],
            rope_scaling=[None, yarn | scales, yarn][seed], tie_word_embeddings=seed == 2,
        )  # fmt: skip
        causal(f"deepseek_v2_{seed}", config, seed)

        def prepare(model):
            # Where the numbers are not negative, versions 4 and 5 choose the same experts.
            for layer in model.model.layers:
                if hasattr(layer.mlp, "gate"):
                    layer.mlp.gate.e_score_correction_bias.uniform_(0, 0.5)

        config = DeepseekV3Config(
            **sizes, **SPECIAL, n_group=[2, 1, 3][seed], topk_group=[1, 1, 2][seed], n_routed_experts=[8, 5, 6][seed],
            num_experts_per_tok=[3, 2, 2][seed], first_k_dense_replace=[1, 0, 2][seed], norm_topk_prob=seed != 1,
            routed_scaling_factor=[2.5, 1.0, 1.3][seed], rope_interleave=seed != 1,
            rope_scaling=[None, yarn | {"mscale": 1.0, "mscale_all_dim": 1.0}, yarn | {"mscale": 0.7, "mscale_all_dim": 0.9}][seed],
        )  # fmt: skip
        causal(f"deepseek_v3_{seed}", config, seed, prepare=prepare)


CASES = [neox, opt, alibi, falcon, phi, relatives, cohere, glm, gpt_oss, deepseek]
