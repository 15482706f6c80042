#pragma once
// A linear map, y = x Wᵀ + b, or several with the same input stacked in one matrix.

#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights.h"

namespace zoo {

/// One of the maps that are stacked in a matrix.
struct LinearPart {
  int64_t n_outputs;
  WeightUse use = WeightUse::hidden;
};

struct LinearOptions {
  LinearOptions(int64_t n_inputs, int64_t n_outputs)
      : n_inputs_(n_inputs), parts_({{.n_outputs = n_outputs}}) {}
  LinearOptions(int64_t n_inputs, std::vector<LinearPart> parts)
      : n_inputs_(n_inputs), parts_(std::move(parts)) {}
  TORCH_ARG(int64_t, n_inputs);
  /// From the first row of the matrix to the last: at least one.
  TORCH_ARG(std::vector<LinearPart>, parts);
  TORCH_ARG(bool, bias) = true;
};

/// Parts `first` … `first` + `count` - 1 of a stacked map.
struct LinearParts {
  size_t first, count;
};

/// Weights start as those of torch.nn.Linear. Parameters: weight (O, I), bias (O), O the outputs of all parts.
class LinearImpl : public MatrixModule {
 public:
  explicit LinearImpl(const LinearOptions& options);
  /// (…, I) → (…, O)
  torch::Tensor forward(const torch::Tensor& x) const { return matrix().product(x, bias); }
  /// The outputs of some of the parts alone, beside each other.
  torch::Tensor forward(const torch::Tensor& x, const LinearParts& parts) const;
  /// The outputs of all parts, one by one: views of (…, O).
  std::vector<torch::Tensor> forward_parts(const torch::Tensor& x) const;

  int64_t n_inputs() const { return options.n_inputs(); }
  int64_t n_outputs() const;
  void visit_weights(const WeightVisitor& visit) const override;

  LinearOptions options;
  torch::Tensor bias;  // (O) or undefined

 private:
  int64_t rows_before(size_t part) const;
};
TORCH_MODULE(Linear);

/// A map with one use.
inline LinearOptions linear_options(int64_t n_inputs, int64_t n_outputs, WeightUse use) {
  return {n_inputs, {{.n_outputs = n_outputs, .use = use}}};
}

}  // namespace zoo
