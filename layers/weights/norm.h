#pragma once
// Normalisation over the last dimension.
//   layer_norm            γ ⊙ (x-μ)/√(σ²+ε) + β, biased variance (Ba et al. 2016; torch.nn.LayerNorm)
//   layer_norm_annotated  γ ⊙ (x-μ)/(σ+ε) + β, unbiased σ ("The Annotated Transformer")
//   layer_norm_plain      (x-μ)/√(σ²+ε), without weights (OLMo, Groeneveld et al. 2024)
//   rms_norm              γ ⊙ x/√(mean(x²)+ε) (Zhang & Sennrich 2019; Llama, T5)
//   rms_norm_outside      γ ⊙ x/(RMS(x)+ε) (the authors' own code)

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/nn/pimpl.h>

#include "kernels/normed_sum.h"
#include "layers/weights/cost.h"
#include "layers/weights/module.h"

namespace zoo {

/// The library's norms. Programs add their own to norm_types() (models/config/layer_types.h).
enum class NormKind { layer_norm, layer_norm_annotated, rms_norm, rms_norm_outside, layer_norm_plain };
constexpr auto config_names(NormKind) {
  return std::to_array<std::string_view>(
      {"layer_norm", "layer_norm_annotated", "rms_norm", "rms_norm_outside", "layer_norm_plain"});
}

/// What a norm computes with.
struct NormWeights {
  torch::Tensor gain;                   // (D) or undefined
  torch::Tensor bias;                   // (D) or undefined
  std::vector<torch::Tensor> own = {};  // those of NormFormula::own_weights()
};

/// A parameter that a formula has besides gain and bias.
struct OwnWeight {
  std::string name;
  torch::Tensor initial;  // float
};

/// A kind of norm. One formula serves many norms.
class NormFormula {
 public:
  virtual ~NormFormula() = default;
  virtual std::string_view name() const = 0;
  /// Whether it subtracts the mean. Such norms have β.
  virtual bool is_centred() const = 0;
  /// Whether it has γ. Without it there is no β, either.
  virtual bool has_gain() const { return true; }
  /// The parameters of a norm of width D that only this kind has. Default: none.
  virtual std::vector<OwnWeight> own_weights(int64_t /*size*/) const { return {}; }
  /// (…, D) → (…, D)
  virtual torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double eps) const = 0;
  /// The same for a reader that only multiplies the result by matrices: under mixed precision it may have
  /// their 16 bits. Default: as above.
  virtual torch::Tensor for_products(const torch::Tensor& x, const NormWeights& weights, double eps) const {
    return (*this)(x, weights, eps);
  }
  /// A sum of tensors (…, D), and its norm for `reader`. Default: one after the other; a kind may need only
  /// one pass.
  virtual NormedSum of_sum(const PendingSum& pending, const NormWeights& weights, double eps,
                           NormReader reader) const;
  /// The number (…, 1) that x, or x - μ, is divided by. With it a logit can be divided among the parts of x
  /// (analysis/causes/contributions.h). Default: undefined, because the formula is no division.
  virtual torch::Tensor divisor(const torch::Tensor& /*x*/, double /*eps*/) const { return {}; }
};

/// The library's formula.
std::shared_ptr<const NormFormula> norm_formula(NormKind kind);

struct NormOptions {
  explicit NormOptions(int64_t size) : size_(size) {}
  /// Width D of the last dimension.
  TORCH_ARG(int64_t, size);
  TORCH_ARG(std::shared_ptr<const NormFormula>, formula) = norm_formula(NormKind::layer_norm);
  TORCH_ARG(double, eps) = 1e-5;
  /// Whether the layer norms have β; the RMS norms never do.
  TORCH_ARG(bool, bias) = true;
  /// The gain is 1+γ with γ initialised to 0 (Gemma) instead of γ initialised to 1.
  TORCH_ARG(bool, unit_offset) = false;

 public:
  /// The library's formula of this kind.
  NormOptions& kind(NormKind kind) { return formula(norm_formula(kind)); }
};

class NormImpl : public Cloneable<NormImpl> {
 public:
  explicit NormImpl(const NormOptions& options);
  /// (…, D) → (…, D)
  torch::Tensor forward(const torch::Tensor& x);
  /// The same for a reader that only multiplies the result by matrices, in their type under mixed precision.
  torch::Tensor for_products(const torch::Tensor& x);
  /// A sum of tensors (…, D), and forward() or for_products() of it.
  NormedSum of_sum(const PendingSum& pending, NormReader reader);
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  NormOptions options;
  torch::Tensor weight;  // (D) or undefined
  torch::Tensor bias;    // (D) or undefined

 private:
  NormWeights weights() const;

  std::vector<torch::Tensor> own_;
};
TORCH_MODULE(Norm);

/// `count` norms of equal options, each of which reads `n_tokens` vectors.
void count_norms(CostAccount& account, std::string name, const NormOptions& options, int64_t count,
                 double n_tokens);

}  // namespace zoo
