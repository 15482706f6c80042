#pragma once
// What each part of a model adds to one logit: direct logit attribution (Elhage et al. 2021, "A Mathematical
// Framework for Transformer Circuits"). The vector that the head reads is a sum of the embedding, of each
// head's output, and of each sub-layer's. Norms keep the scale that they have for the whole sum, and a
// non-linear head the factor from its input to its output, so that all steps are linear and the parts add up
// to the logit.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "models/model.h"

namespace zoo {

struct Contribution {
  /// "residual.0", the embedding; "layers.3.attention.heads.2"; "layers.3.attention.bias", of the output
  /// projection; "layers.3.feed_forward"; "norms.bias"; "head.bias".
  std::string name;
  double logit;
};

struct Contributions {
  double logit = 0;  // the sum of the parts, up to rounding
  std::vector<Contribution> parts = {};
};

/// The parts of the logit of output `output` at place `place` of a batch of one row without padding, which is
/// on the model's device. A model with two stacks has the parts of its decoder. Throws UsageError for a
/// model whose outputs are not made from its last stack by a norm and a head.
Contributions logit_contributions(Model& model, const Batch& batch, int64_t place, int64_t output);

}  // namespace zoo
