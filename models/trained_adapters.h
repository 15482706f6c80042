#pragma once
// The adapters of a model (models/lora.h) as what they add to its matrices.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "models/lora.h"

namespace zoo {

/// An adapter of some rows of a matrix: W[first_row …] + scale · B A.
struct MatrixAdapter {
  std::string matrix;  // "decoder.layers.0.self_attention.qkv.weight"
  int64_t first_row = 0;
  torch::Tensor a, b;  // (r, I), (O, r)
  double scale = 1;    // alpha / r
};

/// Those that add_adapters() gave to `model` with this configuration.
std::vector<MatrixAdapter> adapters_of(const torch::nn::Module& model, const LoraConfig& config);

}  // namespace zoo
