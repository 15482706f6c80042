#include "training/optimizer.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config,
                     const torch::OrderedDict<std::string, torch::Tensor>& parameters)
    : config_(config), groups_(2) {
  groups_[0].weight_decay = config.weight_decay;
  for (const auto& item : parameters) {
    const auto& parameter = item.value();
    if (!parameter.requires_grad()) continue;
    Slot slot;
    slot.name = item.key();
    slot.parameter = parameter;
    if (config.type != OptimizerKind::sgd) {
      slot.exp_avg = torch::zeros_like(parameter, torch::MemoryFormat::Preserve).detach();
      slot.exp_avg_sq = torch::zeros_like(slot.exp_avg);
      slot.step = torch::zeros({}, parameter.options().dtype(torch::kFloat).requires_grad(false));
    } else if (config.momentum > 0) {
      slot.momentum_buffer = torch::zeros_like(parameter, torch::MemoryFormat::Preserve).detach();
    }
    const bool decays = config.decay_all || parameter.dim() >= 2;
    groups_[decays ? 0 : 1].slots.push_back(std::move(slot));
  }
}

void Optimizer::step(double lr) {
  const torch::NoGradGuard no_grad;
  for (const auto& group : groups_) {
    if (config_.type == OptimizerKind::sgd) {
      step_sgd(group, lr);
    } else {
      step_adam(group, lr);
    }
  }
}

void Optimizer::step_adam(const Group& group, double lr) {
  Tensors parameters, gradients, exp_avgs, exp_avg_sqs, steps;
  for (const auto& slot : group.slots) {
    if (!slot.parameter.grad().defined()) continue;
    parameters.push_back(slot.parameter);
    gradients.push_back(slot.parameter.grad());
    exp_avgs.push_back(slot.exp_avg);
    exp_avg_sqs.push_back(slot.exp_avg_sq);
    steps.push_back(slot.step);
  }
  if (parameters.empty()) return;
  at::_foreach_add_(steps, 1);
  const auto update = [&](auto kernel) {
    kernel(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/Tensors{}, steps, lr,
           config_.betas[0], config_.betas[1], group.weight_decay, config_.eps, /*amsgrad=*/false,
           /*maximize=*/false);
  };
  if (config_.type == OptimizerKind::adamw) {
    update([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  } else {
    update([](auto&&... arguments) { at::_fused_adam_(arguments...); });
  }
}

void Optimizer::step_sgd(const Group& group, double lr) {
  Tensors parameters, gradients, buffers;
  for (const auto& slot : group.slots) {
    if (!slot.parameter.grad().defined()) continue;
    parameters.push_back(slot.parameter);
    gradients.push_back(slot.parameter.grad());
    if (slot.momentum_buffer.defined()) buffers.push_back(slot.momentum_buffer);
  }
  if (parameters.empty()) return;
  // Buffers start at zero, so that the first step needs no case of its own.
  at::_fused_sgd_(parameters, gradients, buffers, group.weight_decay, config_.momentum, lr, /*dampening=*/0,
                  /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
}

void Optimizer::zero_grad() {
  for (auto& group : groups_) {
    for (auto& slot : group.slots) slot.parameter.mutable_grad().reset();
  }
}

Tensors Optimizer::gradients() const {
  Tensors result;
  for (const auto& group : groups_) {
    for (const auto& slot : group.slots) {
      if (slot.parameter.grad().defined()) result.push_back(slot.parameter.grad());
    }
  }
  return result;
}

TensorMap Optimizer::state() const {
  TensorMap state;
  for (const auto& group : groups_) {
    for (const auto& slot : group.slots) {
      const auto add = [&](const char* what, const torch::Tensor& tensor) {
        if (tensor.defined()) state.emplace(slot.name + "." + what, tensor);
      };
      add("exp_avg", slot.exp_avg);
      add("exp_avg_sq", slot.exp_avg_sq);
      add("step", slot.step);
      add("momentum", slot.momentum_buffer);
    }
  }
  return state;
}

torch::Tensor clip_grad_norm(const Tensors& gradients, double max_norm) {
  const torch::NoGradGuard no_grad;
  if (gradients.empty()) return torch::zeros({});
  const auto norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  if (max_norm > 0) at::_foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp_max(1.0));
  return norm;
}

}  // namespace zoo
