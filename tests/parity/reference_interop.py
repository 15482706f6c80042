"""Tiny checkpoints of each family as transformers writes them, with random shapes within the family's rules, and what
transformers computes with them: logits, hidden states, attention maps, greedy and beam output.

For each case NAME: NAME/ is the directory of the model, NAME.safetensors has the inputs and outputs.
"""

import contextlib
import copy
import functools
import io
import itertools
import json
import random
import shutil

import interop_decoders
import sentencepiece
import torch
from PIL import Image
from reference import contiguous, plain_experts
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

TEXT = """The cat sat on the mat. A dog ran after the cat, and the cat ran up a tree. It was 1984, or was it 2024?
Wherever you go, there you are. She said: "I don't know what you're talking about." Zwölf Boxkämpfer jagen Viktor."""
# Odd sizes: no power of two, no multiple of another.
B, T = 3, 11
LENGTHS = torch.tensor([11, 7, 1])


def byte_level_bpe(vocab_size, specials):
    """A tokenizer as that of GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator([TEXT], trainer)
    return tokenizer


def begins_with_bos(tokenizer, bos):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    return tokenizer


def random_weights(model):
    """All weights random, so that none can be left out unnoticed; small enough for logits near 1."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            parameter.normal_(1.0 if is_gain and "gemma" not in type(model).__name__.lower() else 0.0, 0.2)
    return model.eval()


def visible(lengths, n):
    return (torch.arange(n)[None] < lengths[:, None]).long()


def padded_left(ids, lengths):
    """The same rows with the padding in front."""
    return torch.stack([row.roll(ids.shape[1] - int(n)) for row, n in zip(ids, lengths)])


def write_model(out, name, model, tokenizer, dtype, *, sharded):
    directory = out / name
    model.to(dtype).save_pretrained(directory, max_shard_size="20KB" if sharded else "5GB")
    tokenizer.save_pretrained(directory)
    # Numbers are compared in fp32, with the weights as they were rounded.
    return plain_experts(type(model).from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval())


@contextlib.contextmanager
def of_the_last_layer(model):
    """Collects what the last layer of an OPT-350m gives: transformers' hidden states are behind the map to the table's width."""
    collected = []
    if getattr(model.config, "word_embed_proj_dim", None) in (None, model.config.hidden_size):
        yield collected
        return

    def collect(module, inputs, output):
        collected.append(output[0] if isinstance(output, tuple) else output)

    hook = model.model.decoder.layers[-1].register_forward_hook(collect)
    yield collected
    hook.remove()


def causal(out, name, config, *, tokenizer, seed, generate=True, has_positions=True, gradients=False, prepare=None):
    """Writes a causal language model and its outputs. Where it `has_positions`, it takes those of tokens behind padding.
    `prepare` changes the model before it is written."""
    # transformers would also write tokens that only the table has, and the zoo does not.
    config.vocab_size = len(tokenizer) if generate else len(tokenizer) + 7
    draw = random.Random(seed)
    torch.manual_seed(seed)
    vocab_size = config.vocab_size
    # pad_token_id differs from all ids of the inputs, since transformers treats it in its own way.
    model = random_weights(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    if prepare:
        prepare(model)
    dtype = [torch.float32, torch.bfloat16, torch.float16][seed % 3]
    model = write_model(out, name, model, tokenizer, dtype, sharded=seed % 2 == 1)
    n_tokens = min(len(tokenizer), vocab_size)
    ids = torch.randint(3, n_tokens, (B, T))
    mask = visible(LENGTHS, T)
    with torch.no_grad(), of_the_last_layer(model) as hidden:
        result = model(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True, use_cache=False
        )
        hidden = hidden[0] if hidden else result.hidden_states[-1]
        left_mask = mask.flip(1)
        positions = {"position_ids": (left_mask.cumsum(1) - 1).clamp(min=0)} if has_positions else {}
        left = model(
            input_ids=padded_left(ids, LENGTHS), attention_mask=left_mask, use_cache=False, **positions
        ).logits  # fmt: skip
    tensors = {
        "ids": ids, "lengths": LENGTHS, "logits": result.logits, "hidden": hidden,
        "maps": torch.stack(result.attentions),
        "left_logits": torch.stack([row.roll(int(n) - T, 0) for row, n in zip(left, LENGTHS)]),
    }  # fmt: skip
    prompt = ids[:1, : draw.randint(2, 6)]
    tensors["prompt"] = prompt
    if generate:
        common = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
        with torch.no_grad():
            greedy = model.generate(prompt, attention_mask=torch.ones_like(prompt), **common)
            beams = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), num_beams=3, num_return_sequences=1,
                early_stopping=True, **common,
            )  # fmt: skip
        tensors |= {"greedy": greedy[:, prompt.shape[1] :], "beams": beams[:, prompt.shape[1] :]}
    if gradients:
        tensors |= write_gradients(out, name, model, tokenizer, ids, mask)
    save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}.safetensors")


def write_gradients(out, name, model, tokenizer, ids, mask):
    """The loss of random targets at the real positions, and a directory with the gradient of each tensor in its place."""
    real = mask.flatten().nonzero().flatten()
    targets = torch.randint(0, len(tokenizer), real.shape)
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits.flatten(0, 1)[real]
    loss = torch.nn.functional.cross_entropy(logits, targets)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    model.save_pretrained(out / "gradients" / name)
    tokenizer.save_pretrained(out / "gradients" / name)
    return {"real": real, "targets": targets, "loss_of_targets": loss.detach()}


def shape(draw, *, grouped=True):
    """A random shape of the Llama kindred."""
    head_dim = draw.choice([4, 6, 10])
    kv_heads = draw.choice([1, 2, 3]) if grouped else draw.choice([2, 3, 5])
    heads = kv_heads * (draw.choice([1, 2, 3]) if grouped else 1)
    return {
        "hidden_size": heads * head_dim, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "intermediate_size": draw.choice([13, 22, 37]), "num_hidden_layers": draw.choice([1, 2, 3]),
        "max_position_embeddings": draw.choice([32, 64]), "vocab_size": 300,
    }  # fmt: skip


def fast(tokenizer, **names):
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def gpt2(out):
    from transformers import GPT2Config

    for seed in range(3):
        draw = random.Random(f"gpt2 {seed}")
        heads, width = draw.choice([2, 3, 5]), draw.choice([4, 6])
        config = GPT2Config(
            vocab_size=300, n_embd=heads * width, n_head=heads, n_layer=3 if seed == 1 else draw.choice([1, 2, 3]),
            n_inner=draw.choice([None, 17]), n_positions=draw.choice([32, 48]), bos_token_id=0, eos_token_id=0,
            activation_function=draw.choice(["gelu_new", "relu", "gelu"]),
            scale_attn_by_inverse_layer_idx=seed == 1, reorder_and_upcast_attn=seed == 1,
        )  # fmt: skip
        tokenizer = fast(byte_level_bpe(290, ["<|endoftext|>"]), eos_token="<|endoftext|>", bos_token="<|endoftext|>")
        causal(out, f"gpt2_{seed}", config, tokenizer=tokenizer, seed=seed, generate=seed != 2)


def llama_tokenizer():
    tokenizer = begins_with_bos(byte_level_bpe(290, ["<s>", "</s>", "<end>"]), "<s>")
    return fast(tokenizer, bos_token="<s>", eos_token="</s>")


