"""CTC of PyTorch, and Whisper of transformers: logits, loss and gradients, greedy and beam output of whole small models."""

import torch
import torch.nn.functional as F
from reference import contiguous, linear, normal_, plain, write_case
from safetensors.torch import load_file, save_file
from transformers import GenerationMixin, WhisperConfig, WhisperForConditionalGeneration

# Those of speech_parity_test.cpp.
V, START = 31, 1
LAYERS, DECODER_LAYERS, D, HEADS, WIDTH, POSITIONS = 2, 3, 24, 4, 40, 32
MELS, FRAMES = 6, 26
B, T = 3, 7
END, FORCED, SUPPRESSED, SUPPRESSED_FIRST = 2, [5, 9], [3, 11], [2, 7]


def ctc(out):
    n, classes = 14, 6
    transcripts = torch.tensor([[0, 1, 1, 4], [3, 3, 3, -1], [2, -1, -1, -1], [-1, -1, -1, -1], [1, 2, 1, 2]])
    lengths = torch.tensor([14, 5, 9, 4, 3])  # the last one is too short for its transcript
    logits = (torch.randn(5, n, classes) * 2).requires_grad_()
    losses = F.ctc_loss(
        logits.log_softmax(-1).transpose(0, 1), transcripts.clamp(min=0), lengths, (transcripts >= 0).sum(1),
        blank=classes - 1, reduction="none", zero_infinity=True,
    )  # fmt: skip
    inputs = {"logits": logits, "lengths": lengths, "transcripts": transcripts}
    write_case(out, "ctc", inputs=inputs, outputs={"loss": losses.sum()})


def ctc_at_length(out):
    """As long as a recording of 30 seconds."""
    n, classes, n_tokens = 1500, 40, 120
    transcripts = torch.randint(0, classes - 1, (2, n_tokens))
    logits = torch.randn(2, n, classes, requires_grad=True)
    lengths = torch.tensor([n, n - 301])
    loss = F.ctc_loss(
        logits.double().log_softmax(-1).transpose(0, 1), transcripts, lengths, torch.tensor([n_tokens] * 2),
        blank=classes - 1, reduction="sum",
    )  # fmt: skip
    inputs = {"logits": logits, "lengths": lengths, "transcripts": transcripts}
    write_case(out, "ctc_at_length", inputs=inputs, outputs={"loss": loss})


def layer(ours, theirs, *, reads_memory):
    table = {}
    attentions = {"self_attention": "self_attn"} | ({"cross_attention": "encoder_attn"} if reads_memory else {})
    for name, their_name in attentions.items():
        attention = getattr(theirs, their_name)
        for part in ("q", "k", "v", "out"):
            table |= linear(f"{ours}.{name}.{part}", getattr(attention, f"{part}_proj"))
        table |= linear(f"{ours}.residual.{name}_norm", getattr(theirs, f"{their_name}_layer_norm"))
    table |= linear(f"{ours}.feed_forward.up", theirs.fc1) | linear(f"{ours}.feed_forward.down", theirs.fc2)
    return table | linear(f"{ours}.residual.feed_forward_norm", theirs.final_layer_norm)


def parameters_of(model):
    encoder, decoder = model.model.encoder, model.model.decoder
    table = {
        "token_embedding.weight": plain(decoder.embed_tokens.weight),
        "decoder_embedder.position_embedding.weight": plain(decoder.embed_positions.weight),
    }
    table |= linear("encoder_embedder.first", encoder.conv1) | linear("encoder_embedder.second", encoder.conv2)
    for side, stack in (("encoder", encoder), ("decoder", decoder)):
        for i, theirs in enumerate(stack.layers):
            table |= layer(f"{side}.layers.{i}", theirs, reads_memory=side == "decoder")
        table |= linear(f"{side}.final_norm", stack.layer_norm)
    return table


def whisper(out):
    torch.manual_seed(3)  # searches find different texts, and some of them end
    config = WhisperConfig(
        vocab_size=V, num_mel_bins=MELS, d_model=D, encoder_layers=LAYERS, decoder_layers=DECODER_LAYERS,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=WIDTH, decoder_ffn_dim=WIDTH,
        max_source_positions=FRAMES // 2, max_target_positions=POSITIONS, decoder_start_token_id=START,
        bos_token_id=END, eos_token_id=END, pad_token_id=END, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    model = WhisperForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
    table = model.model.encoder.embed_positions.weight
    sinusoids = contiguous(table)
    normal_(model)
    with torch.no_grad():
        table.copy_(sinusoids)
    spectrograms = torch.randn(B, MELS, FRAMES)
    decoder_ids, targets = torch.randint(0, V, (B, T)), torch.randint(0, V, (B, T))
    result = model(input_features=spectrograms, decoder_input_ids=decoder_ids, labels=targets, use_cache=False)
    inputs = {"spectrograms": spectrograms, "decoder_ids": decoder_ids, "targets": targets, "positions": sinusoids}
    outputs = {"logits": result.logits, "loss": result.loss}
    write_case(out, "whisper", inputs=inputs, outputs=outputs, parameters=parameters_of(model), loss=result.loss)
    search(model, spectrograms, out / "whisper.safetensors")


def search(model, spectrograms, path):
    """Adds greedy and beam output to the file: what follows the start token and the forced tokens, padded with -1."""
    generation = model.generation_config
    generation.suppress_tokens, generation.begin_suppress_tokens = SUPPRESSED, SUPPRESSED_FIRST
    start = torch.tensor([[START, *FORCED]] * B)
    tensors = load_file(path)
    for name, beams in (("greedy", 1), ("beams", 4)):
        rows = []
        for row in range(B):  # one at a time: no padding
            ids = GenerationMixin.generate(
                model, 
                input_features=spectrograms[row : row + 1], decoder_input_ids=start[:1], max_new_tokens=9,
                num_beams=beams, do_sample=False, early_stopping=beams > 1,
            )[0, start.shape[1] :]  # fmt: skip
            rows.append(F.pad(ids, (0, 9 - len(ids)), value=-1))
        tensors[f"output/{name}"] = torch.stack(rows)
    save_file(tensors, path)


CASES = [ctc, ctc_at_length, whisper]
