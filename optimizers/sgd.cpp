// Stochastic gradient descent, with or without momentum.

#include "kernels/gpu/optimizer_kernel.h"
#include "optimizers/library_rules.h"

namespace zoo {
namespace {

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const OptimizerConfig& config) : momentum_(config.momentum) {}

  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    if (momentum_ == 0) return {};
    return {{"momentum", at::zeros_like(parameter)}};
  }

  bool update_in_one_pass(const ParameterGroup& group, double lr) const override {
    return gpu_step({.rule = StepRule::sgd, .lr = lr, .weight_decay = group.weight_decay, .beta1 = momentum_},
                    {.parameters = group.parameters,
                     .gradients = group.gradients,
                     .first = group.state.empty() ? std::vector<torch::Tensor>() : group.state[0],
                     .rounded = group.rounded});
  }

  void update(const ParameterGroup& group, double lr) const override {
    const at::TensorList buffers = group.state.empty() ? at::TensorList() : group.state[0];
    // Buffers start at zero, so the first step is not a special case.
    at::_fused_sgd_(group.parameters, group.gradients, buffers, group.weight_decay, momentum_, lr,
                    /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
  }

 private:
  double momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(const OptimizerConfig& config) { return std::make_unique<Sgd>(config); }

}  // namespace zoo
