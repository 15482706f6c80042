// Lion.

#include "training/optimizers/update_rule.h"

namespace zoo {
namespace {

class Lion final : public UpdateRule {
 public:
  explicit Lion(const OptimizerConfig& config) : beta1_(config.betas.at(0)), beta2_(config.betas.at(1)) {}

  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    return {{"exp_avg", at::zeros_like(parameter)}};
  }

  /// The signs need room. So that this is not the size of the model, only so many values at a time are
  /// updated, enough to keep a GPU busy.
  void update(const ParameterGroup& group, double lr) const override {
    constexpr int64_t at_once = 1 << 22;
    const at::TensorList parameters = group.parameters, gradients = group.gradients,
                         averages = group.state[0];
    for (size_t begin = 0, end = 0; begin < parameters.size(); begin = end) {
      int64_t values = 0;
      do {
        values += parameters[end++].numel();
      } while (end < parameters.size() && values + parameters[end].numel() <= at_once);
      const size_t count = end - begin;
      update(parameters.slice(begin, count), gradients.slice(begin, count), averages.slice(begin, count),
             group.weight_decay, lr);
    }
  }

 private:
  void update(at::TensorList parameters, at::TensorList gradients, at::TensorList averages,
              double weight_decay, double lr) const {
    const auto directions = at::_foreach_lerp(averages, gradients, 1 - beta1_);
    at::_foreach_sign_(directions);
    if (weight_decay != 0) at::_foreach_mul_(parameters, 1 - lr * weight_decay);
    at::_foreach_add_(parameters, directions, -lr);
    at::_foreach_lerp_(averages, gradients, 1 - beta2_);
  }

  double beta1_, beta2_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lion(const OptimizerConfig& config) {
  return std::make_unique<Lion>(config);
}

}  // namespace zoo
