// Adafactor.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "optimizers/library_rules.h"

namespace zoo {
namespace {

/// Parameters of one shape: one by itself, or several, stacked in a further first dimension, so that a GPU
/// needs one kernel where it would need one for each.
struct Stacked {
  bool is_stack;
  torch::Tensor parameter, gradient, row_var, col_var, variance;  // undefined as in the state

  /// (1) or, of a stack of n, (n, 1, …), on their device; does not wait for the device.
  torch::Tensor root_mean_square(const torch::Tensor& tensor) const {
    if (!is_stack) return at::linalg_vector_norm(tensor) / std::sqrt(static_cast<double>(tensor.numel()));
    std::vector<int64_t> dims(static_cast<size_t>(tensor.dim() - 1));
    std::iota(dims.begin(), dims.end(), 1);
    const auto count = static_cast<double>(tensor.numel() / tensor.size(0));
    if (dims.empty()) return tensor.abs();
    return at::linalg_vector_norm(tensor, 2, dims, /*keepdim=*/true) / std::sqrt(count);
  }
};

// As many numbers as one stack has at most: enough for a GPU, and less memory than a large matrix takes
// anyway.
constexpr int64_t kMostStacked = int64_t{1} << 24;

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
    for (const auto& members : stacks_of(group)) {
      const double step = count_step(group, members);
      if (members.size() == 1) {
        const auto i = members.front();
        const auto& parameter = group.parameters[i];
        const auto change = change_of(
            {false, parameter, group.gradients[i], group.state[0][i], group.state[1][i], group.state[2][i]},
            lr, step);
        if (group.weight_decay != 0) parameter.mul_(1 - lr * group.weight_decay);
        parameter.sub_(change);
      } else {
        update_together(group, members, lr, step);
      }
    }
  }

 private:
  /// The numbers of parameters that are updated at once: on a GPU all of one shape and age, on the CPU each.
  static std::vector<std::vector<size_t>> stacks_of(const ParameterGroup& group) {
    std::vector<std::vector<size_t>> stacks;
    std::map<std::pair<std::vector<int64_t>, float>, size_t> open;  // the newest stack of a shape
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const auto& parameter = group.parameters[i];
      if (!parameter.is_cpu()) {
        const std::pair key(parameter.sizes().vec(), group.state[3][i].item<float>());
        const auto found = open.find(key);
        if (found != open.end() &&
            (std::ssize(stacks[found->second]) + 1) * parameter.numel() <= kMostStacked) {
          stacks[found->second].push_back(i);
          continue;
        }
        open[key] = stacks.size();
      }
      stacks.push_back({i});
    }
    return stacks;
  }

  static double count_step(const ParameterGroup& group, const std::vector<size_t>& members) {
    double step = 0;
    for (const size_t i : members) step = group.state[3][i].add_(1).item<double>();
    return step;
  }

  void update_together(const ParameterGroup& group, const std::vector<size_t>& members, double lr,
                       double step) const {
    const auto all = [&](const std::vector<torch::Tensor>& tensors) {
      std::vector<torch::Tensor> chosen;
      for (const size_t i : members) chosen.push_back(tensors[i]);
      return chosen;
    };
    const auto stacked = [](const std::vector<torch::Tensor>& tensors) {
      return tensors.front().defined() ? at::stack(tensors) : torch::Tensor();
    };
    const auto parameters = all(group.parameters);
    std::vector<std::vector<torch::Tensor>> state;
    for (size_t i = 0; i < 3; ++i) state.push_back(all(group.state[i]));
    const Stacked stack{true,
                        stacked(parameters),
                        stacked(all(group.gradients)),
                        stacked(state[0]),
                        stacked(state[1]),
                        stacked(state[2])};
    const auto change = change_of(stack, lr, step);
    if (group.weight_decay != 0) at::_foreach_mul_(parameters, 1 - lr * group.weight_decay);
    at::_foreach_sub_(parameters, change.unbind());
    const std::array<torch::Tensor, 3> updated = {stack.row_var, stack.col_var, stack.variance};
    for (size_t i = 0; i < updated.size(); ++i)
      if (updated[i].defined()) at::_foreach_copy_(state[i], updated[i].unbind());
  }

  /// What the step takes from the parameter, besides its decay; updates the variances.
  torch::Tensor change_of(const Stacked& stack, double lr, double step) const {
    const double relative_step_size = std::min(lr, 1 / std::sqrt(step));
    const auto step_size =
        stack.root_mean_square(stack.parameter).clamp_min_(config_.min_rms).mul_(relative_step_size);
    auto unclipped = unclipped_update(stack, std::pow(step, config_.beta2_decay));
    const auto clipping = stack.root_mean_square(unclipped).div_(config_.clip_threshold).clamp_min_(1.0);
    return unclipped.mul_(step_size / clipping);
  }

  /// The gradient divided by the root of its moving mean square. The mean square of this step enters the
  /// moving one with the weight `one_minus_beta2`.
  static torch::Tensor unclipped_update(const Stacked& stack, double one_minus_beta2) {
    constexpr double eps = std::numeric_limits<float>::epsilon();
    const auto& gradient = stack.gradient;
    torch::Tensor mean_square;
    if (stack.row_var.defined()) {
      // From the norm, because the squares would take as much memory as the gradient.
      const auto mean_square_along = [&](int64_t dim) {
        const auto norm = at::linalg_vector_norm(gradient, 2, dim, /*keepdim=*/true);
        return norm.square_().div_(static_cast<double>(gradient.size(dim)));
      };
      stack.row_var.lerp_(mean_square_along(-1), one_minus_beta2);
      stack.col_var.lerp_(mean_square_along(-2), one_minus_beta2);
      mean_square =
          (stack.row_var * stack.col_var).div_(stack.row_var.mean(-2, /*keepdim=*/true).clamp_min_(eps));
    } else {
      stack.variance.lerp_(gradient.square(), one_minus_beta2);
      mean_square = stack.variance.clone();
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
