// Adafactor.

#include <algorithm>
#include <cmath>
#include <limits>

#include "optimizers/library_rules.h"

namespace zoo {
namespace {

/// A scalar on the tensor's device; does not wait for the device.
torch::Tensor root_mean_square(const torch::Tensor& tensor) {
  return at::linalg_vector_norm(tensor) / std::sqrt(static_cast<double>(tensor.numel()));
}

class Adafactor final : public UpdateRule {
 public:
  explicit Adafactor(const AdafactorConfig& config) : config_(config) {}

  /// row_var (…, R, 1) and col_var (…, 1, C) of a matrix (…, R, C); variance of a vector. `step` is on the
  /// CPU, because update() uses its value there.
  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    torch::Tensor row_var, col_var, variance;
    if (parameter.dim() > 1) {
      row_var = at::zeros_like(parameter.narrow(-1, 0, 1));
      col_var = at::zeros_like(parameter.narrow(-2, 0, 1));
    } else {
      variance = at::zeros_like(parameter);
    }
    return {{"row_var", row_var},
            {"col_var", col_var},
            {"variance", variance},
            {"step", at::zeros({}, torch::kFloat)}};
  }

  void update(const ParameterGroup& group, double lr) const override {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const auto& parameter = group.parameters[i];
      const double step = group.state[3][i].add_(1).item<double>();
      const double relative_step_size = std::min(lr, 1 / std::sqrt(step));
      const auto step_size = root_mean_square(parameter).clamp_min_(config_.min_rms).mul_(relative_step_size);
      const auto unclipped = unclipped_update(group, i, std::pow(step, config_.beta2_decay));
      const auto clipping = root_mean_square(unclipped).div_(config_.clip_threshold).clamp_min_(1.0);
      if (group.weight_decay != 0) parameter.mul_(1 - lr * group.weight_decay);
      parameter.sub_(unclipped.mul_(step_size / clipping));
    }
  }

 private:
  /// The gradient divided by the root of its moving mean square. The mean square of this step enters the
  /// moving one with the weight `one_minus_beta2`.
  torch::Tensor unclipped_update(const ParameterGroup& group, size_t i, double one_minus_beta2) const {
    constexpr double eps = std::numeric_limits<float>::epsilon();
    const auto& gradient = group.gradients[i];
    torch::Tensor mean_square;
    if (gradient.dim() > 1) {
      const auto& row_var = group.state[0][i];
      const auto& col_var = group.state[1][i];
      // From the norm, because the squares would take as much memory as the gradient.
      const auto mean_square_along = [&](int64_t dim) {
        const auto norm = at::linalg_vector_norm(gradient, 2, dim, /*keepdim=*/true);
        return norm.square_().div_(static_cast<double>(gradient.size(dim)));
      };
      row_var.lerp_(mean_square_along(-1), one_minus_beta2);
      col_var.lerp_(mean_square_along(-2), one_minus_beta2);
      mean_square = (row_var * col_var).div_(row_var.mean(-2, /*keepdim=*/true).clamp_min_(eps));
    } else {
      const auto& variance = group.state[2][i];
      variance.lerp_(gradient.square(), one_minus_beta2);
      mean_square = variance.clone();
    }
    return mean_square.clamp_min_(eps * eps).rsqrt_().mul_(gradient);
  }

  AdafactorConfig config_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adafactor(const OptimizerConfig& config) {
  return std::make_unique<Adafactor>(config.adafactor);
}

}  // namespace zoo
