#pragma once
// A layer of a decoder that reads one token a row, in five kernels of a GPU: norm with queries, keys and
// values; rotary positions, cache and attention; output with the residual sum; norm with the network's first
// map and its activation; the second map with the residual sum. As operations of LibTorch these are about
// twenty kernels, and a small model spends the time of a token with starting them.

#include <optional>

#include <torch/types.h>

#include "layers/transformer_layer.h"

namespace zoo {

/// layer.forward(stream.value(), context) for (B, 1, D), and the tokens enter the state. Nothing, and nothing
/// has happened, where the kernels do not serve (kernels/gpu_product.h, gpu_decoding_attention.h): for other
/// layers than a decoder's with norms before attention and network and keys and values of all tokens, in
/// training, and where somebody observes. With more than kMostProductRows rows the products are LibTorch's,
/// and attention is one kernel all the same.
std::optional<torch::Tensor> decoded_layer(TransformerLayerImpl& layer, ResidualSum& stream,
                                           const LayerContext& context);

}  // namespace zoo
