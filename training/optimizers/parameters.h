#pragma once
// The parameters of a model, and what each of them is in it: optimisers treat matrices, tables and vectors
// differently.

#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace zoo {

enum class ParameterRole {
  vector,         // of norms, biases: fewer than two dimensions
  embedding,      // a table whose rows are looked up: tokens, positions, segments, relative positions
  hidden_matrix,  // the weight of a linear layer, (out, in), but not of one that ends in scores
  other_matrix,   // what else has two or more dimensions: output projection, classifier, convolutions
};

struct Parameter {
  std::string name;
  torch::Tensor tensor;
  ParameterRole role;
};

/// The parameters of `module` that are trained, in its order; one that is used twice appears once.
std::vector<Parameter> parameters_of(const torch::nn::Module& module);

}  // namespace zoo
