"""Times forward and backward passes of transformers' Longformer self-attention, for run.py in this folder.

    longformer.py LENGTH WINDOW HEADS HEAD_DIM SECONDS

Prints {"seconds": median}. Its projections of queries, keys and values are part of the time; it has none of the output.
"""

import json
import statistics
import sys
import time

import torch
from transformers import LongformerConfig
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention


def main():
    length, window, heads, head_dim = map(int, sys.argv[1:5])
    width = heads * head_dim
    config = LongformerConfig(hidden_size=width, num_attention_heads=heads, attention_window=[2 * window],
                              attention_probs_dropout_prob=0.0)  # fmt: skip
    attention = LongformerSelfAttention(config, layer_id=0)
    x = torch.randn(1, length, width, requires_grad=True)
    mask = torch.zeros(1, length)
    upstream = torch.randn(1, length, width)

    def step():
        out = attention(x, attention_mask=mask, is_index_masked=mask < 0, is_index_global_attn=mask > 0,
                        is_global_attn=False)[0]  # fmt: skip
        out.backward(upstream)
        x.grad = None
        attention.zero_grad()

    step()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < float(sys.argv[5]):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(times)}))


if __name__ == "__main__":
    main()
