// AdamW and Adam.

#include "training/optimizers/update_rule.h"

namespace zoo {
namespace {

enum class Decay { apart, in_gradient };

class Adam final : public UpdateRule {
 public:
  Adam(const OptimizerConfig& config, Decay decay)
      : beta1_(config.betas.at(0)), beta2_(config.betas.at(1)), eps_(config.eps), decay_(decay) {}

  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    return {{"exp_avg", at::zeros_like(parameter)},
            {"exp_avg_sq", at::zeros_like(parameter)},
            {"step", at::zeros({}, parameter.options().dtype(torch::kFloat))}};
  }

  void update(const ParameterGroup& group, double lr) const override {
    const auto& steps = group.state[2];
    at::_foreach_add_(steps, 1);
    const auto call = [&](auto kernel) {
      kernel(group.parameters, group.gradients, group.state[0], group.state[1],
             /*max_exp_avg_sqs=*/at::TensorList{}, steps, lr, beta1_, beta2_, group.weight_decay, eps_,
             /*amsgrad=*/false, /*maximize=*/false);
    };
    if (decay_ == Decay::apart) {
      call([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    } else {
      call([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    }
  }

 private:
  double beta1_, beta2_, eps_;
  Decay decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adamw(const OptimizerConfig& config) {
  return std::make_unique<Adam>(config, Decay::apart);
}

std::unique_ptr<UpdateRule> make_adam(const OptimizerConfig& config) {
  return std::make_unique<Adam>(config, Decay::in_gradient);
}

}  // namespace zoo
