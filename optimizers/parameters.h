#pragma once
// The parameters of a model and the role of each: optimisers treat matrices, tables and vectors differently.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "optimizers/optimizer_config.h"

namespace zoo {

enum class ParameterRole {
  vector,         // fewer than two dimensions: norms, biases
  embedding,      // a table whose rows are looked up: tokens, positions, segments, relative positions
  hidden_matrix,  // the weight of a linear layer, (out, in), or of a convolution, (out, in, K, K), except
                  // layers whose outputs are scores
  other_matrix,   // all others with two or more dimensions: output projection, classifier
};

struct Parameter {
  std::string name;
  torch::Tensor tensor;
  ParameterRole role;
  /// The numbers of rows of the matrices that are stacked in it, in order, such as a fused layer's queries,
  /// keys and values. Empty: it is one matrix, or none.
  std::vector<int64_t> stacked_rows = {};
  double lr_factor = 1;
  std::optional<double> weight_decay = std::nullopt;  // in place of what its role gives it
};

/// The parameters of `module` that are trained, in the order of the module. A parameter that is used twice
/// appears once.
std::vector<Parameter> parameters_of(const torch::nn::Module& module);

/// Gives parameters the learning rate and the weight decay of the first group whose pattern matches. Throws
/// ConfigError for a pattern that matches none of them.
void apply_groups(const std::vector<ParameterGroupConfig>& groups, std::vector<Parameter>& parameters);

}  // namespace zoo
