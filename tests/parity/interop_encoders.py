"""Cases of reference_interop.py: encoders and encoder-decoders made from BERT, BART and T5."""

import io
import random
import shutil

import reference_interop as shared
import sentencepiece
import torch
from reference import contiguous
from safetensors.torch import load_file, save_file


def by_stored_names(model, gradients, folder):
    """The same gradients under the names that transformers 5 gives them in a file."""
    with torch.no_grad():
        for key, value in model.named_parameters():
            value.copy_(gradients[key])
    model.save_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    shutil.rmtree(folder)
    return stored


def with_gradients(out, name, model_class, *, is_renamed=False):
    """Adds `upstream`, random factors on the outputs, and NAME.gradients.safetensors: the gradients of the mean of their
    products by the names of the directory's tensors, NaN where transformers has none."""
    path = out / f"{name}.safetensors"
    tensors = load_file(path)
    model = model_class.from_pretrained(out / name, dtype=torch.float32, attn_implementation="eager").eval()
    ids, lengths = tensors["ids"], tensors["lengths"]
    mask = shared.visible(lengths, ids.shape[1])
    inputs = {"input_ids": ids, "attention_mask": mask}
    if "segments" in tensors:
        inputs["token_type_ids"] = tensors["segments"]
    if "target" in tensors:
        inputs |= {"decoder_input_ids": tensors["target"], "use_cache": False}
    result = model(**inputs)
    outputs = result.logits if "logits" in result else result.last_hidden_state
    upstream = torch.randn_like(outputs)
    if outputs.dim() == 3 and "target" not in tensors:
        upstream *= mask[..., None]
    (outputs * upstream).mean().backward()
    gradients = {
        key: torch.zeros_like(value) if value.grad is None else value.grad
        for key, value in model.named_parameters() if value.requires_grad
    }  # fmt: skip
    if is_renamed:
        gradients = by_stored_names(model, gradients, out / f"{name}.gradients")
    padding = getattr(getattr(getattr(model, "model", None), "shared", None), "padding_idx", None)
    if padding is not None and padding in tensors.get("target", ()):
        # Outputs begin with the padding (Pegasus), whose vector transformers leaves as it is in inputs.
        gradients["model.shared.weight"][padding] = torch.nan
    if hasattr(model, "final_logits_bias"):
        gradients["final_logits_bias"] = torch.full_like(model.final_logits_bias, torch.nan)
    save_file({key: contiguous(value) for key, value in gradients.items()}, out / f"{name}.gradients.safetensors")
    save_file({key: contiguous(value) for key, value in (tensors | {"upstream": upstream.detach()}).items()}, path)


def encoded(out, name, model_class, *arguments, is_renamed=False):
    shared.encoded(out, name, model_class, *arguments)
    with_gradients(out, name, model_class, is_renamed=is_renamed)


def xlm_roberta(out):
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaForSequenceClassification
    from transformers import XLMRobertaForTokenClassification, XLMRobertaModel

    classes = (
        XLMRobertaForMaskedLM, XLMRobertaForSequenceClassification, XLMRobertaForTokenClassification, XLMRobertaModel
    )  # fmt: skip
    for seed, model_class in enumerate(classes):
        config = XLMRobertaConfig(
            **shared.encoder_shape(random.Random(f"xlm-roberta {seed}")) | {"hidden_act": "gelu"}, vocab_size=300,
            max_position_embeddings=20 + 7 * seed, type_vocab_size=1, **shared.LABELS,
        )  # fmt: skip
        encoded(out, f"xlm_roberta_{seed}", model_class, config, shared.roberta_tokenizer(), seed)


def mt5(out):
    """The output has a matrix of its own, whatever config.json of transformers 5 says."""
    from transformers import MT5Config, MT5ForConditionalGeneration

    for seed in range(2):
        draw = random.Random(f"mt5 {seed}")
        tokenizer = shared.t5_tokenizer()
        config = MT5Config(
            vocab_size=len(tokenizer), d_model=draw.choice([12, 18]), d_kv=draw.choice([4, 6]),
            num_heads=draw.choice([2, 3]), d_ff=draw.choice([13, 22]), num_layers=2,
            num_decoder_layers=1 + seed, relative_attention_num_buckets=8,
            relative_attention_max_distance=6, decoder_start_token_id=0, tie_word_embeddings=False,
            feed_forward_proj=["gated-gelu", "relu"][seed],
        )  # fmt: skip
        shared.sequence_to_sequence(
            out, f"mt5_{seed}", MT5ForConditionalGeneration, config, tokenizer, seed, after=[1], own_output=True
        )  # fmt: skip
        with_gradients(out, f"mt5_{seed}", MT5ForConditionalGeneration)


