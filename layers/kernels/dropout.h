#pragma once
// Dropout (Srivastava et al. 2014): each element is zero with probability p, and divided by 1-p otherwise.
//
// On the CPU the choice comes from a counter-based generator (Philox4x32 with 7 rounds, Salmon et al. 2011)
// in the same pass that applies it, and is made again in the backward pass: no mask is ever kept. Which
// elements are dropped depends on draw_seed() (base/random.h) and on nothing else. Elsewhere it is
// LibTorch's own.

#include <torch/types.h>

namespace zoo {

/// x: any shape; p in [0, 1], to 16 bits. The caller passes 0 where the model is not training: x itself.
torch::Tensor dropout(const torch::Tensor& x, double p);

/// x + dropout(y, p), in one pass; x and y of one shape and type.
torch::Tensor add_dropout(const torch::Tensor& x, const torch::Tensor& y, double p);

}  // namespace zoo
