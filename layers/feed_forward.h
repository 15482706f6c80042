#pragma once
// The position-wise feed-forward network.
//   plain   W_down(act(W_up x + b) ) + b            (Vaswani et al. 2017; GELU: Hendrycks & Gimpel 2016)
//   gated   W_down(act(W_gate x) ⊙ W_up x)          (Shazeer 2020: SwiGLU, GEGLU, ReGLU)

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "layers/weights/linear.h"

namespace zoo {

/// gelu is the exact x·Φ(x), gelu_tanh its tanh approximation (GPT-2), quick_gelu x·sigmoid(1.702 x) (CLIP,
/// Radford et al. 2021). Those after quick_gelu are gated.
/// swiglu_clamped is (u + 1) ⊙ g·sigmoid(α g) with g = min(gate, c) and u = up within [-c, c] (gpt-oss,
/// OpenAI 2025).
enum class Activation {
  relu,
  gelu,
  gelu_tanh,
  silu,
  quick_gelu,
  swiglu,
  geglu,
  geglu_tanh,
  reglu,
  swiglu_clamped
};
constexpr auto config_names(Activation) {
  return std::to_array<std::string_view>({"relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "swiglu",
                                          "geglu", "geglu_tanh", "reglu", "swiglu_clamped"});
}

bool is_gated(Activation activation);
/// The non-linearity itself; for a gated activation, the non-linearity of its gate.
torch::Tensor activate(Activation activation, const torch::Tensor& x);

/// The non-linearity of a feed-forward network. Programs add their own to activation_types()
/// (models/config/layer_types.h).
class ActivationFunction {
 public:
  virtual ~ActivationFunction() = default;
  virtual std::string_view name() const = 0;
  /// Whether the network has a gate, to which the function belongs.
  virtual bool is_gated() const { return false; }
  /// The non-linearity itself; for a gated activation, that of its gate. x: any shape.
  virtual torch::Tensor operator()(const torch::Tensor& x) const = 0;
  /// act(gate) ⊙ up: (…, F) each.
  virtual torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up) const {
    return (*this)(gate)*up;
  }
  /// The same of both in one tensor (…, 2F), the gate first.
  virtual torch::Tensor gated_halves(const torch::Tensor& both) const {
    const auto halves = both.chunk(2, -1);
    return gated(halves[0], halves[1]);
  }
  /// The numbers that the backward pass needs, for each of the F of a token.
  virtual int64_t n_kept() const { return is_gated() ? 4 : 2; }
};

/// The library's function.
std::shared_ptr<const ActivationFunction> activation_function(Activation kind);

/// The keys of swiglu_clamped.
struct ClampedSwiGluOptions {
  double alpha = 1.702;
  double limit = 7.0;  // c
};
std::shared_ptr<const ActivationFunction> clamped_swiglu(const ClampedSwiGluOptions& options);

/// Gate and up as two matrices, or stacked in one (2F, D).
enum class GateProjection { separate, fused };
constexpr auto config_names(GateProjection) { return std::to_array<std::string_view>({"separate", "fused"}); }

struct FeedForwardOptions {
  FeedForwardOptions(int64_t d_model, int64_t d_ff) : d_model_(d_model), d_ff_(d_ff) {}
  TORCH_ARG(int64_t, d_model);
  /// Inner width F.
  TORCH_ARG(int64_t, d_ff);
  TORCH_ARG(std::shared_ptr<const ActivationFunction>, activation) = activation_function(Activation::relu);
  TORCH_ARG(bool, bias) = true;
  /// Probability of dropping an inner activation.
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(GateProjection, gate) = GateProjection::separate;

 public:
  /// The library's function of this name.
  FeedForwardOptions& activation(Activation kind) { return activation(activation_function(kind)); }
};

class FeedForwardImpl : public Cloneable<FeedForwardImpl> {
 public:
  explicit FeedForwardImpl(const FeedForwardOptions& options);
  /// (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x);
  void pretty_print(std::ostream& stream) const override;

  FeedForwardOptions options;
  Linear up{nullptr};       // D → F; absent if fused
  Linear gate{nullptr};     // D → F; gated activations only; absent if fused
  Linear gate_up{nullptr};  // D → 2F, gate first; if fused
  Linear down{nullptr};     // F → D

 private:
  torch::Tensor inner(const torch::Tensor& x);  // (B, T, F)
};
TORCH_MODULE(FeedForward);

/// `n_tokens`: vectors that the network reads, over all rows.
void count_feed_forward(CostAccount& account, std::string name, const FeedForwardOptions& options,
                        double n_tokens);

}  // namespace zoo
