"""The peers' models in plain PyTorch. Each is called with a batch and returns its mean loss."""

import importlib.util
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F


class GptBlock(nn.Module):
    """A pre-norm decoder layer with one matrix for query, key and value."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.merge = nn.Linear(width, width, bias=False)
        self.feed_forward = nn.Sequential(nn.LayerNorm(width, bias=False), nn.Linear(width, 4 * width, bias=False),
                                          nn.GELU(), nn.Linear(4 * width, width, bias=False))

    def forward(self, x):  # (B, T, D)
        split = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))  # (B, T, 3, H, Dh)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.merge(heads.transpose(1, 2).flatten(-2))
        return x + self.feed_forward(x)


class Gpt(nn.Module):
    """GPT-2's architecture without biases and dropout: learned positions, tied embeddings, GPT-2's initial weights."""

    def __init__(self, vocab_size, layers, heads, width, context):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            closes_branch = name.endswith(("merge.weight", "feed_forward.3.weight"))
            nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if closes_branch else 0.02)

    def forward(self, ids, targets):  # (B, T) both
        x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class NanoGpt(nn.Module):
    """nanoGPT's own model, from its model.py."""

    def __init__(self, model_file, vocab_size, layers, heads, width, context):
        super().__init__()
        spec = importlib.util.spec_from_file_location("nanogpt_model", model_file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # torch.compile looks for the module there
        spec.loader.exec_module(module)
        self.model = module.GPT(module.GPTConfig(
            block_size=context, vocab_size=vocab_size, n_layer=layers, n_head=heads, n_embd=width, dropout=0.0,
            bias=False))

    def forward(self, ids, targets):
        return self.model(ids, targets)[1]


class Mixture(nn.Module):
    """Mixtral of transformers, with tied embeddings and without its loss of balance."""

    def __init__(self, vocab_size, layers, heads, width, context, inner_width, experts, active):
        super().__init__()
        try:
            import transformers
        except ModuleNotFoundError:
            sys.exit(77)
        self.model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
            vocab_size=vocab_size, hidden_size=width, intermediate_size=inner_width, num_hidden_layers=layers,
            num_attention_heads=heads, num_key_value_heads=heads, num_local_experts=experts, num_experts_per_tok=active,
            max_position_embeddings=context, tie_word_embeddings=True, sliding_window=None, use_cache=False,
            rope_theta=10000.0, rms_norm_eps=1e-5))

    def forward(self, ids, targets):  # (B, T) both
        return F.cross_entropy(self.model(input_ids=ids).logits.flatten(0, 1), targets.flatten())


class Translator(nn.Module):
    """nn.Transformer, pre-norm, with embeddings: sinusoidal positions, one table for source, target and output. Dropout
    also acts on the attention weights and in the feed-forward."""

    def __init__(self, vocab_size, layers, heads, width, inner_width, length, dropout, label_smoothing, pad):
        super().__init__()
        self.pad, self.label_smoothing = pad, label_smoothing
        self.tokens = nn.Embedding(vocab_size, width)
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(width, heads, layers, layers, inner_width, dropout, batch_first=True,
                                          norm_first=True)
        angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def embed(self, ids):
        return self.dropout(self.tokens(ids) * math.sqrt(self.tokens.embedding_dim) + self.positions[:ids.shape[1]])

    def forward(self, source, decoder, targets):  # (B, S), (B, T), (B, T)
        causal = nn.Transformer.generate_square_subsequent_mask(decoder.shape[1], dtype=torch.bool)
        source_padding = source == self.pad
        features = self.transformer(
            self.embed(source), self.embed(decoder), tgt_mask=causal, tgt_is_causal=True,
            src_key_padding_mask=source_padding, memory_key_padding_mask=source_padding,
            tgt_key_padding_mask=targets == self.pad)
        logits = F.linear(features, self.tokens.weight)
        smoothing = self.label_smoothing if self.training else 0.0  # the validation loss has none, to be comparable
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=self.pad,
                               label_smoothing=smoothing)
