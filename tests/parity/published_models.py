"""The published models of configs/models: what their config.json on the Hub says about the shape and the arithmetic of
the model, and the class of transformers that has the head of our task. Keys that only say how a model is trained, saved or
generates are left out.

MODELS has an entry for each name after "Published as" in configs/models. tests/parity/catalogue_test.py builds them.
"""

from typing import NamedTuple


class Published(NamedTuple):
    class_name: str
    config: dict

    def file(self):
        """config.json"""
        return {"architectures": [self.class_name], **self.config}


MODELS = {}


def add(class_name, family, sizes):
    """`sizes`: what differs between the models of a family, by name."""
    for name, size in sizes.items():
        MODELS[name] = Published(class_name, family | size)


def width(hidden, layers, heads, **more):
    """The sizes of encoders, whose inner width is four times the outer one."""
    return {
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "intermediate_size": 4 * hidden, **more,
    }  # fmt: skip


BASE, LARGE = width(768, 12, 12), width(1024, 24, 16)

BERT = {
    "model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
    "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
}  # fmt: skip
add("BertForMaskedLM", BERT, {
    "google-bert/bert-base-uncased": BASE,
    "google-bert/bert-base-cased": BASE | {"vocab_size": 28996},
    "google-bert/bert-large-uncased": LARGE,
    "google-bert/bert-large-cased": LARGE | {"vocab_size": 28996},
    "google/bert_uncased_L-2_H-128_A-2": width(128, 2, 2),
    "google/bert_uncased_L-4_H-256_A-4": width(256, 4, 4),
    "google/bert_uncased_L-4_H-512_A-8": width(512, 4, 8),
    "google/bert_uncased_L-8_H-512_A-8": width(512, 8, 8),
})  # fmt: skip

ROBERTA = BERT | {
    "model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1,
    "layer_norm_eps": 1e-5, "pad_token_id": 1,
}  # fmt: skip
add("RobertaForMaskedLM", ROBERTA, {"FacebookAI/roberta-base": BASE, "FacebookAI/roberta-large": LARGE})

LONGFORMER = ROBERTA | {"model_type": "longformer", "max_position_embeddings": 4098, "sep_token_id": 2}
add("LongformerForMaskedLM", LONGFORMER, {
    "allenai/longformer-base-4096": BASE | {"attention_window": [512] * 12},
    "allenai/longformer-large-4096": LARGE | {"attention_window": [512] * 24},
})  # fmt: skip

BIG_BIRD = BERT | {
    "model_type": "big_bird", "vocab_size": 50358, "max_position_embeddings": 4096, "hidden_act": "gelu_new",
    "attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3, "rescale_embeddings": False,
    "use_bias": True,
}  # fmt: skip
add("BigBirdForMaskedLM", BIG_BIRD, {"google/bigbird-roberta-base": BASE, "google/bigbird-roberta-large": LARGE})

DISTILBERT = {
    "model_type": "distilbert", "vocab_size": 30522, "max_position_embeddings": 512, "dim": 768, "hidden_dim": 3072,
    "n_layers": 6, "n_heads": 12, "activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1, "pad_token_id": 0,
}  # fmt: skip
add("DistilBertForMaskedLM", DISTILBERT, {
    "distilbert/distilbert-base-uncased": {},
    "distilbert/distilbert-base-cased": {"vocab_size": 28996},
})  # fmt: skip

ESM2 = {
    "model_type": "esm", "vocab_size": 33, "max_position_embeddings": 1026, "position_embedding_type": "rotary",
    "layer_norm_eps": 1e-5, "token_dropout": True, "emb_layer_norm_before": False, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "pad_token_id": 1, "mask_token_id": 32, "is_folding_model": False,
}  # fmt: skip
add("EsmForMaskedLM", ESM2, {
    "facebook/esm2_t6_8M_UR50D": width(320, 6, 20),
    "facebook/esm2_t12_35M_UR50D": width(480, 12, 20),
    "facebook/esm2_t30_150M_UR50D": width(640, 30, 20),
    "facebook/esm2_t33_650M_UR50D": width(1280, 33, 20),
    "facebook/esm2_t36_3B_UR50D": width(2560, 36, 40),
    "facebook/esm2_t48_15B_UR50D": width(5120, 48, 40),
})  # fmt: skip

GPT2 = {
    "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1, "embd_pdrop": 0.1,
    "resid_pdrop": 0.1,
}  # fmt: skip
add("GPT2LMHeadModel", GPT2, {
    "openai-community/gpt2": {},
    "openai-community/gpt2-medium": {"n_embd": 1024, "n_layer": 24, "n_head": 16},
    "openai-community/gpt2-large": {"n_embd": 1280, "n_layer": 36, "n_head": 20},
    "openai-community/gpt2-xl": {"n_embd": 1600, "n_layer": 48, "n_head": 25},
    "distilbert/distilgpt2": {"n_layer": 6},
})  # fmt: skip


def t5(d_model, d_kv, d_ff, layers, heads):
    return {
        "d_model": d_model, "d_kv": d_kv, "d_ff": d_ff, "num_layers": layers, "num_decoder_layers": layers,
        "num_heads": heads,
    }  # fmt: skip