def llama(out):
    from transformers import LlamaConfig

    scalings = [
        None,
        {"rope_type": "linear", "factor": 2.0},
        {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16,
        },
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8},
        {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "mscale": 1.0,
            "mscale_all_dim": 0.5,
        },
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "longrope", "factor": 2.0, "original_max_position_embeddings": 24},
    ]  # fmt: skip
    for seed, scaling in enumerate(scalings):
        draw = random.Random(f"llama {seed}")
        sizes = shape(draw)
        if scaling and "original_max_position_embeddings" in scaling:
            # Version 4 takes this quotient for the factor.
            factor = 2 if scaling["rope_type"] == "longrope" else 4
            sizes["max_position_embeddings"] = factor * scaling["original_max_position_embeddings"]
        if scaling and scaling["rope_type"] == "longrope":
            pairs = sizes["hidden_size"] // sizes["num_attention_heads"] // 2
            scaling |= {
                "short_factor": [1 + 0.3 * i for i in range(pairs)], "long_factor": [2.0 + i for i in range(pairs)]
            }  # fmt: skip
        if scaling and scaling["rope_type"] == "longrope":  # where published files have it; version 4 reads it there only
            sizes["original_max_position_embeddings"] = scaling["original_max_position_embeddings"]
        config = LlamaConfig(
            **sizes, tie_word_embeddings=bool(seed % 2), rope_theta=draw.choice([1e4, 5e5]), rope_scaling=scaling,
            rms_norm_eps=draw.choice([1e-5, 1e-6]), bos_token_id=0, eos_token_id=[1, 2] if seed == 0 else 1,
        )  # fmt: skip
        causal(out, f"llama_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)


def mistral(out):
    from transformers import MistralConfig

    for seed in range(2):
        draw = random.Random(f"mistral {seed}")
        config = MistralConfig(
            **shape(draw), head_dim=draw.choice([6, 8]), sliding_window=[None, 4][seed], bos_token_id=0, eos_token_id=1
        )
        causal(out, f"mistral_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)


def qwen(out):
    from transformers import Qwen2Config, Qwen3Config

    for seed in range(3):
        draw = random.Random(f"qwen {seed}")
        sizes = shape(draw) | {"num_hidden_layers": 3}
        windows = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1} if seed == 2 else {}
        tokenizer = fast(byte_level_bpe(290, ["<|endoftext|>", "<|im_end|>"]), eos_token="<|im_end|>")
        special = {"bos_token_id": None, "eos_token_id": 1}
        config = Qwen2Config(**sizes, **windows, **special, tie_word_embeddings=bool(seed % 2), rope_theta=1e6)
        causal(out, f"qwen2_{seed}", config, tokenizer=tokenizer, seed=seed)
        config = Qwen3Config(**sizes, **windows, **special, head_dim=8, tie_word_embeddings=bool(seed % 2))
        causal(out, f"qwen3_{seed}", config, tokenizer=tokenizer, seed=seed)


def olmo(out):
    from transformers import Olmo2Config, OlmoeConfig

    for seed in range(2):
        draw = random.Random(f"olmo {seed}")
        special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None, "tie_word_embeddings": bool(seed % 2)}
        config = Olmo2Config(**shape(draw), **special, rms_norm_eps=1e-6, rope_theta=5e5, attention_bias=seed == 1)
        causal(out, f"olmo2_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)
        experts = {"num_experts": 6 + seed, "num_experts_per_tok": 2 + seed, "norm_topk_prob": seed == 1}
        config = OlmoeConfig(**shape(draw), **special, **experts)
        causal(out, f"olmoe_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)


def mixtures(out):
    from transformers import MixtralConfig, Qwen2MoeConfig, Qwen3MoeConfig

    for seed in range(3):
        draw = random.Random(f"mixtures {seed}")
        sizes = shape(draw) | {"num_hidden_layers": 3}
        special = {"bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": bool(seed % 2)}
        config = MixtralConfig(
            **sizes, **special, num_local_experts=[4, 5, 3][seed], num_experts_per_tok=[2, 3, 1][seed],
            sliding_window=[None, 4, None][seed],
        )  # fmt: skip
        causal(out, f"mixtral_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)
        experts = {
            "num_experts": [7, 4, 6][seed], "num_experts_per_tok": [3, 2, 6][seed], "norm_topk_prob": seed == 1,
            "moe_intermediate_size": draw.choice([5, 9]), "decoder_sparse_step": [1, 2, 1][seed],
            "mlp_only_layers": [[], [], [1]][seed],
        }  # fmt: skip
        config = Qwen2MoeConfig(**sizes, **special, **experts, shared_expert_intermediate_size=draw.choice([6, 11]))
        causal(out, f"qwen2_moe_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)
        windows = {"use_sliding_window": True, "sliding_window": 4} if seed == 2 else {}
        config = Qwen3MoeConfig(**sizes, **special, **experts, **windows, head_dim=8, attention_bias=seed == 1)
        causal(out, f"qwen3_moe_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)


def gemma(out):
    from transformers import Gemma2Config, Gemma3TextConfig

    for seed in range(2):
        draw = random.Random(f"gemma {seed}")
        sizes = shape(draw) | {"num_hidden_layers": 3 + seed, "head_dim": draw.choice([6, 8])}
        special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None, "sliding_window": 4}
        caps = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0} if seed == 0 else {}
        config = Gemma2Config(**sizes, **special, query_pre_attn_scalar=10, **caps)
        causal(out, f"gemma2_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)
        scaling = {"rope_type": "linear", "factor": 8.0} if seed == 1 else None
        config = Gemma3TextConfig(
            **sizes, **special, query_pre_attn_scalar=10, rope_theta=1e6, rope_local_base_freq=1e3,
            rope_scaling=scaling, sliding_window_pattern=2,
        )  # fmt: skip
        causal(out, f"gemma3_{seed}", config, tokenizer=llama_tokenizer(), seed=seed)


def word_pieces():
    """A tokenizer as that of BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator([TEXT], trainers.WordPieceTrainer(vocab_size=200, special_tokens=specials))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return fast(
        tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]"
    )


def roberta_tokenizer():
    tokenizer = byte_level_bpe(290, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return fast(
        tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", cls_token="<s>",
        sep_token="</s>", mask_token="<mask>",
    )  # fmt: skip


def encoded(out, name, model_class, config, tokenizer, seed, call=None):
    """Writes a masked language model or a classifier of texts, and its outputs."""
    torch.manual_seed(seed)
    model = random_weights(model_class._from_config(config, attn_implementation="eager"))
    if name.startswith("big_bird") and model_class.__name__ != "BigBirdModel":
        model.bert.pooler = None  # no class but BigBirdModel uses it
    dtype = [torch.float32, torch.bfloat16, torch.float16][seed % 3]
    model = write_model(out, name, model, tokenizer, dtype, sharded=seed % 2 == 1)
    ids = torch.randint(5, 190, (B, T))
    segments = torch.randint(0, 2, (B, T)) if getattr(config, "type_vocab_size", 1) > 1 else None
    mask = visible(LENGTHS, T)
    inputs = {"input_ids": ids, "attention_mask": mask, "output_hidden_states": True, "output_attentions": True}
    if segments is not None:
        inputs["token_type_ids"] = segments
    if name.startswith("big_bird"):
        # In the first call it exchanges its attention for that of short texts, whose maps transformers 5 does not see then.
        (model if model_class.__name__ == "BigBirdModel" else model.bert).set_attention_type("original_full")
    with torch.no_grad():
        result = model(**inputs, **(call(ids) if call else {}))
    tensors = {"ids": ids, "lengths": LENGTHS, "hidden": result.hidden_states[-1]}
    if "logits" in result:
        tensors["logits"] = result.logits
    if segments is not None:
        tensors["segments"] = segments
    if name.split("_")[0] != "longformer":  # its maps have a form of their own
        tensors["maps"] = torch.stack(result.attentions)
    if "SequenceClassification" in model_class.__name__ and not call:
        tensors |= probabilities(model, tokenizer)
    save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}.safetensors")


SENTENCES = ["The cat sat on it.", "a dog", "You don't know?"]


def probabilities(model, tokenizer):
    """Of the classes of some texts, each by itself."""
    with torch.no_grad():
        logits = [model(torch.tensor([tokenizer(text).input_ids])).logits for text in SENTENCES]
    return {"probabilities": torch.cat(logits).softmax(1)}


def encoder_shape(draw):
    heads, width = draw.choice([2, 3, 5]), draw.choice([4, 6])
    return {
        "hidden_size": heads * width, "num_attention_heads": heads, "intermediate_size": draw.choice([13, 22, 37]),
        "num_hidden_layers": draw.choice([1, 2, 3]), "hidden_act": draw.choice(["gelu", "relu", "gelu_new"]),
    }  # fmt: skip


LABELS = {"id2label": {0: "bad", 1: "so-so", 2: "good"}, "label2id": {"bad": 0, "so-so": 1, "good": 2}}


def bert(out):
    from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

    for seed, model_class in enumerate((BertForMaskedLM, BertForSequenceClassification, BertForMaskedLM, BertModel)):
        config = BertConfig(
            **encoder_shape(random.Random(f"bert {seed}")), vocab_size=200, max_position_embeddings=16 + 8 * seed,
            **LABELS,
        )  # fmt: skip
        encoded(out, f"bert_{seed}", model_class, config, word_pieces(), seed)


def dense(vectors, weight, bias, activation):
    return activation(torch.nn.functional.linear(vectors, weight, bias))


def sentence_vectors(out):
    """Vectors of SENTENCES by the definitions of sentence-transformers, one text at a time."""
    from transformers import BertConfig, BertModel

    names = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]

    def pooled(hidden, name, begin):
        tokens, places = hidden[begin:], torch.arange(begin + 1, len(hidden) + 1, dtype=hidden.dtype)
        return {
            "cls": lambda: tokens[0],
            "max": lambda: tokens.max(0).values,
            "mean": lambda: tokens.mean(0),
            "mean_sqrt_len_tokens": lambda: tokens.sum(0) / len(tokens) ** 0.5,
            "weightedmean": lambda: (tokens * places[:, None]).sum(0) / places.sum(),
            "lasttoken": lambda: tokens[-1],
        }[name]()

    # Poolings, activation of a dense map or none, norm, prompt and whether it is pooled, older or newer files.
    cases = [([name], None, False, "", True, True) for name in names]
    cases += [(["mean", "cls"], None, True, "", True, True), (["max", "lasttoken"], "Tanh", True, "the cat: ", False, False)]
    cases += [(["mean"], "GELU", False, "a dog ", True, False), (["weightedmean", "cls"], "Identity", True, "it ", False, True)]
    for number, (poolings, activation, is_unit, prompt, include_prompt, is_old) in enumerate(cases):
        torch.manual_seed(number)
        config = BertConfig(
            vocab_size=200, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=13,
            max_position_embeddings=40,
        )  # fmt: skip
        name, tokenizer = f"sentence_{number}", word_pieces()
        model = write_model(out, name, random_weights(BertModel(config)), tokenizer, torch.float32, sharded=False)
        directory = out / name
        places = {kind: "sentence_transformers.models" for kind in ("Transformer", "Pooling", "Dense", "Normalize")}
        if not is_old:
            places = {kind: f"sentence_transformers.base.modules.{kind.lower()}" for kind in places}
            places["Pooling"] = "sentence_transformers.sentence_transformer.modules.pooling"
        modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
        used = [each for each in names if each in poolings] if is_old else poolings
        keys = {each: f"pooling_mode_{each if each in ('mean_sqrt_len_tokens', 'lasttoken') else each + '_token' + ('' if each == 'cls' else 's')}" for each in names}  # fmt: skip
        files = {"1_Pooling/config.json": {"include_prompt": include_prompt} | (
            {"word_embedding_dimension": 12, **{keys[each]: each in poolings for each in names}} if is_old
            else {"embedding_dimension": 12, "pooling_mode": poolings if len(poolings) > 1 else poolings[0]}
        )}  # fmt: skip
        maps = {}  # two of them, as in EmbeddingGemma, and then in both forms of files
        widths = [12 * len(poolings), 7, 5] if activation == "GELU" else [12 * len(poolings), 7]
        for n_in, n_out in itertools.pairwise(widths) if activation else ():
            folder = f"{len(modules)}_Dense"
            modules.append((folder, "Dense"))
            maps[folder] = {"linear.weight": torch.randn(n_out, n_in) / 5}
            if n_out == 7:
                maps[folder]["linear.bias"] = torch.randn(7) / 5
            files[f"{folder}/config.json"] = {
                "in_features": n_in, "out_features": n_out, "bias": n_out == 7,
                "activation_function": f"torch.nn.modules.activation.{activation}" if activation != "Identity"
                else "torch.nn.modules.linear.Identity",
            }  # fmt: skip
        if is_unit:
            modules.append((f"{len(modules)}_Normalize", "Normalize"))
        files["modules.json"] = [
            {"idx": i, "name": str(i), "path": path, "type": f"{places[kind]}.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ]  # fmt: skip
        files["sentence_bert_config.json"] = {"max_seq_length": 32, "do_lower_case": False}
        files["config_sentence_transformers.json"] = {
            "__version__": {"sentence_transformers": "3.0.0"}, "similarity_fn_name": "cosine",
            "prompts": {"query": prompt, "other": "x"}, "default_prompt_name": "query" if prompt else None,
        }  # fmt: skip
        for path, _ in modules:
            (directory / path).mkdir(exist_ok=True)
        for path, content in files.items():
            (directory / path).write_text(json.dumps(content))
        for folder, weights in maps.items():
            if folder == "2_Dense":
                save_file(weights, directory / folder / "model.safetensors", {"format": "pt"})
            else:
                torch.save(weights, directory / folder / "pytorch_model.bin")
        begin = 0 if include_prompt or not prompt else len(tokenizer(prompt).input_ids) - 1
        vectors = []
        for text in SENTENCES:
            with torch.no_grad():
                hidden = model(torch.tensor([tokenizer(prompt + text).input_ids])).last_hidden_state[0]
            vectors.append(torch.cat([pooled(hidden, each, begin) for each in used]))
        vectors = torch.stack(vectors)
        for weights in maps.values():
            bias = weights.get("linear.bias")
            vectors = dense(vectors, weights["linear.weight"], bias, getattr(torch.nn, activation)())
        if is_unit:
            vectors = torch.nn.functional.normalize(vectors)
        save_file({"vectors": contiguous(vectors)}, out / f"{name}.safetensors")


def roberta(out):
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaForSequenceClassification

    for seed, model_class in enumerate((RobertaForMaskedLM, RobertaForSequenceClassification)):
        config = RobertaConfig(
            **encoder_shape(random.Random(f"roberta {seed}")) | {"hidden_act": "gelu"}, vocab_size=300,
            max_position_embeddings=20 + 7 * seed, type_vocab_size=1, **LABELS,
        )  # fmt: skip
        encoded(out, f"roberta_{seed}", model_class, config, roberta_tokenizer(), seed)


def further_decoders(out):
    """Those of interop_decoders.py."""

    def write(name, config, seed, **options):
        causal(out, name, config, tokenizer=llama_tokenizer(), seed=seed, gradients=True, **options)

    for case in interop_decoders.CASES:
        case(write)


def decoder_classifiers(out):
    """They read the last token that is no padding."""
    from transformers import (
        GPT2Config, GPT2ForSequenceClassification, LlamaConfig, LlamaForSequenceClassification, MistralConfig,
        MistralForSequenceClassification, Qwen2Config, Qwen2ForSequenceClassification, Qwen3Config,
        Qwen3ForSequenceClassification,
    )  # fmt: skip

    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, **LABELS}
    names = ["llama", "mistral", "qwen2", "qwen3", "gpt2"]
    cases = [
        (LlamaForSequenceClassification, LlamaConfig), (MistralForSequenceClassification, MistralConfig),
        (Qwen2ForSequenceClassification, Qwen2Config), (Qwen3ForSequenceClassification, Qwen3Config),
    ]  # fmt: skip
    models = [
        (model_class, config_class(**shape(random.Random(f"classifier {i}")) | {"vocab_size": 290}, **special))
        for i, (model_class, config_class) in enumerate(cases)
    ]
    models.append((
        GPT2ForSequenceClassification,
        GPT2Config(vocab_size=290, n_embd=12, n_head=3, n_layer=2, n_positions=64, **special),
    ))  # fmt: skip
    for seed, (name, (model_class, config)) in enumerate(zip(names, models)):
        tokenizer = llama_tokenizer()
        if name == "gpt2":
            tokenizer = fast(byte_level_bpe(290, ["<s>", "</s>", "<end>"]), bos_token="<s>", eos_token="</s>")
        torch.manual_seed(seed)
        model = random_weights(model_class._from_config(config, attn_implementation="eager"))
        dtype = [torch.float32, torch.bfloat16, torch.float16][seed % 3]
        model = write_model(out, f"{name}_texts_0", model, tokenizer, dtype, sharded=seed % 2 == 1)
        mask = visible(LENGTHS, T)
        ids = torch.randint(3, 290, (B, T)) * mask + 2 * (1 - mask)
        with torch.no_grad():
            result = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
        tensors = {
            "ids": ids, "lengths": LENGTHS, "hidden": result.hidden_states[-1], "logits": result.logits,
            "maps": torch.stack(result.attentions), "positions": torch.arange(B) * T + LENGTHS - 1,
            **probabilities(model, tokenizer),
        }  # fmt: skip
        save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}_texts_0.safetensors")


def big_bird(out):
    from transformers import (
        BigBirdConfig, BigBirdForMaskedLM, BigBirdForSequenceClassification, BigBirdForTokenClassification,
        BigBirdModel,
    )  # fmt: skip

    classes = (BigBirdForMaskedLM, BigBirdForSequenceClassification, BigBirdModel, BigBirdForTokenClassification)
    for seed, model_class in enumerate(classes):
        # transformers reads texts as short as these without gaps in both cases.
        config = BigBirdConfig(
            **encoder_shape(random.Random(f"big bird {seed}")), vocab_size=200, max_position_embeddings=16 + 8 * seed,
            attention_type=["original_full", "block_sparse"][seed % 2], block_size=4, num_random_blocks=1 + seed,
            use_bias=seed != 0, rescale_embeddings=seed == 0, sep_token_id=3, pad_token_id=0, **LABELS,
        )  # fmt: skip
        encoded(out, f"big_bird_{seed}", model_class, config, word_pieces(), seed)
        if seed == 0:  # as transformers writes it by itself
            shutil.copytree(out / "big_bird_0", out / "big_bird_stored_0")
            shutil.copy(out / "big_bird_0.safetensors", out / "big_bird_stored_0.safetensors")
            path = out / "big_bird_stored_0" / "model.safetensors"
            n = config.hidden_size
            pooler = {"bert.pooler.weight": torch.randn(n, n), "bert.pooler.bias": torch.randn(n)}
            save_file(load_file(path) | pooler, path, {"format": "pt"})


def distilbert(out):
    from transformers import (
        DistilBertConfig, DistilBertForMaskedLM, DistilBertForSequenceClassification, DistilBertModel,
    )  # fmt: skip

    for seed, model_class in enumerate((DistilBertForMaskedLM, DistilBertForSequenceClassification, DistilBertModel)):
        sizes = encoder_shape(random.Random(f"distilbert {seed}"))
        config = DistilBertConfig(
            vocab_size=200, dim=sizes["hidden_size"], n_heads=sizes["num_attention_heads"],
            hidden_dim=sizes["intermediate_size"], n_layers=sizes["num_hidden_layers"], max_position_embeddings=16,
            **LABELS,
        )  # fmt: skip
        encoded(out, f"distilbert_{seed}", model_class, config, word_pieces(), seed)


def token_classifiers(out):
    """One class for each token; `O` first, as annotators write them."""
    from transformers import BertConfig, BertForTokenClassification, DistilBertConfig, DistilBertForTokenClassification
    from transformers import RobertaConfig, RobertaForTokenClassification

    names = ["O", "B-PER", "I-PER", "B-LOC"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    for seed in range(2):
        sizes = encoder_shape(random.Random(f"token classifiers {seed}"))
        config = BertConfig(**sizes, vocab_size=200, max_position_embeddings=16 + 7 * seed, **labels)
        encoded(out, f"bert_tokens_{seed}", BertForTokenClassification, config, word_pieces(), seed)
    config = RobertaConfig(**sizes, vocab_size=300, max_position_embeddings=20, type_vocab_size=1, **labels)
    encoded(out, "roberta_tokens_0", RobertaForTokenClassification, config, roberta_tokenizer(), 0)
    config = DistilBertConfig(
        vocab_size=200, dim=sizes["hidden_size"], n_heads=sizes["num_attention_heads"],
        hidden_dim=sizes["intermediate_size"], n_layers=2, max_position_embeddings=16, **labels,
    )  # fmt: skip
    encoded(out, "distilbert_tokens_0", DistilBertForTokenClassification, config, word_pieces(), 1)


# The vocabulary of ESM-2.
RESIDUES = "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>".split()
PROTEIN = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ"


def esm(out):
    """Proteins; a token that is masked, and contacts of residues."""
    from transformers import EsmConfig, EsmForMaskedLM, EsmForSequenceClassification, EsmForTokenClassification, EsmModel
    from transformers import EsmTokenizer

    (out / "esm_vocabulary.txt").write_text("\n".join(RESIDUES))
    tokenizer = EsmTokenizer(out / "esm_vocabulary.txt")
    mask = RESIDUES.index("<mask>")
    classes = (EsmForMaskedLM, EsmForTokenClassification, EsmForSequenceClassification, EsmForMaskedLM, EsmModel)
    for seed, model_class in enumerate(classes):
        draw = random.Random(f"esm {seed}")
        absolute = seed == 3  # as in ESM-1b
        heads = draw.choice([2, 3, 5])
        config = EsmConfig(
            vocab_size=len(RESIDUES), mask_token_id=mask, pad_token_id=1, hidden_size=heads * draw.choice([4, 6]),
            num_hidden_layers=draw.choice([2, 3]), num_attention_heads=heads, intermediate_size=draw.choice([13, 37]),
            max_position_embeddings=64, position_embedding_type="absolute" if absolute else "rotary",
            emb_layer_norm_before=absolute, token_dropout=seed != 1, layer_norm_eps=1e-5, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, **LABELS,
        )  # fmt: skip
        torch.manual_seed(seed)
        model = random_weights(model_class._from_config(config, attn_implementation="eager"))
        dtype = [torch.float32, torch.bfloat16, torch.float16][seed % 3]
        name = f"esm_{seed}"
        model = write_model(out, name, model, tokenizer, dtype, sharded=seed % 2 == 1)
        for module in model.modules():  # rounded with the weights, unlike those of published files
            if hasattr(module, "inv_freq"):
                module.inv_freq = 1 / 10000 ** (torch.arange(len(module.inv_freq)) / len(module.inv_freq))
        seen = visible(LENGTHS, T)
        # transformers 4.57 does not tell the embeddings what is padding, unlike earlier versions and the authors' program.
        embeddings = getattr(model, "esm", model).embeddings
        embed = embeddings.forward
        ids = torch.randint(4, mask, (B, T)) * seen + 1 - seen
        ids[0, 3] = ids[0, 8] = ids[1, 2] = mask
        labels = torch.where(ids == mask, torch.randint(4, mask, (B, T)), -100)
        protein = tokenizer(PROTEIN, return_tensors="pt")
        with torch.no_grad():
            embeddings.forward = functools.partial(embed, attention_mask=seen)
            result = model(input_ids=ids, attention_mask=seen, output_hidden_states=True, output_attentions=True)
            loss = model(input_ids=ids, attention_mask=seen, labels=labels).loss if "MaskedLM" in str(model_class) else None
            embeddings.forward = embed
            contacts = (model if hasattr(model, "predict_contacts") else model.esm).predict_contacts(
                protein["input_ids"], protein["attention_mask"]
            )
            tensors = {
                "ids": ids, "lengths": LENGTHS, "hidden": result.hidden_states[-1],
                "maps": torch.stack(result.attentions), "protein": protein["input_ids"], "contacts": contacts[0],
            }  # fmt: skip
            if "logits" in result:
                tensors["logits"] = result.logits
            if loss is not None:
                tensors |= {"labels": labels, "loss": loss}
        save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}.safetensors")


def longformer(out):
    from transformers import (
        LongformerConfig, LongformerForMaskedLM, LongformerForSequenceClassification, LongformerForTokenClassification,
    )  # fmt: skip

    def first_is_global(ids):
        return {"global_attention_mask": (torch.arange(ids.shape[1]).expand(ids.shape) == 0).long()}

    sizes = encoder_shape(random.Random("longformer")) | {"num_hidden_layers": 2, "hidden_act": "gelu"}
    config = LongformerConfig(
        **sizes, vocab_size=300, max_position_embeddings=26, type_vocab_size=1, attention_window=[4, 6],
        pad_token_id=1,
    )  # fmt: skip
    encoded(out, "longformer_0", LongformerForMaskedLM, config, roberta_tokenizer(), 0, call=first_is_global)
    classes = (LongformerForSequenceClassification, LongformerForTokenClassification)
    for seed, model_class in enumerate(classes, start=1):
        config = LongformerConfig(
            **sizes, vocab_size=300, max_position_embeddings=26, type_vocab_size=1, attention_window=4, pad_token_id=1,
            **LABELS,
        )  # fmt: skip
        encoded(out, f"longformer_{seed}", model_class, config, roberta_tokenizer(), seed, call=first_is_global)


def t5_tokenizer():
    tokenizer = byte_level_bpe(290, ["<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return fast(tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def sequence_to_sequence(out, name, model_class, config, tokenizer, seed, *, before=(), after=(), bias=0.3, own_output=False, prepare=None, **generation):
    """`before` and `after`: the ids that the tokenizer puts around a text, as the zoo does by itself. `bias`: deviation of
    the biases of the output. `own_output`: its matrix is not that of the embeddings, whatever config.json says.
    `prepare`: what is done to the model after its weights are drawn. `generation`: values of generation_config.json."""
    torch.manual_seed(seed)
    model = random_weights(model_class._from_config(config, attn_implementation="eager"))
    if prepare:
        prepare(model)
    model.generation_config.update(**generation)
    if own_output or not getattr(config, "scale_decoder_outputs", True):
        # T5 1.1, which has two matrices; config.json of transformers 5 says all the same that they are one.
        model.lm_head.weight = torch.nn.Parameter(0.2 * torch.randn(model.lm_head.weight.shape))
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(0, bias)
        if model.generation_config.bad_words_ids:  # a token that is likely, but may not be written
            model.final_logits_bias[0, model.generation_config.bad_words_ids[0][0]] = 9.0
    dtype = [torch.float32, torch.bfloat16, torch.float16][seed % 3]
    model = write_model(out, name, model, tokenizer, dtype, sharded=seed % 2 == 1)
    n_tokens = len(tokenizer) - 1  # the last token may be the padding, which transformers would hide
    ids, target = torch.randint(5, n_tokens, (B, T)), torch.randint(5, n_tokens, (B, 7))
    target[:, 0] = config.decoder_start_token_id
    mask = visible(LENGTHS, T)
    with torch.no_grad():
        result = model(
            input_ids=ids, attention_mask=mask, decoder_input_ids=target, output_hidden_states=True,
            output_attentions=True, use_cache=False,
        )  # fmt: skip
        common = {"max_new_tokens": 9, "do_sample": False}
        prompt = ids[:1]
        framed = torch.cat([torch.tensor([list(before)], dtype=torch.int64), prompt, torch.tensor([list(after)])], 1)
        greedy = model.generate(framed, **common)
        beams = model.generate(framed, num_beams=3, num_return_sequences=1, early_stopping=True, **common)
    tensors = {
        "ids": ids, "lengths": LENGTHS, "target": target, "logits": result.logits,
        "hidden": result.encoder_last_hidden_state, "maps": torch.stack(result.encoder_attentions),
        "decoder_maps": torch.stack(result.decoder_attentions), "cross_maps": torch.stack(result.cross_attentions),
        "prompt": prompt, "greedy": greedy[:, 1:], "beams": beams[:, 1:],
    }  # fmt: skip
    save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}.safetensors")


def t5(out):
    from transformers import T5Config, T5ForConditionalGeneration

    for seed in range(3):
        draw = random.Random(f"t5 {seed}")
        config = T5Config(
            vocab_size=300, d_model=draw.choice([12, 18]), d_kv=draw.choice([4, 6]), num_heads=draw.choice([2, 3]),
            d_ff=draw.choice([13, 22]), num_layers=draw.choice([1, 2]), num_decoder_layers=draw.choice([1, 2, 3]),
            relative_attention_num_buckets=8, relative_attention_max_distance=6, decoder_start_token_id=0,
            feed_forward_proj=["relu", "gated-gelu", "relu"][seed], tie_word_embeddings=seed != 1,
        )  # fmt: skip
        tokenizer = t5_tokenizer()
        config.vocab_size = len(tokenizer)
        sequence_to_sequence(out, f"t5_{seed}", T5ForConditionalGeneration, config, tokenizer, seed, after=[1])


def bart(out):
    from transformers import BartConfig, BartForConditionalGeneration

    for seed in range(3):  # the last one has no biases of the output: see as_published()
        draw = random.Random(f"bart {seed}")
        heads = draw.choice([2, 3])
        ff = draw.choice([13, 22])
        config = BartConfig(
            vocab_size=300, d_model=heads * draw.choice([4, 6]), encoder_layers=draw.choice([1, 2]),
            decoder_layers=draw.choice([1, 3]), encoder_attention_heads=heads, decoder_attention_heads=heads,
            encoder_ffn_dim=ff, decoder_ffn_dim=ff, max_position_embeddings=32, scale_embedding=bool(seed),
        )  # fmt: skip
        tokenizer = roberta_tokenizer()
        config.vocab_size = len(tokenizer)
        sequence_to_sequence(
            out, f"bart_{seed}", BartForConditionalGeneration, config, tokenizer, seed, before=[0], after=[2],
            bias=0.0 if seed == 2 else 0.3, forced_bos_token_id=0 if seed else None, forced_eos_token_id=2,
        )  # fmt: skip


def bart_classifier(out):
    """It reads the last end token behind the decoder, which reads the same text."""
    from transformers import BartConfig, BartForSequenceClassification

    config = BartConfig(
        vocab_size=300, d_model=12, encoder_layers=2, decoder_layers=1, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=13, decoder_ffn_dim=13, max_position_embeddings=32, **LABELS,
    )  # fmt: skip
    tokenizer = roberta_tokenizer()
    config.vocab_size = len(tokenizer)
    torch.manual_seed(0)
    model = random_weights(BartForSequenceClassification._from_config(config, attn_implementation="eager"))
    model = write_model(out, "bart_texts_0", model, tokenizer, torch.bfloat16, sharded=True)
    mask = visible(LENGTHS, T)
    ids = torch.randint(5, config.vocab_size, (B, T)) * mask + 1 - mask
    ids[torch.arange(B), LENGTHS - 1] = 2
    with torch.no_grad():
        result = model(input_ids=ids, attention_mask=mask, output_attentions=True, use_cache=False)
    tensors = {
        "ids": ids, "lengths": LENGTHS, "hidden": result.encoder_last_hidden_state, "logits": result.logits,
        "maps": torch.stack(result.encoder_attentions), **probabilities(model, tokenizer),
    }  # fmt: skip
    save_file({key: contiguous(value) for key, value in tensors.items()}, out / "bart_texts_0.safetensors")


def marian_tokenizer(directory):
    from transformers import MarianTokenizer

    directory.mkdir()
    pieces = {}
    for name, size in [("source", 90), ("target", 80)]:
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXT.split("\n") * 3), model_writer=written, minloglevel=3, num_threads=1,
            vocab_size=size, hard_vocab_limit=False,
        )  # fmt: skip
        (directory / f"{name}.spm").write_bytes(written.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
        pieces |= {processor.IdToPiece(i): None for i in range(3, len(processor))}
    tokens = ["</s>", "<unk>", *sorted(pieces), "<pad>"]
    (directory / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    return MarianTokenizer.from_pretrained(directory, source_lang="en", target_lang="de")


def marian(out):
    from transformers import MarianConfig, MarianMTModel

    for seed in range(3):
        draw = random.Random(f"marian {seed}")
        heads = draw.choice([1, 3])
        ff = draw.choice([13, 22])
        tokenizer = marian_tokenizer(out / f"marian_files_{seed}")
        pad = tokenizer.pad_token_id
        config = MarianConfig(
            vocab_size=len(tokenizer), d_model=heads * draw.choice([5, 7]), encoder_layers=draw.choice([1, 2]),
            decoder_layers=draw.choice([1, 3]), encoder_attention_heads=heads, decoder_attention_heads=heads,
            encoder_ffn_dim=ff, decoder_ffn_dim=ff, max_position_embeddings=32, scale_embedding=bool(seed),
            activation_function=["swish", "gelu", "relu"][seed], decoder_start_token_id=pad, pad_token_id=pad,
            eos_token_id=0, static_position_embeddings=True,
        )  # fmt: skip
        name = f"marian_{seed}"
        sequence_to_sequence(
            out, name, MarianMTModel, config, tokenizer, seed, after=[0], forced_eos_token_id=0, bad_words_ids=[[pad]]
        )  # fmt: skip
        if seed == 2:
            with_stored_positions(out, name, config)


def with_stored_positions(out, name, config):
    """The same model as other versions wrote it: with its sinusoids, which it does not need."""
    shutil.copytree(out / name, out / "marian_stored_0")
    shutil.copy(out / f"{name}.safetensors", out / "marian_stored_0.safetensors")
    width = config.d_model
    angles = torch.arange(config.max_position_embeddings)[:, None] / 10000 ** (2 * (torch.arange(width) // 2) / width)
    table = torch.cat([angles[:, 0::2].sin(), angles[:, 1::2].cos()], 1)
    path = out / "marian_stored_0" / "model.safetensors"
    tensors = load_file(path)
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_positions.weight"] = table.half().clone()
    save_file(tensors, path, {"format": "pt"})


def picture_classifiers(out, name, config_class, model_classes, body, shape=encoder_shape, processor="ViTImageProcessor", **options):
    """`shape`: keys of config.json, of which `qkv_bias` may be one. `options`: of the processor."""
    import transformers

    for seed, model_class in enumerate(model_classes):
        draw = random.Random(f"{name} {seed}")
        config = config_class(
            **{"qkv_bias": seed % 2 == 0, **shape(draw)}, image_size=[12, 15, 9][seed], patch_size=[4, 3, 3][seed],
            num_channels=3, **LABELS,
        )  # fmt: skip
        torch.manual_seed(seed)
        model = random_weights(model_class._from_config(config, attn_implementation="eager"))
        directory = out / f"{name}_{seed}"
        model.to([torch.float32, torch.bfloat16, torch.float16][seed]).save_pretrained(directory)
        size = {"height": config.image_size, "width": config.image_size}
        getattr(transformers, processor)(size=size, **options).save_pretrained(directory)
        model = model_class.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
        images = torch.randn(B, 3, config.image_size, config.image_size)
        with torch.no_grad():
            result = model(images, output_hidden_states=True, output_attentions=True)
            hidden = getattr(model, body).layernorm(result.hidden_states[-1])
        tensors = {
            "images": images, "logits": result.logits, "hidden": hidden, "maps": torch.stack(result.attentions)
        }  # fmt: skip
        save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}_{seed}.safetensors")


def vit(out):
    from transformers import ViTConfig, ViTForImageClassification

    picture_classifiers(out, "vit", ViTConfig, [ViTForImageClassification] * 2, "vit")


def ijepa(out):
    from transformers import IJepaConfig, IJepaForImageClassification

    picture_classifiers(out, "ijepa", IJepaConfig, [IJepaForImageClassification] * 2, "ijepa")


def deit(out):
    from transformers import DeiTConfig, DeiTForImageClassification, DeiTForImageClassificationWithTeacher

    classes = [DeiTForImageClassification, DeiTForImageClassificationWithTeacher]
    picture_classifiers(out, "deit", DeiTConfig, classes, "deit")


def dinov2(out):
    from transformers import Dinov2Config, Dinov2ForImageClassification

    gated = iter([False, True])

    def shape(draw):
        known = encoder_shape(draw)
        del known["intermediate_size"]
        is_gated = next(gated)
        if is_gated:
            known["hidden_act"] = "gelu"  # its gate has another activation, so that this one says nothing
        return known | {
            "mlp_ratio": draw.choice([2, 3, 5]), "layerscale_value": draw.choice([0.1, 0.7]), "use_swiglu_ffn": is_gated,
            "use_mask_token": False,
        }  # fmt: skip

    picture_classifiers(out, "dinov2", Dinov2Config, [Dinov2ForImageClassification] * 2, "dinov2", shape)
    # The bodies of DINOv2 have a vector for hidden patches, too. Their vector of a picture is the class token's.
    table = torch.empty(1, json.loads((out / "dinov2_1" / "config.json").read_text())["hidden_size"]).normal_()
    stored_as(out, "dinov2_published_0", "dinov2_1", rename=lambda name: name.removeprefix("dinov2."),
              without=["classifier"], more={"embeddings.mask_token": table},
              config={"architectures": ["Dinov2Model"], "use_mask_token": True},
              outputs=lambda known: {"logits": known["hidden"][:, 0].contiguous()})  # fmt: skip


def random_norms(model):
    """The fixed numbers of a frozen backbone, and weights that keep the size of its features."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
    for name, buffer in model.named_buffers():
        if name.endswith(("running_var", "normalization.weight")):
            buffer.uniform_(0.5, 1.5)
        elif name.endswith(("running_mean", "normalization.bias")):
            buffer.normal_(0, 0.2)


def scale_projection(model, images):
    """Divides the projection of the backbone's features so that its outputs have a standard deviation of 1.

    Without this, the features of a deep random backbone are in the thousands. The softmax of the encoder's attention then
    multiplies the rounding of float32, and two correct programs differ in the fourth digit."""
    projected = []
    hook = model.model.input_projection.register_forward_hook(lambda module, args, output: projected.append(output))
    with torch.no_grad():
        model(images)
        model.model.input_projection.weight /= projected[0].std()
    hook.remove()


def expect_little_rounding(model, images, result):
    """Raises an error if float32 changes what `model` computes by more than a tenth of what the test allows."""
    most = 1e-5
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(images.double(), output_attentions=True)
    for name in ("logits", "pred_boxes", "encoder_last_hidden_state", "encoder_attentions", "cross_attentions"):
        ours, expected = (torch.stack(list(outputs[name])) for outputs in (result, exact))
        error = (ours - expected).abs().max() / max(1, expected.abs().max())
        if not error <= most:
            raise ValueError(f"rounding changes {name} of a DETR by {error:.1e}: give it smaller weights")


def timm_name(name):
    """The name in timm's networks of a tensor of transformers' ResNet."""
    before = "model.backbone.conv_encoder.model."
    if not name.startswith(before):
        return name
    parts = name[len(before) :].split(".")
    kind, last = parts[-2] == "convolution", parts[-1]
    if parts[0] == "embedder":
        return f"{before}{'conv1' if kind else 'bn1'}.{last}"
    stage, block = int(parts[2]) + 1, parts[4]
    if parts[5] == "shortcut":
        return f"{before}layer{stage}.{block}.downsample.{0 if kind else 1}.{last}"
    return f"{before}layer{stage}.{block}.{'conv' if kind else 'bn'}{int(parts[6]) + 1}.{last}"


def detr(out):
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessor, ResNetConfig

    names = ["N/A", "cat", "dog", "N/A", "tree"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {"N/A": 0, "cat": 1, "dog": 2, "tree": 4}}
    basic, bottleneck = ("basic", [2, 2, 2, 2]), ("bottleneck", [3, 4, 6, 3])
    for seed, (depth, depths) in enumerate([basic, bottleneck, basic]):
        is_timm = seed == 2  # its networks have no other width
        channels = 64 if is_timm else 4
        expansion = 4 if depth == "bottleneck" else 1
        backbone = ResNetConfig(
            embedding_size=channels, hidden_sizes=[channels * expansion * 2**i for i in range(4)], depths=depths,
            layer_type=depth, out_features=["stage4"],
        )  # fmt: skip
        config = DetrConfig(
            use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone,
            num_queries=5, d_model=24, encoder_layers=2, decoder_layers=1 + seed, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=22, decoder_ffn_dim=22,
            position_embedding_type=["sine", "learned", "sine"][seed], **labels,
        )  # fmt: skip
        torch.manual_seed(seed)
        model = random_weights(DetrForObjectDetection._from_config(config, attn_implementation="eager"))
        random_norms(model)
        images = torch.randn(B, 3, 70, 101)
        scale_projection(model, images)
        model.model.query_position_embeddings.weight.data *= 20  # queries that find objects of their own
        directory = out / f"detr_{seed}"
        model.to([torch.float32, torch.bfloat16, torch.float32][seed]).save_pretrained(directory)
        DetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 100}).save_pretrained(directory)
        model = DetrForObjectDetection.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
        model.eval()
        if is_timm:
            path = directory / "model.safetensors"
            tensors = {timm_name(name): tensor for name, tensor in load_file(path).items()}
            save_file(tensors, path, {"format": "pt"})
            path = directory / "config.json"
            written = json.loads(path.read_text()) | {
                "use_timm_backbone": True, "backbone": "resnet18", "backbone_config": None, "dilation": False
            }  # fmt: skip
            path.write_text(json.dumps(written))
        with torch.no_grad():
            result = model(images, output_attentions=True)
        expect_little_rounding(model, images, result)
        # A picture as a file. The processor resizes it, unless the network would enlarge the rounding of its pixels.
        height, width = (64, 85) if depth == "bottleneck" else (75, 100)
        picture = torch.nn.functional.interpolate(torch.rand(1, 3, 5, 7), (height, width), mode="bicubic")
        picture = picture.clamp(0, 1)[0]
        picture = Image.fromarray((picture * 255).byte().permute(1, 2, 0).numpy())
        picture.save(out / f"detr_{seed}.png")
        processor = DetrImageProcessor.from_pretrained(directory)
        with torch.no_grad():
            found = model(**processor(picture, return_tensors="pt"))
        found = processor.post_process_object_detection(found, threshold=0, target_sizes=[(height, width)])[0]
        order = found["scores"].argsort(descending=True)
        corners = found["boxes"][order].clamp(min=0).minimum(torch.tensor([width, height] * 2))
        tensors = {
            "images": images, "logits": result.logits.flatten(0, 1), "boxes": result.pred_boxes,
            "found_scores": found["scores"][order], "found_labels": found["labels"][order], "found_corners": corners,
            "hidden": result.encoder_last_hidden_state, "maps": torch.stack(result.encoder_attentions),
            "decoder_maps": torch.stack(result.decoder_attentions), "cross_maps": torch.stack(result.cross_attentions),
        }  # fmt: skip
        save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"detr_{seed}.safetensors")


def whisper_tokenizer():
    specials = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|transcribe|>", "<|notimestamps|>"]
    tokenizer = byte_level_bpe(290, specials)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|startoftranscript|> <|notimestamps|> $A <|endoftext|>",
        special_tokens=[(name, specials.index(name)) for name in (specials[1], specials[5], specials[0])],
    )
    end = "<|endoftext|>"
    return fast(tokenizer, bos_token=end, eos_token=end, unk_token=end, pad_token=end, additional_special_tokens=specials)


