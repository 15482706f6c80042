#pragma once
// A linear map y = x Wᵀ + b, or several maps of the same input, stacked in one matrix.

#include <vector>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/weights.h"

namespace zoo {

/// One of the maps in a stacked matrix.
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
  /// The stacked maps, in the order of their rows; at least one.
  TORCH_ARG(std::vector<LinearPart>, parts);
  TORCH_ARG(bool, bias) = true;
};

/// Parts `first` … `first` + `count` - 1 of a stacked map.
struct LinearParts {
  size_t first, count;
};

/// Initial weights as in torch.nn.Linear. Parameters: weight (O, I) and bias (O); O counts the outputs of all
/// parts.
class LinearImpl : public MatrixModule {
 public:
  explicit LinearImpl(const LinearOptions& options);
  /// (…, I) → (…, O)
  torch::Tensor forward(const torch::Tensor& x) const { return matrix().product(x, bias); }
  /// The outputs of some parts only, concatenated.
  torch::Tensor forward_some(const torch::Tensor& x, const LinearParts& parts) const;
  /// The outputs of all parts separately, as views of (…, O).
  std::vector<torch::Tensor> forward_parts(const torch::Tensor& x) const;

  int64_t n_inputs() const { return options.n_inputs(); }
  int64_t n_outputs() const;
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  LinearOptions options;
  torch::Tensor bias;  // (O) or undefined

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  int64_t rows_before(size_t part) const;
};
TORCH_MODULE(Linear);

/// A single map with the given use.
inline LinearOptions linear_options(int64_t n_inputs, int64_t n_outputs, WeightUse use) {
  return {n_inputs, {{.n_outputs = n_outputs, .use = use}}};
}

}  // namespace zoo
