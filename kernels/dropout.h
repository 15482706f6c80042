#pragma once
// Dropout (Srivastava et al. 2014): each element becomes zero with probability p and is divided by 1-p
// otherwise.
//
// On the CPU the same pass draws the mask from a counter-based generator (Philox4x32 with 7 rounds, Salmon et
// al. 2011) and applies it. The backward pass draws it again: no mask is stored. The first dimension of a
// tensor counts the rows of a batch. What a row loses depends only on a seed and on the row's number in the
// training step (RowSeed, base/random.h), not on the rows beside it. Other devices use LibTorch's dropout,
// and on a GPU a sum with it is a kernel of our own (gpu_dropout.h).

#include <cstdint>

#include <torch/types.h>

#include "base/random.h"

namespace zoo {

/// An element is dropped if its 16 random bits are below `threshold`; others are multiplied by `scale`.
struct DropoutRule {
  uint32_t threshold;
  float scale;
};
/// The rule that drops an element with the probability p. Throws c10::Error if p is not in [0, 1].
DropoutRule dropout_rule(double p);

/// x: any shape; p in [0, 1], rounded to 16 bits. p = 0, which the caller passes outside training, returns x.
torch::Tensor dropout(const torch::Tensor& x, double p);
/// The same with the random numbers of `seed`, in place of those of draw_row_seed(). A device other than the
/// CPU ignores them.
torch::Tensor dropout(const torch::Tensor& x, double p, const RowSeed& seed);

/// x + dropout(y, p) in one pass; x and y have the same shape and type.
torch::Tensor add_dropout(const torch::Tensor& x, const torch::Tensor& y, double p);

}  // namespace zoo
