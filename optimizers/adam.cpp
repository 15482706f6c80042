// AdamW and Adam.

#include "kernels/gpu/optimizer_kernel.h"
#include "optimizers/library_rules.h"

namespace zoo {
namespace {

enum class WeightDecay { decoupled, l2 };

class Adam final : public UpdateRule {
 public:
  Adam(const OptimizerConfig& config, WeightDecay weight_decay)
      : beta1_(config.betas.at(0)),
        beta2_(config.betas.at(1)),
        eps_(config.eps),
        weight_decay_(weight_decay) {}

  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    return {{"exp_avg", at::zeros_like(parameter)},
            {"exp_avg_sq", at::zeros_like(parameter)},
            {"step", at::zeros({}, parameter.options().dtype(torch::kFloat))}};
  }

  bool update_in_one_pass(const ParameterGroup& group, double lr) const override {
    const auto rule = weight_decay_ == WeightDecay::decoupled ? StepRule::adamw : StepRule::adam;
    const bool is_done = gpu_step({.rule = rule,
                                   .lr = lr,
                                   .weight_decay = group.weight_decay,
                                   .beta1 = beta1_,
                                   .beta2 = beta2_,
                                   .eps = eps_},
                                  {.parameters = group.parameters,
                                   .gradients = group.gradients,
                                   .first = group.state[0],
                                   .second = group.state[1],
                                   .n_steps = group.state[2],
                                   .rounded = group.rounded});
    if (is_done) at::_foreach_add_(group.state[2], 1);
    return is_done;
  }

  void update(const ParameterGroup& group, double lr) const override {
    const auto& steps = group.state[2];
    at::_foreach_add_(steps, 1);
    const auto call = [&](auto kernel) {
      kernel(group.parameters, group.gradients, group.state[0], group.state[1],
             /*max_exp_avg_sqs=*/at::TensorList{}, steps, lr, beta1_, beta2_, group.weight_decay, eps_,
             /*amsgrad=*/false, /*maximize=*/false);
    };
    if (weight_decay_ == WeightDecay::decoupled) {
      call([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    } else {
      call([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    }
  }

 private:
  double beta1_, beta2_, eps_;
  WeightDecay weight_decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adamw(const OptimizerConfig& config) {
  return std::make_unique<Adam>(config, WeightDecay::decoupled);
}

std::unique_ptr<UpdateRule> make_adam(const OptimizerConfig& config) {
  return std::make_unique<Adam>(config, WeightDecay::l2);
}

}  // namespace zoo
