#pragma once
// A linear map y = x Wᵀ + b, or several maps of the same input, stacked in one matrix.
//
// Each of the maps can have an adapter of low rank r (LoRA, Hu et al. 2021), which is trained in place of W:
//
//     y = x Wᵀ + b + (alpha / r) · dropout(x) Aᵀ Bᵀ        A (r, I), B (O, r)
//
// B begins as zero, so the map does not change at first.

#include <string>
#include <vector>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/cost.h"
#include "layers/weights/weights.h"

namespace zoo {

/// One of the maps in a stacked matrix.
struct LinearPart {
  int64_t n_outputs;
  WeightUse use = WeightUse::hidden;
  /// Its name among several parts, such as "q".
  std::string name = {};
};

struct AdapterOptions {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;  // of the input, in training
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
class LinearImpl : public Cloneable<LinearImpl, MatrixModule> {
 public:
  explicit LinearImpl(const LinearOptions& options);
  /// (…, I) → (…, O)
  torch::Tensor forward(const torch::Tensor& x) const;
  /// The outputs of some parts only, concatenated.
  torch::Tensor forward_some(const torch::Tensor& x, const LinearParts& parts) const;
  /// The outputs of all parts separately, as views of (…, O).
  std::vector<torch::Tensor> forward_parts(const torch::Tensor& x) const;
  /// Each part reads rows of its own. x (N, I): the first counts[0] rows are those of the first part, and so
  /// on; all parts have O' outputs. Returns (N, O'). The matrices of parts without rows are not read, unless
  /// gradients are recorded: then all of them have gradients, also if there are no rows at all.
  torch::Tensor forward_groups(const torch::Tensor& x, const std::vector<int64_t>& counts) const;

  /// Has the maps `parts` from now on, whose rows `weight` and `bias` hold (undefined without biases). The
  /// parameters remain the same objects, so what else refers to them sees their new rows. Without adapters.
  void replace_parts(std::vector<LinearPart> parts, const torch::Tensor& weight,
                     const torch::Tensor& bias_rows);

  /// Gives a part, which has none yet, an adapter: the parameters lora_a (r, I), drawn as in torch.nn.Linear,
  /// and lora_b (O, r), zeros. With several parts their names end in "_NAME" of the part.
  void add_adapter(size_t part, const AdapterOptions& adapter);
  bool has_adapters() const { return !adapters_.empty(); }
  /// Adds the products of the adapters to the matrix, which must have the format fp32, and removes them.
  /// Returns their number.
  int64_t merge_adapters();

  int64_t n_inputs() const { return options.n_inputs(); }
  int64_t n_outputs() const;
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  LinearOptions options;
  torch::Tensor bias;  // (O) or undefined

 protected:
  void take_settings(const torch::nn::Module& from) override;

 private:
  struct Adapter {
    size_t part;
    AdapterOptions options;
    torch::Tensor a, b;
    double scale() const { return options.alpha / static_cast<double>(options.rank); }
  };
  int64_t rows_before(size_t part) const;
  const Adapter* adapter_of(size_t part) const;
  std::string adapter_suffix(size_t part) const;
  torch::Tensor with_adapter(const torch::Tensor& y, const torch::Tensor& x, size_t part) const;
  /// The outputs of some parts, each with its adapter.
  std::vector<torch::Tensor> adapted_parts(const torch::Tensor& x, const LinearParts& parts) const;

  std::vector<Adapter> adapters_;
};
TORCH_MODULE(Linear);

/// A single map with the given use.
inline LinearOptions linear_options(int64_t n_inputs, int64_t n_outputs, WeightUse use) {
  return {n_inputs, {{.n_outputs = n_outputs, .use = use}}};
}

/// `n_tokens`: vectors that the map reads, over all rows.
void count_linear(CostAccount& account, std::string name, std::string kind, const LinearOptions& options,
                  double n_tokens);

}  // namespace zoo
