#pragma once
// Residual connections around the sub-layers f of a layer: the place of the normalisation, and the dropout on
// f's output.
//   pre            x + f(norm(x)), with a final norm after the last layer   (GPT-2; Xiong et al. 2020)
//   post           norm(x + f(x))                                           (Vaswani et al. 2017)
//   residual_post  x + norm(f(x))                                           (Swin v2, Liu et al. 2022)
//   sandwich       x + norm₂(f(norm₁(x)))                                   (CogView, Ding et al. 2021)
//   parallel       x + Σ f_i(norm(x)), one norm for all sub-layers          (GPT-J, PaLM)
//   parallel_norms x + Σ f_i(norm_i(x)), a norm for each sub-layer          (GPT-NeoX, Black et al. 2022)

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/attention/activation_observer.h"
#include "layers/weights/cost.h"
#include "layers/weights/norm.h"

namespace zoo {

enum class NormPlacement { pre, post, residual_post, sandwich, parallel, parallel_norms };
constexpr auto config_names(NormPlacement) {
  return std::to_array<std::string_view>(
      {"pre", "post", "residual_post", "sandwich", "parallel", "parallel_norms"});
}

/// Whether a stack of such layers needs a final norm.
constexpr bool wants_final_norm(NormPlacement placement) { return placement != NormPlacement::post; }

struct ResidualOptions {
  ResidualOptions(NormOptions norm, std::vector<std::string> sub_layers)
      : norm_(std::move(norm)), sub_layers_(std::move(sub_layers)) {}
  TORCH_ARG(NormOptions, norm);
  /// Names of the sub-layers in order. Norms are registered as NAME_norm and NAME_output_norm (parallel:
  /// norm).
  TORCH_ARG(std::vector<std::string>, sub_layers);
  TORCH_ARG(NormPlacement, placement) = NormPlacement::pre;
  /// Factor on each sub-layer's output (Granite: 0.22).
  TORCH_ARG(double, scale) = 1.0;
  /// Probability of dropping an element of a sub-layer's output.
  TORCH_ARG(double, dropout) = 0.0;
  /// Initial value of learned factors on each sub-layer's output, one for each of the D numbers; default: no
  /// factors (LayerScale, Touvron et al. 2021).
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  /// Probability of leaving out a sub-layer for a row; the rows that keep it scale it up (stochastic depth,
  /// Huang et al. 2016).
  TORCH_ARG(double, stochastic_depth) = 0.0;
  /// pre: whether the first sub-layer has a norm. Without one it reads x as it is.
  TORCH_ARG(bool, first_norm) = true;
};

/// The vectors that sub-layers read and add to: x, or a sum, which waits until it is read, because a norm can
/// compute it in its own pass.
class ResidualSum {
 public:
  explicit ResidualSum(torch::Tensor x) : pending_{.x = std::move(x), .y = {}, .p = 0} {}
  explicit ResidualSum(PendingSum sum) : pending_(std::move(sum)) {}

  torch::Tensor value();
  /// norm(value()) for a reader; without a norm value() itself.
  torch::Tensor normed_by(Norm& norm, NormReader reader);
  /// The type of value().
  torch::ScalarType type() const;
  /// A tensor that has the shape and the device of value().
  const torch::Tensor& like() const { return pending_.x; }

 private:
  PendingSum pending_;  // y undefined: x is the value
};

class ResidualImpl : public Cloneable<ResidualImpl> {
 public:
  using SubLayer = std::function<torch::Tensor(const torch::Tensor&)>;

  explicit ResidualImpl(const ResidualOptions& options);
  /// x: (B, T, D); one function for each name in the options, applied in that order. Returns (B, T, D).
  /// `observed`: for each sub-layer, who sees what it adds to x; empty: nobody.
  torch::Tensor forward(const torch::Tensor& x, const std::vector<SubLayer>& sub_layers,
                        std::span<const ObservedPlace> observed = {});
  /// The same, where the last sum waits for its reader.
  ResidualSum advance(ResidualSum x, const std::vector<SubLayer>& sub_layers,
                      std::span<const ObservedPlace> observed = {});
  void pretty_print(std::ostream& stream) const override;

  ResidualOptions options;
  std::vector<Norm> norms_in;  // before each sub-layer (parallel: only one), maybe null; post: after each sum
  std::vector<Norm> norms_out;        // on each sub-layer's output: residual_post, sandwich
  std::vector<torch::Tensor> scales;  // (D) for each sub-layer, if there is a layer_scale

 private:
  /// A sub-layer in its place, and who sees what it adds; null: nobody.
  struct Place {
    size_t index;
    const ObservedPlace* observed;
  };
  ResidualSum connected(ResidualSum& x, const Place& place, const SubLayer& sub_layer);
  /// x + y, where y is the output of the sub-layer: with its factors, dropout and stochastic depth.
  ResidualSum sum(ResidualSum& x, const Place& place, torch::Tensor y);
  /// The probability of this call.
  double dropout_now() const;
};

class Residual : public torch::nn::ModuleHolder<ResidualImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = ResidualImpl;
  /// forward(), declared here so that residual(x, {attend, transform}) compiles.
  torch::Tensor operator()(const torch::Tensor& x, const std::vector<ResidualImpl::SubLayer>& sub_layers,
                           std::span<const ObservedPlace> observed = {}) {
    return get()->forward(x, sub_layers, observed);
  }
};

/// The norms and factors around sub-layers that read `n_tokens` vectors each.
void count_residual(CostAccount& account, const std::string& name, const ResidualOptions& options,
                    double n_tokens);

}  // namespace zoo