T5 = {
    "model_type": "t5", "vocab_size": 32128, "relative_attention_num_buckets": 32, "layer_norm_epsilon": 1e-6,
    "dropout_rate": 0.1, "feed_forward_proj": "relu", "is_encoder_decoder": True, "n_positions": 512,
    "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip
add("T5ForConditionalGeneration", T5, {
    "google-t5/t5-small": t5(512, 64, 2048, 6, 8),
    "google-t5/t5-base": t5(768, 64, 3072, 12, 12),
    "google-t5/t5-large": t5(1024, 64, 4096, 24, 16),
    "google-t5/t5-3b": t5(1024, 128, 16384, 24, 32),
    "google-t5/t5-11b": t5(1024, 128, 65536, 24, 128),
})  # fmt: skip
T5_V1_1 = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
for size, shape in {
    "small": t5(512, 64, 1024, 8, 6),
    "base": t5(768, 64, 2048, 12, 12),
    "large": t5(1024, 64, 2816, 24, 16),
    "xl": t5(2048, 64, 5120, 24, 32),
    "xxl": t5(4096, 64, 10240, 24, 64),
}.items():
    names = (f"google/t5-v1_1-{size}", f"google/flan-t5-{size}")
    add("T5ForConditionalGeneration", T5_V1_1, dict.fromkeys(names, shape))


def two_sides(d_model, layers, heads, d_ff):
    return {
        "d_model": d_model, "encoder_layers": layers, "decoder_layers": layers, "encoder_attention_heads": heads,
        "decoder_attention_heads": heads, "encoder_ffn_dim": d_ff, "decoder_ffn_dim": d_ff,
    }  # fmt: skip


BART = {
    "model_type": "bart", "vocab_size": 50265, "max_position_embeddings": 1024, "activation_function": "gelu",
    "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1, "scale_embedding": False,
    "is_encoder_decoder": True, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
add("BartForConditionalGeneration", BART, {
    "facebook/bart-base": two_sides(768, 6, 12, 3072),
    "facebook/bart-large": two_sides(1024, 12, 16, 4096),
})  # fmt: skip
MARIAN = {
    "model_type": "marian", "vocab_size": 58101, "max_position_embeddings": 512, "activation_function": "swish",
    "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0, "scale_embedding": True,
    "is_encoder_decoder": True, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 58100,
    "decoder_start_token_id": 58100,
}  # fmt: skip
add("MarianMTModel", MARIAN, {"Helsinki-NLP/opus-mt-en-de": two_sides(512, 6, 8, 2048)})


def llama(hidden, layers, heads, kv_heads, inner, **more):
    return {
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "intermediate_size": inner, **more,
    }  # fmt: skip


LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 2048, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
add("LlamaForCausalLM", LLAMA, {
    "huggyllama/llama-7b": llama(4096, 32, 32, 32, 11008),
    "huggyllama/llama-13b": llama(5120, 40, 40, 40, 13824),
    "huggyllama/llama-30b": llama(6656, 60, 52, 52, 17920),
    "huggyllama/llama-65b": llama(8192, 80, 64, 64, 22016, rms_norm_eps=1e-5),
})  # fmt: skip
LLAMA2 = LLAMA | {"rms_norm_eps": 1e-5, "max_position_embeddings": 4096}
add("LlamaForCausalLM", LLAMA2, {
    "meta-llama/Llama-2-7b-hf": llama(4096, 32, 32, 32, 11008),
    "meta-llama/Llama-2-13b-hf": llama(5120, 40, 40, 40, 13824),
    "meta-llama/Llama-2-70b-hf": llama(8192, 80, 64, 8, 28672),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": llama(2048, 22, 32, 4, 5632, max_position_embeddings=2048),
})  # fmt: skip


def llama3_scaling(factor):
    return {
        "rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip


LLAMA3 = LLAMA2 | {
    "vocab_size": 128256, "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": llama3_scaling(8.0), "bos_token_id": 128000, "eos_token_id": 128001,
}  # fmt: skip
LLAMA3_2 = {"rope_scaling": llama3_scaling(32.0), "tie_word_embeddings": True}
add("LlamaForCausalLM", LLAMA3, {
    "meta-llama/Llama-3.1-8B": llama(4096, 32, 32, 8, 14336),
    "meta-llama/Llama-3.1-70B": llama(8192, 80, 64, 8, 28672),
    "meta-llama/Llama-3.1-405B": llama(16384, 126, 128, 8, 53248),
    "meta-llama/Llama-3.2-1B": llama(2048, 16, 32, 8, 8192, head_dim=64, **LLAMA3_2),
    "meta-llama/Llama-3.2-3B": llama(3072, 28, 24, 8, 8192, head_dim=128, **LLAMA3_2),
})  # fmt: skip

SMOLLM2 = LLAMA2 | {
    "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta": 100000.0, "tie_word_embeddings": True,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
add("LlamaForCausalLM", SMOLLM2, {
    "HuggingFaceTB/SmolLM2-135M": llama(576, 30, 9, 3, 1536),
    "HuggingFaceTB/SmolLM2-360M": llama(960, 32, 15, 5, 2560),
    "HuggingFaceTB/SmolLM2-1.7B": llama(2048, 24, 32, 32, 8192, rope_theta=130000.0),
})  # fmt: skip

MISTRAL = LLAMA2 | {"model_type": "mistral", "max_position_embeddings": 32768}
add("MistralForCausalLM", MISTRAL, {
    "mistralai/Mistral-7B-v0.1": llama(4096, 32, 32, 8, 14336, sliding_window=4096),
    "mistralai/Mistral-7B-v0.3": llama(
        4096, 32, 32, 8, 14336, sliding_window=None, vocab_size=32768, rope_theta=1000000.0
    ),
})  # fmt: skip

QWEN2 = {
    "model_type": "qwen2", "vocab_size": 152064, "max_position_embeddings": 131072, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": False, "use_sliding_window": False,
    "bos_token_id": 151643, "eos_token_id": 151643,
}  # fmt: skip
TIED = {"tie_word_embeddings": True, "vocab_size": 151936}
SHORT = {"max_position_embeddings": 32768}
QWEN2_SIZES = {
    "0.5B": llama(896, 24, 14, 2, 4864, **TIED),
    "1.5B": llama(1536, 28, 12, 2, 8960, **TIED),
    "7B": llama(3584, 28, 28, 4, 18944),
    "72B": llama(8192, 80, 64, 8, 29568, rms_norm_eps=1e-5),
}  # fmt: skip
add("Qwen2ForCausalLM", QWEN2, {f"Qwen/Qwen2-{size}": shape for size, shape in QWEN2_SIZES.items()})
QWEN2_5_SIZES = QWEN2_SIZES | {
    "0.5B": QWEN2_SIZES["0.5B"] | SHORT,
    "3B": llama(2048, 36, 16, 2, 11008, **TIED, **SHORT),
    "14B": llama(5120, 48, 40, 8, 13824, rms_norm_eps=1e-5),
    "32B": llama(5120, 64, 40, 8, 27648, rms_norm_eps=1e-5),
}
add("Qwen2ForCausalLM", QWEN2, {f"Qwen/Qwen2.5-{size}": shape for size, shape in QWEN2_5_SIZES.items()})

QWEN3 = QWEN2 | {
    "model_type": "qwen3", "vocab_size": 151936, "max_position_embeddings": 40960, "head_dim": 128,
    "attention_bias": False, "eos_token_id": 151645,
}  # fmt: skip
add("Qwen3ForCausalLM", QWEN3, {
    "Qwen/Qwen3-0.6B": llama(1024, 28, 16, 8, 3072, **TIED),
    "Qwen/Qwen3-1.7B": llama(2048, 28, 16, 8, 6144, **TIED),
    "Qwen/Qwen3-4B": llama(2560, 36, 32, 8, 9728, **TIED),
    "Qwen/Qwen3-8B": llama(4096, 36, 32, 8, 12288),
    "Qwen/Qwen3-14B": llama(5120, 40, 40, 8, 17408),
    "Qwen/Qwen3-32B": llama(5120, 64, 64, 8, 25600),
})  # fmt: skip

OLMO2 = LLAMA2 | {
    "model_type": "olmo2", "vocab_size": 100352, "max_position_embeddings": 4096, "rope_theta": 500000.0, "rms_norm_eps": 1e-6,
    "attention_bias": False, "eos_token_id": 100257, "bos_token_id": None, "pad_token_id": 100277,
}  # fmt: skip
add("Olmo2ForCausalLM", OLMO2, {
    "allenai/OLMo-2-0425-1B": llama(2048, 16, 16, 16, 8192),
    "allenai/OLMo-2-1124-7B": llama(4096, 32, 32, 32, 11008),
    "allenai/OLMo-2-1124-13B": llama(5120, 40, 40, 40, 13824),
    "allenai/OLMo-2-0325-32B": llama(5120, 64, 40, 8, 27648),
})  # fmt: skip
add("OlmoeForCausalLM", OLMO2 | {"model_type": "olmoe", "vocab_size": 50304, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}, {
    "allenai/OLMoE-1B-7B-0924": llama(
        2048, 16, 16, 16, 1024, num_experts=64, num_experts_per_tok=8, norm_topk_prob=False, clip_qkv=None,
        output_router_logits=False, router_aux_loss_coef=0.01, eos_token_id=50279, pad_token_id=1),
})  # fmt: skip

NEOX = {
    "model_type": "gpt_neox", "vocab_size": 50304, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "rotary_pct": 0.25,
    "rotary_emb_base": 10000, "use_parallel_residual": True, "tie_word_embeddings": False, "max_position_embeddings": 2048,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
add("GPTNeoXForCausalLM", NEOX, {
    "EleutherAI/pythia-70m": width(512, 6, 8),
    "EleutherAI/pythia-160m": BASE,
    "EleutherAI/pythia-410m": LARGE,
    "EleutherAI/pythia-1b": width(2048, 16, 8),
    "EleutherAI/pythia-1.4b": width(2048, 24, 16),
    "EleutherAI/pythia-2.8b": width(2560, 32, 32),
    "EleutherAI/pythia-6.9b": width(4096, 32, 32, vocab_size=50432),
    "EleutherAI/pythia-12b": width(5120, 36, 40, vocab_size=50688),
})  # fmt: skip
add("GPTJForCausalLM", {"model_type": "gptj"}, {
    "EleutherAI/gpt-j-6b": {
        "vocab_size": 50400, "n_positions": 2048, "n_embd": 4096, "n_layer": 28, "n_head": 16, "rotary_dim": 64, "n_inner": None,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "tie_word_embeddings": False, "bos_token_id": 50256, "eos_token_id": 50256,
    },
})  # fmt: skip
add("OPTForCausalLM", {"model_type": "opt"}, {
    "facebook/opt-125m": {
        "vocab_size": 50272, "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "max_position_embeddings": 2048, "activation_function": "relu", "do_layer_norm_before": True,
        "word_embed_proj_dim": 768, "dropout": 0.1, "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1,
    },
    "facebook/opt-350m": {
        "vocab_size": 50272, "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "max_position_embeddings": 2048, "activation_function": "relu", "do_layer_norm_before": False,
        "word_embed_proj_dim": 512, "dropout": 0.1, "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1,
    },
})  # fmt: skip
add("BloomForCausalLM", {"model_type": "bloom"}, {
    "bigscience/bloom-560m": {
        "vocab_size": 250880, "hidden_size": 1024, "n_layer": 24, "n_head": 16, "layer_norm_epsilon": 1e-5,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3,
    },
})  # fmt: skip
add("MptForCausalLM", {"model_type": "mpt"}, {
    "mosaicml/mpt-7b": {
        "vocab_size": 50432, "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "max_seq_len": 2048,
        "attn_config": {"alibi": True, "alibi_bias_max": 8, "clip_qkv": None}, "no_bias": True,
    },
})  # fmt: skip
FALCON = {
    "model_type": "falcon", "vocab_size": 65024, "alibi": False, "bias": False, "parallel_attn": True, "multi_query": True,
    "layer_norm_epsilon": 1e-5, "hidden_dropout": 0.0, "attention_dropout": 0.0, "bos_token_id": 11, "eos_token_id": 11,
}  # fmt: skip
add("FalconForCausalLM", FALCON, {
    "tiiuae/falcon-7b": {
        "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "new_decoder_architecture": False,
    },
    "tiiuae/falcon-40b": {
        "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
        "new_decoder_architecture": True,
    },
})  # fmt: skip
PHI = {
    "model_type": "phi", "vocab_size": 51200, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "rope_theta": 10000.0,
    "max_position_embeddings": 2048, "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
add("PhiForCausalLM", PHI, {
    "microsoft/phi-1_5": llama(2048, 24, 32, 32, 8192, partial_rotary_factor=0.5),
    "microsoft/phi-2": llama(2560, 32, 32, 32, 10240, partial_rotary_factor=0.4),
})  # fmt: skip
PHI3 = LLAMA2 | {"model_type": "phi3", "pad_token_id": 0}
add("Phi3ForCausalLM", PHI3, {
    "microsoft/Phi-3-mini-4k-instruct": llama(
        3072, 32, 32, 32, 8192, vocab_size=32064, max_position_embeddings=4096, original_max_position_embeddings=4096,
        sliding_window=2047),
    "microsoft/phi-4": llama(
        5120, 40, 40, 10, 17920, vocab_size=100352, max_position_embeddings=16384, original_max_position_embeddings=16384,
        rope_theta=250000.0, sliding_window=None),
})  # fmt: skip
add("OlmoForCausalLM", {key: value for key, value in LLAMA2.items() if key != "rms_norm_eps"} | {"model_type": "olmo", "vocab_size": 50304}, {
    "allenai/OLMo-7B-hf": llama(4096, 32, 32, 32, 11008, max_position_embeddings=2048),
})  # fmt: skip
add("GraniteForCausalLM", LLAMA2 | {"model_type": "granite", "vocab_size": 49155, "bos_token_id": 0, "eos_token_id": 0}, {
    "ibm-granite/granite-3.1-2b-base": llama(
        2048, 40, 32, 8, 8192, max_position_embeddings=131072, rope_theta=5000000.0, tie_word_embeddings=True,
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.015625, logits_scaling=8.0),
})  # fmt: skip
add("SmolLM3ForCausalLM", LLAMA2 | {"model_type": "smollm3", "vocab_size": 128256}, {
    "HuggingFaceTB/SmolLM3-3B": llama(
        2048, 36, 16, 4, 11008, max_position_embeddings=65536, rope_theta=5000000.0, tie_word_embeddings=True,
        rms_norm_eps=1e-6, no_rope_layer_interval=4, pad_token_id=128004),
})  # fmt: skip
add("Starcoder2ForCausalLM", {"model_type": "starcoder2", "vocab_size": 49152}, {
    "bigcode/starcoder2-7b": llama(
        4608, 32, 36, 4, 18432, max_position_embeddings=16384, rope_theta=1000000.0, norm_epsilon=1e-5, use_bias=True,
        hidden_act="gelu_pytorch_tanh", sliding_window=4096, attention_dropout=0.1, residual_dropout=0.1, embedding_dropout=0.1,
        bos_token_id=0, eos_token_id=0),
})  # fmt: skip
COHERE = {
    "model_type": "cohere", "vocab_size": 256000, "hidden_act": "silu", "layer_norm_eps": 1e-5, "max_position_embeddings": 8192,
    "rope_theta": 10000.0, "logit_scale": 0.0625, "use_qk_norm": False, "attention_bias": False, "attention_dropout": 0.0,
    "bos_token_id": 5, "eos_token_id": 255001, "pad_token_id": 0,
}  # fmt: skip
add("CohereForCausalLM", COHERE, {
    "CohereForAI/c4ai-command-r-v01": llama(8192, 40, 64, 64, 22528, rope_theta=8000000.0),
    "CohereForAI/aya-23-8B": llama(4096, 32, 32, 8, 14336),
})  # fmt: skip
add("Cohere2ForCausalLM", {key: value for key, value in COHERE.items() if key != "use_qk_norm"} | {"model_type": "cohere2"}, {
    "CohereForAI/c4ai-command-r7b-12-2024": llama(
        4096, 32, 32, 8, 14336, rope_theta=50000.0, logit_scale=0.25, sliding_window=4096, head_dim=128),
})  # fmt: skip
GLM = LLAMA2 | {
    "model_type": "glm", "vocab_size": 151552, "rms_norm_eps": 1.5625e-7, "max_position_embeddings": 131072,
    "head_dim": 128, "attention_bias": True, "partial_rotary_factor": 0.5, "pad_token_id": 151329,
}  # fmt: skip
GLM = {key: value for key, value in GLM.items() if key not in ("rope_scaling", "mlp_bias", "pretraining_tp")}
add("GlmForCausalLM", GLM, {"THUDM/glm-4-9b-chat-hf": llama(4096, 40, 32, 2, 13696)})
add("Glm4ForCausalLM", GLM | {"model_type": "glm4"}, {"THUDM/GLM-4-9B-0414": llama(4096, 40, 32, 2, 13696)})

MIXTRAL = {
    "model_type": "mixtral", "vocab_size": 32000, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "attention_dropout": 0.0, "sliding_window": None, "num_local_experts": 8,
    "num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.001, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
add("MixtralForCausalLM", MIXTRAL, {
    "mistralai/Mixtral-8x7B-v0.1": llama(4096, 32, 32, 8, 14336, max_position_embeddings=32768, router_aux_loss_coef=0.02),
    "mistralai/Mixtral-8x22B-v0.1": llama(6144, 56, 48, 8, 16384, max_position_embeddings=65536),
})  # fmt: skip
QWEN_EXPERTS = {
    "decoder_sparse_step": 1, "mlp_only_layers": [], "output_router_logits": False, "router_aux_loss_coef": 0.001,
    "use_sliding_window": False,
}  # fmt: skip
add("Qwen2MoeForCausalLM", QWEN2 | QWEN_EXPERTS | {"model_type": "qwen2_moe", "max_position_embeddings": 8192}, {
    "Qwen/Qwen1.5-MoE-A2.7B": llama(
        2048, 24, 16, 16, 5632, vocab_size=151936, num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632, norm_topk_prob=False, sliding_window=32768, max_window_layers=21),
})  # fmt: skip
add("Qwen3MoeForCausalLM", QWEN3 | QWEN_EXPERTS | {"model_type": "qwen3_moe"}, {
    "Qwen/Qwen3-30B-A3B": llama(
        2048, 48, 32, 4, 6144, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, norm_topk_prob=True),
    "Qwen/Qwen3-235B-A22B": llama(
        4096, 94, 64, 4, 12288, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1536, norm_topk_prob=True),
})  # fmt: skip

GPT_OSS = {
    "model_type": "gpt_oss", "vocab_size": 201088, "max_position_embeddings": 131072, "head_dim": 64, "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "rope_theta": 150000, "sliding_window": 128, "swiglu_limit": 7.0, "num_experts_per_tok": 4,
    "rope_scaling": {
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn",
        "truncate": False,
    },
    "attention_bias": True, "attention_dropout": 0.0, "tie_word_embeddings": False, "output_router_logits": False,
    "router_aux_loss_coef": 0.9, "eos_token_id": 200002, "pad_token_id": 199999,
}  # fmt: skip
add("GptOssForCausalLM", GPT_OSS, {
    "openai/gpt-oss-20b": llama(2880, 24, 64, 8, 2880, num_local_experts=32),
    "openai/gpt-oss-120b": llama(2880, 36, 64, 8, 2880, num_local_experts=128),
})  # fmt: skip


def deepseek_yarn(mscale):
    return {
        "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": mscale, "mscale_all_dim": mscale,
        "original_max_position_embeddings": 4096, "rope_type": "yarn",
    }  # fmt: skip


DEEPSEEK = {
    "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000, "max_position_embeddings": 163840, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "attention_bias": False, "attention_dropout": 0.0,
    "tie_word_embeddings": False,
}  # fmt: skip
add("DeepseekV2ForCausalLM", DEEPSEEK | {"model_type": "deepseek_v2", "vocab_size": 102400}, {
    "deepseek-ai/DeepSeek-V2-Lite": llama(
        2048, 27, 16, 16, 10944, q_lora_rank=None, n_routed_experts=64, num_experts_per_tok=6, n_shared_experts=2,
        moe_intermediate_size=1408, first_k_dense_replace=1, n_group=1, topk_group=1, topk_method="greedy",
        norm_topk_prob=False, routed_scaling_factor=1.0, rope_scaling=deepseek_yarn(0.707), bos_token_id=100000,
        eos_token_id=100001),
})  # fmt: skip
V3 = llama(
    7168, 61, 128, 128, 18432, q_lora_rank=1536, n_routed_experts=256, num_experts_per_tok=8, n_shared_experts=1,
    moe_intermediate_size=2048, first_k_dense_replace=3, n_group=8, topk_group=4, norm_topk_prob=True,
    routed_scaling_factor=2.5, rope_scaling=deepseek_yarn(1.0), bos_token_id=0, eos_token_id=1)  # fmt: skip
add("DeepseekV3ForCausalLM", DEEPSEEK | {"model_type": "deepseek_v3", "vocab_size": 129280}, {
    "deepseek-ai/DeepSeek-V3": V3, "deepseek-ai/DeepSeek-R1": V3,
})  # fmt: skip

GEMMA2 = {
    "model_type": "gemma2", "vocab_size": 256000, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
    "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 10000.0, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "bos_token_id": 2, "eos_token_id": 1,
    "pad_token_id": 0,
}  # fmt: skip
add("Gemma2ForCausalLM", GEMMA2, {
    "google/gemma-2-2b": llama(2304, 26, 8, 4, 9216, head_dim=256, query_pre_attn_scalar=256),
    "google/gemma-2-9b": llama(3584, 42, 16, 8, 14336, head_dim=256, query_pre_attn_scalar=256),
    "google/gemma-2-27b": llama(4608, 46, 32, 16, 36864, head_dim=128, query_pre_attn_scalar=144),
})  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3_text", "vocab_size": 262144, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
    "sliding_window": 512, "query_pre_attn_scalar": 256, "head_dim": 256, "bos_token_id": 2, "eos_token_id": 1,
    "pad_token_id": 0,
}  # fmt: skip
add("Gemma3ForCausalLM", GEMMA3, {
    "google/gemma-3-270m": llama(640, 18, 4, 1, 2048),
    "google/gemma-3-1b-pt": llama(1152, 26, 4, 1, 6912),
})  # fmt: skip

CLASSES = {"id2label": {i: str(i) for i in range(1000)}, "label2id": {str(i): i for i in range(1000)}}
# The names of timm have the shapes of its code, with the keys of transformers.
VIT = {
    "model_type": "vit", "image_size": 224, "patch_size": 16, "num_channels": 3, "hidden_act": "gelu",
    "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "qkv_bias": True,
    **CLASSES,
}  # fmt: skip
add("ViTForImageClassification", VIT, {
    "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k": width(192, 12, 3),
    "timm/vit_small_patch16_224.augreg_in21k_ft_in1k": width(384, 12, 6),
    "google/vit-base-patch16-224": BASE,
    "google/vit-base-patch32-224-in21k": BASE | {"patch_size": 32},
    "google/vit-large-patch16-224": LARGE,
    "google/vit-huge-patch14-224-in21k": width(1280, 32, 16, patch_size=14),
})  # fmt: skip
add("DeiTForImageClassificationWithTeacher", VIT | {"model_type": "deit"}, {
    "facebook/deit-base-distilled-patch16-224": BASE,
})  # fmt: skip
# Without the vector for hidden patches, which only the authors' training needs.
DINOV2 = {
    "model_type": "dinov2", "image_size": 518, "patch_size": 14, "num_channels": 3, "hidden_act": "gelu",
    "layer_norm_eps": 1e-6, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "qkv_bias": True,
    "layerscale_value": 1.0, "drop_path_rate": 0.0, "use_swiglu_ffn": False, "use_mask_token": False, **CLASSES,
}  # fmt: skip
add("Dinov2ForImageClassification", DINOV2, {
    "facebook/dinov2-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "mlp_ratio": 4},
})  # fmt: skip
BEIT = VIT | {
    "model_type": "beit", "vocab_size": 8192, "drop_path_rate": 0.1, "layer_scale_init_value": 0.1, "use_mask_token": False,
    "use_mean_pooling": True, "use_absolute_position_embeddings": False, "use_relative_position_bias": True,
    "use_shared_relative_position_bias": False,
}  # fmt: skip
del BEIT["qkv_bias"]
add("BeitForImageClassification", BEIT, {"microsoft/beit-base-patch16-224": BASE})

# Models of pictures and texts.


def encoder(hidden, layers, heads, inner, act, **more):
    return {
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner,
        "hidden_act": act, **more,
    }  # fmt: skip


def clip(projection, text, vision, patch_size, act="quick_gelu"):
    texts = {"vocab_size": 49408, "max_position_embeddings": 77, "eos_token_id": 2}
    pictures = {"image_size": 224, "patch_size": patch_size}
    return {
        "projection_dim": projection, "text_config": encoder(*text, act, **texts),
        "vision_config": encoder(*vision, act, **pictures),
    }  # fmt: skip


BASE_TEXT, BASE_PICTURE = (512, 12, 8, 2048), (768, 12, 12, 3072)
add("CLIPModel", {"model_type": "clip"}, {
    "openai/clip-vit-base-patch32": clip(512, BASE_TEXT, BASE_PICTURE, 32),
    "openai/clip-vit-base-patch16": clip(512, BASE_TEXT, BASE_PICTURE, 16),
    "openai/clip-vit-large-patch14": clip(768, (768, 12, 12, 3072), (1024, 24, 16, 4096), 14),
    "laion/CLIP-ViT-H-14-laion2B-s32B-b79K": clip(1024, (1024, 24, 16, 4096), (1280, 32, 16, 5120), 14, "gelu"),
})  # fmt: skip


def siglip(sizes, image_size, patch_size):
    def side(**more):
        return encoder(*sizes, "gelu_pytorch_tanh", layer_norm_eps=1e-6, **more)

    return {
        "text_config": side(vocab_size=32000, max_position_embeddings=64),
        "vision_config": side(image_size=image_size, patch_size=patch_size),
    }  # fmt: skip


add("SiglipModel", {"model_type": "siglip"}, {
    "google/siglip-base-patch16-224": siglip(BASE_PICTURE, 224, 16),
    "google/siglip-so400m-patch14-384": siglip((1152, 27, 16, 4304), 384, 14),
})  # fmt: skip


def resnet(kind, *depths):
    sizes = [64, 128, 256, 512] if kind == "basic" else [256, 512, 1024, 2048]
    return {"layer_type": kind, "depths": list(depths), "hidden_sizes": sizes, "embedding_size": 64}


RESNETS = {
    "microsoft/resnet-18": resnet("basic", 2, 2, 2, 2),
    "microsoft/resnet-34": resnet("basic", 3, 4, 6, 3),
    "microsoft/resnet-50": resnet("bottleneck", 3, 4, 6, 3),
    "microsoft/resnet-101": resnet("bottleneck", 3, 4, 23, 3),
    "microsoft/resnet-152": resnet("bottleneck", 3, 8, 36, 3),
}
add("ResNetForImageClassification", {"model_type": "resnet", "num_channels": 3, **CLASSES}, RESNETS)

# The files name backbones of timm, which are these networks.
DETR = {
    "model_type": "detr", "num_queries": 100, "num_labels": 91, "use_timm_backbone": False,
    "use_pretrained_backbone": False, "backbone": None, "position_embedding_type": "sine", "dropout": 0.1,
    "activation_function": "relu", **two_sides(256, 6, 8, 2048),
}  # fmt: skip


def detr(backbone):
    return {"backbone_config": {"model_type": "resnet", "out_features": ["stage4"], **RESNETS[backbone]}}


add("DetrForObjectDetection", DETR, {
    "facebook/detr-resnet-50": detr("microsoft/resnet-50"),
    "facebook/detr-resnet-50-dc5": detr("microsoft/resnet-50"),
    "facebook/detr-resnet-101": detr("microsoft/resnet-101"),
})  # fmt: skip

WHISPER = {
    "model_type": "whisper", "vocab_size": 51865, "num_mel_bins": 80, "max_source_positions": 1500,
    "max_target_positions": 448, "activation_function": "gelu", "dropout": 0.0, "attention_dropout": 0.0,
    "activation_dropout": 0.0, "scale_embedding": False, "bos_token_id": 50257, "eos_token_id": 50257,
    "pad_token_id": 50257, "decoder_start_token_id": 50258,
}  # fmt: skip


def whisper(d_model, layers, heads, **more):
    sides = ("encoder", "decoder")
    return {
        "d_model": d_model, **{f"{side}_layers": layers for side in sides},
        **{f"{side}_attention_heads": heads for side in sides}, **{f"{side}_ffn_dim": 4 * d_model for side in sides},
        **more,
    }  # fmt: skip


add("WhisperForConditionalGeneration", WHISPER, {
    "openai/whisper-tiny": whisper(384, 4, 6),
    "openai/whisper-base": whisper(512, 6, 8),
    "openai/whisper-small": whisper(768, 12, 12),
    "openai/whisper-medium": whisper(1024, 24, 16),
    "openai/whisper-large-v3": whisper(1280, 32, 20, num_mel_bins=128, vocab_size=51866),
    "openai/whisper-large-v3-turbo": whisper(1280, 32, 20, num_mel_bins=128, vocab_size=51866, decoder_layers=4),
})  # fmt: skip

WAV2VEC2 = {
    "model_type": "wav2vec2", "vocab_size": 32, "conv_dim": [512] * 7, "conv_kernel": [10, 3, 3, 3, 3, 2, 2],
    "conv_stride": [5, 2, 2, 2, 2, 2, 2], "conv_bias": False, "feat_extract_norm": "group", "do_stable_layer_norm": False,
    "hidden_act": "gelu", "layer_norm_eps": 1e-5, "hidden_dropout": 0.1, "attention_dropout": 0.1,
    "activation_dropout": 0.1, "feat_proj_dropout": 0.1, "mask_time_prob": 0.05, "mask_time_length": 10,
    "num_conv_pos_embeddings": 128, "num_conv_pos_embedding_groups": 16, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
HUBERT = WAV2VEC2 | {
    "model_type": "hubert", "conv_bias": True, "feat_extract_norm": "layer", "do_stable_layer_norm": True,
    "feat_proj_layer_norm": True,
}  # fmt: skip
add("Wav2Vec2ForCTC", WAV2VEC2, {"facebook/wav2vec2-base-960h": BASE})
add("HubertForCTC", HUBERT, {"facebook/hubert-large-ls960-ft": LARGE})

XLM_ROBERTA = ROBERTA | {"model_type": "xlm-roberta", "vocab_size": 250002}
add("XLMRobertaForMaskedLM", XLM_ROBERTA, dict.fromkeys(("FacebookAI/xlm-roberta-base", "intfloat/multilingual-e5-base"), BASE))
MT5 = T5_V1_1 | {"model_type": "mt5", "vocab_size": 250112}
add("MT5ForConditionalGeneration", MT5, {"google/mt5-small": t5(512, 64, 1024, 8, 6)})
MBART = BART | {
    "model_type": "mbart", "vocab_size": 250054, "activation_function": "relu", "attention_dropout": 0.0,
    "activation_dropout": 0.0, "scale_embedding": True,
}  # fmt: skip
add("MBartForConditionalGeneration", MBART, {"facebook/mbart-large-50-many-to-many-mmt": two_sides(1024, 12, 16, 4096)})
PEGASUS = BART | {
    "model_type": "pegasus", "vocab_size": 96103, "activation_function": "relu", "scale_embedding": True,
    "static_position_embeddings": True, "bos_token_id": 0, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip
add("PegasusForConditionalGeneration", PEGASUS, {
    "google/pegasus-xsum": two_sides(1024, 16, 16, 4096) | {"max_position_embeddings": 512},
    "google/pegasus-cnn_dailymail": two_sides(1024, 16, 16, 4096),
})  # fmt: skip
M2M100 = MBART | {"model_type": "m2m_100", "attention_dropout": 0.1}
add("M2M100ForConditionalGeneration", M2M100, {
    "facebook/m2m100_418M": two_sides(1024, 12, 16, 4096) | {"vocab_size": 128112},
    "facebook/nllb-200-distilled-600M": two_sides(1024, 12, 16, 4096) | {"vocab_size": 256206},
})  # fmt: skip
ALBERT = BERT | {
    "model_type": "albert", "vocab_size": 30000, "embedding_size": 128, "hidden_act": "gelu_new", "num_hidden_groups": 1,
    "inner_group_num": 1, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0,
}  # fmt: skip
add("AlbertForMaskedLM", ALBERT, {"albert/albert-base-v2": BASE})
ELECTRA = BERT | {"model_type": "electra", "embedding_size": 128}
add("ElectraForMaskedLM", ELECTRA, {"google/electra-small-generator": width(256, 12, 4)})
MPNET = {key: value for key, value in ROBERTA.items() if key != "type_vocab_size"} | {
    "model_type": "mpnet", "vocab_size": 30527, "relative_attention_num_buckets": 32,
}  # fmt: skip
add("MPNetForMaskedLM", MPNET, {"microsoft/mpnet-base": BASE})
MODERNBERT = {
    "model_type": "modernbert", "vocab_size": 50368, "max_position_embeddings": 8192, "hidden_activation": "gelu",
    "norm_eps": 1e-5, "global_attn_every_n_layers": 3, "local_attention": 128, "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0, "attention_bias": False, "mlp_bias": False, "norm_bias": False, "decoder_bias": True,
    "classifier_bias": False, "classifier_activation": "gelu", "classifier_pooling": "mean", "pad_token_id": 50283,
}  # fmt: skip
add("ModernBertForMaskedLM", MODERNBERT, {
    "answerdotai/ModernBERT-base": {
        "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152
    },
})  # fmt: skip
DEBERTA = {key: value for key, value in BERT.items() if key != "type_vocab_size"} | {
    "model_type": "deberta-v2", "vocab_size": 128100, "type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": True,
    "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"],
    "max_relative_positions": -1, "position_biased_input": False,
}  # fmt: skip
add("DebertaV2ForMaskedLM", DEBERTA, {"microsoft/deberta-v3-base": BASE})
NOMIC = BERT | {
    "model_type": "nomic_bert", "vocab_size": 30528, "max_position_embeddings": 2048, "hidden_act": "silu",
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
add("NomicBertForMaskedLM", NOMIC, {"nomic-ai/nomic-bert-2048": BASE})