def bart_shape(draw, widths=(4, 6)):
    heads, ff = draw.choice([2, 3]), draw.choice([13, 22])
    return {
        "d_model": heads * draw.choice(widths), "encoder_layers": draw.choice([1, 2]),
        "decoder_layers": draw.choice([1, 3]), "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "encoder_ffn_dim": ff, "decoder_ffn_dim": ff, "max_position_embeddings": 32,
    }  # fmt: skip


def of_roberta_tokens(out, name, config_class, model_class, seed, *, draw, widths=(4, 6), language=None, **keys):
    """A model with the tokens of RoBERTa. `language`: the token that outputs begin with."""
    tokenizer = shared.roberta_tokenizer()
    config = config_class(
        **bart_shape(draw, widths), vocab_size=len(tokenizer), pad_token_id=1, eos_token_id=2, decoder_start_token_id=2,
        **keys,
    )  # fmt: skip
    shared.sequence_to_sequence(
        out, f"{name}_{seed}", model_class, config, tokenizer, seed, before=[0], after=[2], forced_bos_token_id=language,
        forced_eos_token_id=2,
    )  # fmt: skip
    with_gradients(out, f"{name}_{seed}", model_class)


def mbart(out):
    from transformers import MBartConfig, MBartForConditionalGeneration

    for seed in range(2):
        of_roberta_tokens(
            out, "mbart", MBartConfig, MBartForConditionalGeneration, seed, draw=random.Random(f"mbart {seed}"),
            language=9 if seed else None, scale_embedding=bool(seed), activation_function=["gelu", "relu"][seed],
        )  # fmt: skip


def m2m_100(out):
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    for seed in range(2):
        of_roberta_tokens(
            out, "m2m_100", M2M100Config, M2M100ForConditionalGeneration, seed, draw=random.Random(f"m2m {seed}"),
            language=11 if seed else None, scale_embedding=not seed,
        )  # fmt: skip


def albert(out):
    from transformers import AlbertConfig, AlbertForMaskedLM, AlbertForSequenceClassification
    from transformers import AlbertForTokenClassification, AlbertModel

    classes = (AlbertForMaskedLM, AlbertForSequenceClassification, AlbertForTokenClassification, AlbertModel)
    for seed, model_class in enumerate(classes):
        draw = random.Random(f"albert {seed}")
        config = AlbertConfig(
            **shared.encoder_shape(draw) | {"num_hidden_layers": 4}, embedding_size=draw.choice([5, 9]),
            num_hidden_groups=[1, 2, 4, 1][seed], vocab_size=200, max_position_embeddings=16 + 8 * seed,
            pad_token_id=0, bos_token_id=2, eos_token_id=3, **shared.LABELS,
        )  # fmt: skip
        encoded(out, f"albert_{seed}", model_class, config, shared.word_pieces(), seed)


def electra(out):
    """The second one has tables as wide as its layers, and so no map."""
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForSequenceClassification
    from transformers import ElectraForTokenClassification, ElectraModel

    classes = (ElectraForMaskedLM, ElectraForSequenceClassification, ElectraForTokenClassification, ElectraModel)
    for seed, model_class in enumerate(classes):
        draw = random.Random(f"electra {seed}")
        sizes = shared.encoder_shape(draw) | ({"hidden_act": "gelu"} if seed == 0 else {})
        width = sizes["hidden_size"] if seed == 1 else sizes["hidden_size"] // 2 + 1
        config = ElectraConfig(
            **sizes, embedding_size=width, vocab_size=200, max_position_embeddings=16 + 8 * seed, **shared.LABELS
        )  # fmt: skip
        encoded(out, f"electra_{seed}", model_class, config, shared.word_pieces(), seed)
    # A discriminator, whose first head is left out.
    n = config.hidden_size
    head = {
        "dense.weight": torch.randn(n, n), "dense.bias": torch.randn(n), "dense_prediction.weight": torch.randn(1, n),
        "dense_prediction.bias": torch.randn(1),
    }  # fmt: skip
    shared.stored_as(
        out, "electra_published_0", "electra_3", rename=lambda name: "electra." + name.removeprefix("electra."),
        more={f"discriminator_predictions.{name}": tensor for name, tensor in head.items()},
        config={"architectures": ["ElectraForPreTraining"]},
    )  # fmt: skip
    shutil.copy(out / "electra_3.gradients.safetensors", out / "electra_published_0.gradients.safetensors")


