"""Cases of reference_interop.py: encoders over the samples of recordings, which are trained with CTC."""

import json
import random
import shutil
import wave

import reference_interop as shared
import torch
from reference import contiguous
from safetensors.torch import load_file, save_file

RATE = 16000
COUNTS = [423, 260, 77]  # samples of each recording; the last one is nearly as short as the convolutions allow
LETTERS = "| E T A O N I ' Ö".split()


def tokenizer_in(directory, seed):
    """One vocabulary begins with the special tokens, as published ones do; in the other they are where Hugging Face's
    course on fine-tuning puts them. The padding is the blank."""
    from transformers import Wav2Vec2CTCTokenizer

    directory.mkdir()
    if seed % 2 == 0:
        tokens, names = ["<pad>", "<s>", "</s>", "<unk>", *LETTERS], {}
    else:
        tokens, names = [*LETTERS, "[UNK]", "[PAD]"], {"unk_token": "[UNK]", "pad_token": "[PAD]"}
    path = directory / "vocab.json"
    path.write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    return Wav2Vec2CTCTokenizer(path, **names)


def write_recording(path, numbers):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(numbers.to(torch.int16).numpy().tobytes())


def padded(rows, n):
    """Rows of (T, …) as one tensor, with zeros behind them."""
    return torch.stack([torch.nn.functional.pad(row, (0, 0) * (row.dim() - 1) + (0, n - len(row))) for row in rows])


def by_rows(model, inputs, takes_mask):
    """What the model says of each recording. Models whose norm is over the moments of a recording are trained without a mask,
    and read the padding of a batch: each recording goes through them alone. The others get the batch and its mask."""
    options = {"output_attentions": True}
    body = model.base_model
    if takes_mask:
        longest = max(len(row) for row in inputs)
        mask = (torch.arange(longest)[None] < torch.tensor([len(row) for row in inputs])[:, None]).long()
        result = model(padded(inputs, longest), attention_mask=mask, **options)
        hidden = body(padded(inputs, longest), attention_mask=mask).last_hidden_state
        moments = model._get_feat_extract_output_lengths(mask.sum(1)).tolist()
        rows = [
            (result.logits[b, :n], hidden[b, :n], [maps[b, :, :n, :n] for maps in result.attentions])
            for b, n in enumerate(moments)
        ]
    else:
        rows = []
        for row in inputs:
            result, hidden = model(row[None], **options), body(row[None]).last_hidden_state
            rows.append((result.logits[0], hidden[0], [maps[0] for maps in result.attentions]))
    return rows


def aligned(out, name, model_class, config, seed):
    from transformers import Wav2Vec2FeatureExtractor

    directory = out / name
    tokenizer = tokenizer_in(out / f"{name}_files", seed)
    config.vocab_size, config.pad_token_id = len(tokenizer) + seed % 2, tokenizer.pad_token_id
    takes_mask = config.feat_extract_norm == "layer"
    torch.manual_seed(seed)
    model = shared.random_weights(model_class._from_config(config, attn_implementation="eager"))
    with torch.no_grad():
        model.lm_head.weight *= 8  # so that the outputs are not all blanks
    model = shared.write_model(
        out, name, model, tokenizer, [torch.float32, torch.bfloat16, torch.float16][seed % 3], sharded=seed % 2 == 1
    )
    extractor = Wav2Vec2FeatureExtractor(do_normalize=seed != 2, return_attention_mask=takes_mask)
    extractor.save_pretrained(directory)
    recordings = [(torch.randn(n) * 3000 + 500).round().clamp(-32768, 32767) for n in COUNTS]
    for b, recording in enumerate(recordings):
        write_recording(out / f"{name}_{b}.wav", recording)
    inputs = [
        torch.tensor(extractor((row / 32768).numpy(), sampling_rate=RATE).input_values[0]) for row in recordings
    ]
    model.zero_grad()
    rows = by_rows(model, inputs, takes_mask)
    longest = max(len(logits) for logits, _, _ in rows)
    moments = torch.tensor([len(logits) for logits, _, _ in rows])
    letters = [i for i in range(len(tokenizer)) if i not in tokenizer.all_special_ids or i == tokenizer.convert_tokens_to_ids("|")]
    draw = random.Random(seed)
    transcripts = [[draw.choice(letters) for _ in range(n)] for n in (9, 4, 1)]
    # The loss of Wav2Vec2ForCTC with ctc_loss_reduction = "sum".
    loss = sum(
        torch.nn.functional.ctc_loss(
            logits.float().log_softmax(-1)[:, None], torch.tensor([text]), torch.tensor([len(logits)]),
            torch.tensor([len(text)]), blank=config.pad_token_id, reduction="sum", zero_infinity=True,
        ) for (logits, _, _), text in zip(rows, transcripts)
    )  # fmt: skip
    if not takes_mask:  # and by itself
        model.config.ctc_loss_reduction, model.config.ctc_zero_infinity = "sum", True
        own = sum(model(row[None], labels=torch.tensor([text])).loss for row, text in zip(inputs, transcripts))
        assert torch.allclose(own, loss, rtol=1e-5), (own, loss)
    loss.backward()
    gradients = {
        key: torch.zeros_like(value) if value.grad is None else value.grad for key, value in model.named_parameters()
    }
    save_file({key: contiguous(value) for key, value in gradients.items()}, out / f"{name}.gradients.safetensors")
    maps = [padded([torch.nn.functional.pad(r[2][layer], (0, longest - len(r[0]))).transpose(0, 1) for r in rows], longest)
            for layer in range(config.num_hidden_layers)]  # fmt: skip
    texts = [tokenizer.decode(logits.argmax(-1)) for logits, _, _ in rows]
    for token in tokenizer.all_special_tokens:  # transformers shows them
        texts = [text.replace(token, "") if token != "|" else text for text in texts]
    (out / f"{name}.txt").write_text("".join(f"{text.strip()}\n" for text in texts))
    tensors = {
        "samples": padded(inputs, max(COUNTS)), "sample_counts": torch.tensor(COUNTS), "moments": moments,
        "logits": padded([r[0] for r in rows], longest), "hidden": padded([r[1] for r in rows], longest),
        "maps": torch.stack([each.transpose(1, 2) for each in maps]), "ctc_loss": loss,
        "transcripts": torch.nn.utils.rnn.pad_sequence([torch.tensor(t) for t in transcripts], True, -1),
    }  # fmt: skip
    save_file({key: contiguous(value.detach()) for key, value in tensors.items()}, out / f"{name}.safetensors")