def whisper(out):
    """The second one says itself in which language it writes, and that it writes no times."""
    from transformers import GenerationMixin, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    for seed in range(2):
        draw = random.Random(f"whisper {seed}")
        heads, bands, seconds = draw.choice([2, 3]), draw.choice([5, 8]), 1
        ff, tokenizer = draw.choice([13, 22]), whisper_tokenizer()
        config = WhisperConfig(
            vocab_size=len(tokenizer), num_mel_bins=bands, d_model=heads * draw.choice([4, 6]),
            encoder_layers=draw.choice([1, 2]), decoder_layers=draw.choice([1, 3]), encoder_attention_heads=heads,
            decoder_attention_heads=heads, encoder_ffn_dim=ff, decoder_ffn_dim=ff, max_source_positions=50 * seconds,
            max_target_positions=24, decoder_start_token_id=1, bos_token_id=0, eos_token_id=0, pad_token_id=0,
            suppress_tokens=None, begin_suppress_tokens=None,
        )  # fmt: skip
        torch.manual_seed(seed)
        model = random_weights(WhisperForConditionalGeneration._from_config(config, attn_implementation="eager"))
        with torch.no_grad():  # so that outputs depend on the recording, and do not repeat one token
            for parameter in model.model.decoder.parameters():
                parameter *= 2.5 if parameter.dim() > 1 else 1
        generation = model.generation_config
        generation.suppress_tokens, generation.begin_suppress_tokens = [2, 3, 4, 5, 77], [0, 30, 31]
        start = [1]
        if seed == 1:
            generation.is_multilingual, generation.language, generation.task = True, "de", "transcribe"
            generation.lang_to_id, generation.task_to_id = {"<|en|>": 2, "<|de|>": 3}, {"transcribe": 4}
            generation.no_timestamps_token_id = 5
            start = [1, 3, 4, 5]
        name, directory = f"whisper_{seed}", out / f"whisper_{seed}"
        model = write_model(out, name, model, tokenizer, [torch.float32, torch.float16][seed], sharded=seed == 1)
        WhisperFeatureExtractor(feature_size=bands, chunk_length=seconds).save_pretrained(directory)
        spectrograms = torch.randn(B, bands, 100 * seconds)
        target = torch.randint(6, config.vocab_size, (B, 7))
        target[:, 0] = 1
        with torch.no_grad():
            result = model(
                input_features=spectrograms, decoder_input_ids=target, output_attentions=True, use_cache=False
            )
            # Each recording by itself, behind the same tokens.
            def written(**options):
                rows = [
                    GenerationMixin.generate(
                        model, input_features=row[None], decoder_input_ids=torch.tensor([start]), max_new_tokens=9,
                        do_sample=False, **options,
                    )[0, len(start) :] for row in spectrograms
                ]  # fmt: skip
                return torch.stack([torch.nn.functional.pad(row, (0, 9 - len(row)), value=-1) for row in rows])

            greedy, beams = written(), written(num_beams=3, early_stopping=True)
        tensors = {
            "spectrograms": spectrograms, "target": target, "logits": result.logits.flatten(0, 1),
            "hidden": result.encoder_last_hidden_state, "maps": torch.stack(result.encoder_attentions),
            "decoder_maps": torch.stack(result.decoder_attentions), "cross_maps": torch.stack(result.cross_attentions),
            "greedy": greedy, "beams": beams,
        }  # fmt: skip
        save_file({key: contiguous(value) for key, value in tensors.items()}, out / f"{name}.safetensors")