def mpnet(out):
    from transformers import MPNetConfig, MPNetForMaskedLM, MPNetForSequenceClassification, MPNetForTokenClassification
    from transformers import MPNetModel

    classes = (MPNetForMaskedLM, MPNetForSequenceClassification, MPNetForTokenClassification, MPNetModel)
    for seed, model_class in enumerate(classes):
        config = MPNetConfig(
            **shared.encoder_shape(random.Random(f"mpnet {seed}")) | ({"hidden_act": "gelu"} if seed == 0 else {}),
            vocab_size=300, max_position_embeddings=20 + 7 * seed, **shared.LABELS,
        )  # fmt: skip
        encoded(out, f"mpnet_{seed}", model_class, config, shared.roberta_tokenizer(), seed)


def with_last_states(out, name):
    """Puts the states behind the last norm in the place of those before it, which transformers 4 gives."""
    from transformers import AutoModel

    path = out / f"{name}.safetensors"
    tensors = load_file(path)
    model = AutoModel.from_pretrained(out / name, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        mask = shared.visible(tensors["lengths"], tensors["ids"].shape[1])
        tensors["hidden"] = model(input_ids=tensors["ids"], attention_mask=mask).last_hidden_state
    save_file({key: contiguous(value) for key, value in tensors.items()}, path)


def modernbert(out):
    from transformers import ModernBertConfig, ModernBertForMaskedLM, ModernBertForSequenceClassification
    from transformers import ModernBertModel

    classes = (
        ModernBertForMaskedLM, ModernBertForSequenceClassification, ModernBertForSequenceClassification, ModernBertModel
    )  # fmt: skip
    for seed, model_class in enumerate(classes):
        sizes = shared.encoder_shape(random.Random(f"modernbert {seed}"))
        del sizes["hidden_act"]
        config = ModernBertConfig(
            **sizes | {"num_hidden_layers": 4}, vocab_size=200, max_position_embeddings=32, pad_token_id=0,
            bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3, local_attention=[4, 6, 4, 8][seed],
            global_attn_every_n_layers=[3, 2, 1, 3][seed], global_rope_theta=5e3, local_rope_theta=1e2,
            norm_bias=seed == 1, attention_bias=seed == 1, mlp_bias=seed == 1, classifier_bias=seed == 1,
            decoder_bias=True, classifier_pooling=["cls", "cls", "mean", "cls"][seed], reference_compile=False,
            **shared.LABELS,
        )  # fmt: skip
        name = f"modernbert_{seed}"
        encoded(out, name, model_class, config, shared.word_pieces(), seed)
        with_last_states(out, name)


def deberta(out):
    """Texts are longer than some of the distances that have vectors of their own. Version 4 cannot read its own files of
    the newer head."""
    from transformers import __version__ as version
    from transformers import DebertaV2Config, DebertaV2ForMaskedLM, DebertaV2ForSequenceClassification
    from transformers import DebertaV2ForTokenClassification, DebertaV2Model

    classes = (
        DebertaV2ForMaskedLM, DebertaV2ForSequenceClassification, DebertaV2ForMaskedLM, DebertaV2Model,
        DebertaV2ForTokenClassification,
    )  # fmt: skip
    for seed, model_class in enumerate(classes):
        is_relative = seed != 4
        config = DebertaV2Config(
            **shared.encoder_shape(random.Random(f"deberta {seed}")), vocab_size=200, max_position_embeddings=16 + 8 * seed,
            relative_attention=is_relative, position_buckets=[6, -1, 8, 4, -1][seed],
            max_relative_positions=[9, 5, -1, 7, -1][seed], share_att_key=seed in (0, 3),
            pos_att_type=[["p2c", "c2p"], ["c2p", "p2c"], ["c2p"], ["p2c"], []][seed],
            norm_rel_ebd=["layer_norm", "none", "layer_norm", "none", "none"][seed], position_biased_input=seed in (1, 4),
            type_vocab_size=2 if seed == 1 else 0, legacy=seed != 2 or version < "5", **shared.LABELS,
        )  # fmt: skip
        encoded(out, f"deberta_{seed}", model_class, config, shared.word_pieces(), seed)


def nomic_bert(out):
    """Only transformers 5 has it."""
    try:
        from transformers import NomicBertConfig, NomicBertForMaskedLM, NomicBertForSequenceClassification
        from transformers import NomicBertForTokenClassification, NomicBertModel
    except ImportError:
        return
    classes = (
        NomicBertForMaskedLM, NomicBertForSequenceClassification, NomicBertForTokenClassification, NomicBertModel
    )  # fmt: skip
    for seed, model_class in enumerate(classes):
        sizes = shared.encoder_shape(random.Random(f"nomic {seed}")) | {"hidden_act": "gelu" if seed == 3 else "silu"}
        config = NomicBertConfig(**sizes, vocab_size=200, max_position_embeddings=16 + 8 * seed, **shared.LABELS)
        encoded(out, f"nomic_bert_{seed}", model_class, config, shared.word_pieces(), seed, is_renamed=True)


def beit(out):
    """Scores by the distance of patches of each layer, of all layers, and none. The last one has the means of its patches
    without scales."""
    from transformers import BeitConfig, BeitForImageClassification

    parts = iter([
        {"use_relative_position_bias": True, "layer_scale_init_value": 0.1, "use_mean_pooling": True, "drop_path_rate": 0.1},
        {"use_shared_relative_position_bias": True, "layer_scale_init_value": 0.7, "use_mean_pooling": False,
         "use_absolute_position_embeddings": True},
        {"layer_scale_init_value": 0.0, "use_absolute_position_embeddings": True, "drop_path_rate": 0.0},
    ])  # fmt: skip
    shared.picture_classifiers(
        out, "beit", BeitConfig, [BeitForImageClassification] * 3, "beit",
        lambda draw: shared.encoder_shape(draw) | {"qkv_bias": True} | next(parts), "BeitImageProcessor", do_center_crop=False,
    )  # fmt: skip
    for seed in (2, 1, 0):
        path = out / f"beit_{seed}.safetensors"
        tensors = load_file(path)
        model = BeitForImageClassification.from_pretrained(out / f"beit_{seed}", dtype=torch.float32).eval()
        logits = model(tensors["images"]).logits
        upstream = torch.randn_like(logits)
        (logits * upstream).mean().backward()
        gradients = {
            key: torch.zeros_like(value) if value.grad is None else value.grad
            for key, value in model.named_parameters()
        }  # fmt: skip
        gradients = by_stored_names(model, gradients, out / f"beit_{seed}.gradients")
        save_file(gradients, out / f"beit_{seed}.gradients.safetensors")
        save_file(tensors | {"upstream": upstream}, path)
    # Published files have a vector for hidden patches and what follows from the size of the picture.
    places = {
        f"beit.encoder.layer.{i}.attention.attention.relative_position_bias.relative_position_index": torch.zeros(10, 10, dtype=torch.int64)
        for i in range(model.config.num_hidden_layers)
    }  # fmt: skip
    hidden = {"beit.embeddings.mask_token": torch.zeros(1, 1, model.config.hidden_size)}
    shared.stored_as(out, "beit_published_0", "beit_0", more=places | hidden, config={"use_mask_token": True})
    save_file(load_file(out / "beit_0.gradients.safetensors"), out / "beit_published_0.gradients.safetensors")


def pegasus_tokenizer(directory):
    from transformers import PegasusTokenizer

    directory.mkdir()
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(shared.TEXT.split("\n") * 3), model_writer=written, minloglevel=3, num_threads=1,
        vocab_size=90, hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )  # fmt: skip
    (directory / "spiece.model").write_bytes(written.getvalue())
    return PegasusTokenizer.from_pretrained(directory)


