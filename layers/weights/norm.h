#pragma once
// Normalisation over the last dimension.
//   layer_norm            γ ⊙ (x-μ)/√(σ²+ε) + β, biased variance (Ba et al. 2016; torch.nn.LayerNorm)
//   layer_norm_annotated  γ ⊙ (x-μ)/(σ+ε) + β, unbiased σ ("The Annotated Transformer")
//   rms_norm              γ ⊙ x/√(mean(x²)+ε) (Zhang & Sennrich 2019; Llama, T5)
//   rms_norm_outside      γ ⊙ x/(RMS(x)+ε) (the authors' own code)

#include <array>
#include <string>
#include <string_view>

#include <torch/nn/pimpl.h>

#include "layers/weights/cost.h"
#include "layers/weights/module.h"

namespace zoo {

enum class NormKind { layer_norm, layer_norm_annotated, rms_norm, rms_norm_outside };
constexpr auto config_names(NormKind) {
  return std::to_array<std::string_view>(
      {"layer_norm", "layer_norm_annotated", "rms_norm", "rms_norm_outside"});
}

struct NormOptions {
  explicit NormOptions(int64_t size) : size_(size) {}
  /// Width D of the last dimension.
  TORCH_ARG(int64_t, size);
  TORCH_ARG(NormKind, kind) = NormKind::layer_norm;
  TORCH_ARG(double, eps) = 1e-5;
  /// Whether the layer norms have β; the RMS norms never do.
  TORCH_ARG(bool, bias) = true;
  /// The gain is 1+γ with γ initialised to 0 (Gemma) instead of γ initialised to 1.
  TORCH_ARG(bool, unit_offset) = false;
};

class NormImpl : public Cloneable<NormImpl> {
 public:
  explicit NormImpl(const NormOptions& options);
  /// (…, D) → (…, D)
  torch::Tensor forward(const torch::Tensor& x);
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  NormOptions options;
  torch::Tensor weight;  // (D)
  torch::Tensor bias;    // (D) or undefined
};
TORCH_MODULE(Norm);

/// `count` norms of equal options, each of which reads `n_tokens` vectors.
void count_norms(CostAccount& account, std::string name, const NormOptions& options, int64_t count,
                 double n_tokens);

}  // namespace zoo