def stored_as(out, name, original, *, rename=lambda name: name, without=(), more=None, config=None, outputs=lambda known: {}):
    """Writes the directory `original` in another form of its files. `outputs` changes the expected outputs."""
    directory = out / name
    shutil.copytree(out / original, directory)
    known = load_file(out / f"{original}.safetensors")
    save_file(known | outputs(known), out / f"{name}.safetensors")
    tensors = {}
    for path in list(directory.glob("*.safetensors*")):
        if path.suffix == ".safetensors":
            tensors |= load_file(path)
        path.unlink()
    tensors = {rename(key): value for key, value in tensors.items() if not key.startswith(tuple(without))}
    save_file(tensors | (more or {}), directory / "model.safetensors", {"format": "pt"})
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (config or {})))


def as_published(out):
    """What published files have and a random model that is saved today does not show."""

    def first_names(name):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    # The first files of BERT, with the head for pairs of sentences.
    sentences = {"cls.seq_relationship.weight": torch.zeros(2, 4), "cls.seq_relationship.bias": torch.zeros(2)}
    positions = {"bert.embeddings.position_ids": torch.arange(16)[None]}
    stored_as(out, "bert_published_0", "bert_0", rename=first_names, more=sentences | positions,
              config={"architectures": ["BertForPreTraining"]})  # fmt: skip
    # A body without a pooler, as sentence-transformers has.
    stored_as(out, "bert_published_1", "bert_3", without=["pooler."])
    # A table of positions that is not used, and a number that fairseq saved.
    table = {"esm.embeddings.position_embeddings.weight": torch.randn(1026, 3)}
    stored_as(out, "esm_published_0", "esm_0", more=table)
    version = {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}
    stored_as(out, "bart_published_0", "bart_2", rename=lambda name: name.removeprefix("model."),
              without=["final_logits_bias", "lm_head"], more=version, config={"architectures": ["BartModel"]})  # fmt: skip
    stored_as(out, "t5_published_0", "t5_0", config={"architectures": ["T5WithLMHeadModel"]})
    # Only the body of I-JEPA is published. Others learn its classifier.
    stored_as(out, "ijepa_published_0", "ijepa_0", rename=lambda name: name.removeprefix("ijepa."),
              without=["classifier"], config={"architectures": ["IJepaModel"]},
              outputs=lambda known: {"logits": known["hidden"].mean(1)})  # fmt: skip
    stored_as(out, "qwen2_published_0", "qwen2_0", config={"use_mrope": False})


