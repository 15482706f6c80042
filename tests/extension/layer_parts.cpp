#include <torch/types.h>
#include <torch/utils.h>

#include "types.h"

namespace {

struct DynamicTanhOptions {
  double alpha = 0.5;
};
void describe(zoo::ConfigVisitor& v, DynamicTanhOptions& options) {
  v.field("alpha", options.alpha, "Factor within tanh before training.", zoo::Limits::positive());
}

/// γ ⊙ tanh(αx) + β, in which α is learned (Zhu et al. 2025).
class DynamicTanh final : public zoo::NormFormula {
 public:
  explicit DynamicTanh(double alpha) : alpha_(alpha) {}
  std::string_view name() const override { return "dynamic_tanh"; }
  bool is_centred() const override { return true; }  // it has β
  std::vector<zoo::OwnWeight> own_weights(int64_t /*size*/) const override {
    return {{.name = "alpha", .initial = torch::full({1}, alpha_)}};
  }
  torch::Tensor operator()(const torch::Tensor& x, const zoo::NormWeights& weights, double) const override {
    const auto y = weights.gain * torch::tanh(weights.own[0] * x);
    return weights.bias.defined() ? y + weights.bias : y;
  }

 private:
  double alpha_;
};

/// max(0, x)² (So et al. 2021).
class SquaredRelu final : public zoo::ActivationFunction {
 public:
  std::string_view name() const override { return "squared_relu"; }
  torch::Tensor operator()(const torch::Tensor& x) const override { return torch::relu(x).square(); }
};

/// -r·log(1 + |i - j|) in every head, in which r is learned (Chi et al. 2022, KERPLE).
class LogDistance final : public zoo::Cloneable<LogDistance, zoo::ScoreBiasImpl> {
 public:
  explicit LogDistance(int64_t n_heads) : options(n_heads) {
    rate = register_parameter("rate", torch::ones({n_heads}, zoo::parameter_options()));
  }
  torch::Tensor at(const zoo::PositionRange& range, torch::Device device) override {
    const auto distance = zoo::relative_positions(range, device).abs().to(torch::kFloat).log1p();
    return -rate.view({1, -1, 1, 1}) * (distance.dim() == 3 ? distance.unsqueeze(1) : distance);
  }

  int64_t options;  // the number of heads
  torch::Tensor rate;
};

}  // namespace

zoo::NormType dynamic_tanh() {
  zoo::NormType type;
  type.name = "dynamic_tanh";
  type.doc = "A tanh with a learned slope.";
  type.make_options = zoo::options_of<DynamicTanhOptions>();
  type.make = [](const zoo::Selection& selection) -> std::shared_ptr<const zoo::NormFormula> {
    return std::make_shared<DynamicTanh>(selection.as<DynamicTanhOptions>().alpha);
  };
  return type;
}

zoo::ActivationType squared_relu() {
  zoo::ActivationType type;
  type.name = "squared_relu";
  type.doc = "The square of relu.";
  type.make = [](const zoo::Selection&) { return std::make_shared<SquaredRelu>(); };
  return type;
}

zoo::PositionType log_distance() {
  zoo::PositionType type;
  type.name = "log_distance";
  type.doc = "Scores fall with the logarithm of the distance.";
  type.make_bias = [](const zoo::ModelConfig& config, zoo::Direction) -> std::shared_ptr<zoo::ScoreBiasImpl> {
    return std::make_shared<LogDistance>(config.n_heads);
  };
  return type;
}
