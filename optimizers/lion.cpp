// Lion.

#include "kernels/gpu/optimizer_kernel.h"
#include "optimizers/library_rules.h"

namespace zoo {
namespace {

class Lion final : public UpdateRule {
 public:
  explicit Lion(const OptimizerConfig& config) : beta1_(config.betas.at(0)), beta2_(config.betas.at(1)) {}

  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    return {{"exp_avg", at::zeros_like(parameter)}};
  }

  bool update_in_one_pass(const ParameterGroup& group, double lr) const override {
    return gpu_step({.rule = StepRule::lion,
                     .lr = lr,
                     .weight_decay = group.weight_decay,
                     .beta1 = beta1_,
                     .beta2 = beta2_},
                    {.parameters = group.parameters,
                     .gradients = group.gradients,
                     .first = group.state[0],
                     .rounded = group.rounded});
  }

  /// The signs need memory. To need less than the size of the model, this updates only some values at a time,
  /// enough to keep a GPU busy.
  void update(const ParameterGroup& group, double lr) const override {
    constexpr int64_t at_once = 1 << 22;
    const at::TensorList parameters = group.parameters, gradients = group.gradients, momenta = group.state[0];
    for (size_t begin = 0, end = 0; begin < parameters.size(); begin = end) {
      int64_t values = 0;
      do {
        values += parameters[end++].numel();
      } while (end < parameters.size() && values + parameters[end].numel() <= at_once);
      const size_t count = end - begin;
      update(parameters.slice(begin, count), gradients.slice(begin, count), momenta.slice(begin, count),
             group.weight_decay, lr);
    }
  }

 private:
  void update(at::TensorList parameters, at::TensorList gradients, at::TensorList momenta,
              double weight_decay, double lr) const {
    const auto updates = at::_foreach_lerp(momenta, gradients, 1 - beta1_);
    at::_foreach_sign_(updates);
    if (weight_decay != 0) at::_foreach_mul_(parameters, 1 - lr * weight_decay);
    at::_foreach_add_(parameters, updates, -lr);
    at::_foreach_lerp_(momenta, gradients, 1 - beta2_);
  }

  double beta1_, beta2_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lion(const OptimizerConfig& config) {
  return std::make_unique<Lion>(config);
}

}  // namespace zoo