import interop_encoders  # noqa: E402  (they use the functions above)
import interop_packed  # noqa: E402
import interop_pairs  # noqa: E402
import interop_speech  # noqa: E402

CASES = [
    gpt2, llama, mistral, qwen, olmo, mixtures, gemma, further_decoders, decoder_classifiers, bert, roberta, big_bird, distilbert, token_classifiers,
    sentence_vectors, longformer, esm, t5, bart, bart_classifier, marian, vit, ijepa, detr, whisper, as_published,
    *interop_encoders.CASES, *interop_packed.CASES, deit, dinov2, *interop_pairs.CASES, *interop_speech.CASES,
    interop_encoders.beit, interop_encoders.pegasus,
]  # fmt: skip

# What the table of docs/hub.md says of a family beside what is compared; made by scripts/make_hub_table.py.
REMARKS = {
    "llama": "rotary scaling linear, llama3, yarn, dynamic, longrope (texts of up to `original_max_position_embeddings`)",
    "mistral": "with the sliding window",
    "qwen2": "also windows by layer",
    "qwen3": "also windows by layer",
    "qwen2_moe": "without windows",
    "olmoe": "without `clip_qkv`",
    "gpt_oss": "weights in MXFP4 are read as the bf16 that they stand for",
    "deepseek_v2": "without `norm_topk_prob`; YaRN's factor on scores as in transformers 5, which version 4 leaves out",
    "deepseek_v3": "weights in FP8 with factors of blocks are read as bf16; without the layer that guesses further tokens",
    "gpt_neox": "parallel and one after the other",
    "opt": "norms before or behind the sub-layers, a table of tokens that is narrower than the layers (OPT-350m)",
    "falcon": "one head or groups of heads for keys and values, one norm or two; without ALiBi",
    "phi3": "with the sliding window; longrope for texts of up to `original_max_position_embeddings`",
    "smollm3": "layers without positions, also with windows",
    "cohere": "also with norms of queries and keys",
    "gemma2": "with soft caps",
    "gemma3_text": "with two rotary bases",
    "longformer": "the first token is global",
    "esm": "rotary and learned positions; contacts as `predict_contacts`; of ESMFold also structures and gradients",
    "big_bird": "`block_sparse`: texts of up to (5 + 2 `num_random_blocks`) `block_size` tokens, which see everything; in "
    "longer ones transformers takes the first block for each random one. The pooler that its classes do not use is not "
    "written",
    "marian": "one vocabulary for both languages (`vocab.json`, `source.spm`, `target.spm`)",
    "deit": "also `DeiTForImageClassificationWithTeacher`: the mean of the scores of both classifiers",
    "dinov2": "both feed-forward networks; pictures of any size; without `drop_path_rate`; the vector for hidden patches is "
    "not written",
    "clip": "both encoders, with all gradients of the loss; a text ends at its token, or in the first files at the highest id",
    "siglip": "both encoders, with all gradients of the loss; texts are padded to `max_position_embeddings`, as in its training",
    "beit": "scores by the distance of patches, of each layer or of all; the mean of the patches or the class token; pictures of "
    "the size of `config.json`",
    "detr": "names of timm and of transformers",
    "whisper": "without a language in `generation_config.json`, outputs begin as English ones: `--language` names another",
    "wav2vec2": "each recording as alone, also those whose norm reads the padding of a batch in transformers; with the masks of "
    "training; without adapters (MMS)",
    "hubert": "the same",
    "xlm-roberta": "also the encoders of BGE-M3 and multilingual E5",
    "m2m_100": "languages: `generation.source_language`, `target_language`",
    "pegasus": "its table of sinusoids is part of its weights, as transformers stores and trains it",
    "electra": "a discriminator opens without its head for replaced tokens",
    "deberta-v2": "both heads for masked tokens; without the convolution of the two largest models of version 2",
    "nomic_bert": "only transformers 5 has this family",
    "modernbert": "classifiers by the first token or by the mean; without a head for labels of tokens",
}