def with_sinusoids(model):
    """Puts into the tables of positions what they are before training: sines, then cosines."""
    for side in (model.model.encoder, model.model.decoder):
        n, width = side.embed_positions.weight.shape
        angles = torch.arange(n)[:, None] / 10000 ** (2 * (torch.arange(width) // 2) / width)
        with torch.no_grad():
            side.embed_positions.weight.copy_(torch.cat([angles[:, 0::2].sin(), angles[:, 1::2].cos()], 1))


def pegasus(out):
    """Files have the table of sinusoids, which transformers goes on training: the last two have a random one. The first one
    is also written without it."""
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    for seed in range(3):
        tokenizer = pegasus_tokenizer(out / f"pegasus_files_{seed}")
        config = PegasusConfig(
            **bart_shape(random.Random(f"pegasus {seed}"), (5, 7)), vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=1,
            decoder_start_token_id=0, forced_eos_token_id=1, scale_embedding=seed != 1,
            activation_function=["relu", "gelu", "relu"][seed], static_position_embeddings=True,
        )  # fmt: skip
        name = f"pegasus_{seed}"
        shared.sequence_to_sequence(
            out, name, PegasusForConditionalGeneration, config, tokenizer, seed, after=[1], forced_eos_token_id=1,
            prepare=with_sinusoids if seed == 0 else None,
        )  # fmt: skip
        with_gradients(out, name, PegasusForConditionalGeneration)
    tables = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    shared.stored_as(out, "pegasus_published_0", "pegasus_0", without=tables)
    gradients = load_file(out / "pegasus_0.gradients.safetensors")
    save_file(gradients, out / "pegasus_published_0.gradients.safetensors")


CASES = [xlm_roberta, mt5, mbart, m2m_100, albert, electra, mpnet, modernbert, deberta, nomic_bert]