def sizes(seed, name):
    """Odd shapes; kernels of positions that read an even and an odd number of places."""
    draw = random.Random(f"{name} {seed}")
    heads, groups = draw.choice([2, 3]), draw.choice([2, 3])
    is_stable = seed in (1, 2)
    return {
        "hidden_size": heads * groups * draw.choice([2, 3]), "num_attention_heads": heads, "num_hidden_layers": 1 + seed % 3,
        "intermediate_size": draw.choice([13, 22]), "conv_dim": [5, 7, 6], "conv_kernel": [7, 3, 2], "conv_stride": [5, 2, 1],
        "conv_bias": seed != 0, "num_conv_pos_embeddings": [6, 5, 8, 7][seed], "num_conv_pos_embedding_groups": groups,
        "feat_extract_norm": "layer" if is_stable else "group", "do_stable_layer_norm": is_stable,
        "mask_time_prob": [0.05, 0.0, 0.0, 0.3][seed], "mask_feature_prob": [0.0, 0.0, 0.2, 0.1][seed],
        "hidden_act": ["gelu", "relu", "gelu", "gelu_new"][seed], "layer_norm_eps": [1e-5, 1e-5, 1e-3, 1e-5][seed],
        "apply_spec_augment": seed != 3,
    }  # fmt: skip


def wav2vec2(out):
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    for seed in range(3):
        aligned(out, f"wav2vec2_{seed}", Wav2Vec2ForCTC, Wav2Vec2Config(**sizes(seed, "wav2vec2")), seed)
    older(out, "wav2vec2")


def hubert(out):
    from transformers import HubertConfig, HubertForCTC

    for seed in range(4):
        config = HubertConfig(**sizes(seed, "hubert"), feat_proj_layer_norm=seed != 2)
        aligned(out, f"hubert_{seed}", HubertForCTC, config, seed)


def older(out, name):
    """The same model as published files have it: other names of weight norm, no vector for hidden moments, and a file of the
    tokenizer without the keys that newer versions write."""
    shared.stored_as(
        out, f"{name}_published_0", f"{name}_0", without=[f"{name}.masked_spec_embed"],
        rename=lambda key: key.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        ),
        config={"gradient_checkpointing": False, "hidden_dropout_prob": 0.1, "feat_extract_dropout": 0.0},
    )  # fmt: skip
    gradients = load_file(out / f"{name}_0.gradients.safetensors")
    save_file(gradients, out / f"{name}_published_0.gradients.safetensors")
    for path in out.glob(f"{name}_0*.wav"):
        shutil.copy(path, out / path.name.replace(f"{name}_0", f"{name}_published_0"))
    shutil.copy(out / f"{name}_0.txt", out / f"{name}_published_0.txt")
    directory = out / f"{name}_published_0"
    (directory / "tokenizer_config.json").write_text(json.dumps({
        "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "do_lower_case": False,
        "return_attention_mask": False, "do_normalize": True,
    }))  # fmt: skip
    for added in ("special_tokens_map.json", "added_tokens.json"):
        (directory / added).unlink(missing_ok=True)


CASES = [wav2vec2, hubert]
