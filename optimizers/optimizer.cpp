#include "optimizers/optimizer.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/tensor_lists.h"
#include "optimizers/library_rules.h"
#include "optimizers/optimizer_types.h"

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

bool is_decayed(ParameterRole role, DecayedParameters decayed) {
  switch (decayed) {
    case DecayedParameters::matrices:
      return role != ParameterRole::vector;
    case DecayedParameters::matrices_without_embeddings:
      return role != ParameterRole::vector && role != ParameterRole::embedding;
    case DecayedParameters::all:
      return true;
  }
  return true;
}

void renew_copies(const ParameterGroup& group) {
  Tensors copies, parameters;
  for (size_t i = 0; i < group.rounded.size(); ++i) {
    if (!group.rounded[i].defined()) continue;
    copies.push_back(group.rounded[i]);
    parameters.push_back(group.parameters[i]);
  }
  if (!copies.empty()) at::_foreach_copy_(copies, parameters);
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const std::vector<Parameter>& parameters) {
  const auto& type = optimizer_types().at(config.type);
  const auto add_groups = [&](const std::shared_ptr<const UpdateRule>& rule, double lr_factor) {
    for (const double decay : {config.weight_decay, 0.0}) groups_.push_back({rule, lr_factor, decay, {}});
  };
  add_groups(type.make(config), 1);
  // One schedule for both: the ratio of the two rates is constant.
  if (type.adamw_lr) add_groups(make_adamw(config), type.adamw_lr(config) / config.lr);

  const size_t first_own = groups_.size();
  for (const auto& parameter : parameters) {
    const size_t first = type.adamw_lr && parameter.role != ParameterRole::hidden_matrix ? 2 : 0;
    const size_t usual = first + (is_decayed(parameter.role, config.decayed) ? 0 : 1);
    auto& group = groups_[group_for(parameter, usual, first_own)];
    group.slots.push_back({parameter, group.rule->initial_state(parameter.tensor.detach()), {}});
  }
}

/// `usual`: the group of parameters like this one without values of their own. Groups for such values begin
/// at `first_own`.
size_t Optimizer::group_for(const Parameter& parameter, size_t usual, size_t first_own) {
  if (parameter.lr_factor == 1 && !parameter.weight_decay) return usual;
  const auto rule = groups_[usual].rule;
  const double lr_factor = groups_[usual].lr_factor * parameter.lr_factor,
               decay = parameter.weight_decay.value_or(groups_[usual].weight_decay);
  for (size_t i = first_own; i < groups_.size(); ++i) {
    if (groups_[i].rule == rule && groups_[i].lr_factor == lr_factor && groups_[i].weight_decay == decay)
      return i;
  }
  groups_.push_back({rule, lr_factor, decay, {}});
  return groups_.size() - 1;
}

void Optimizer::step(double lr) {
  const torch::NoGradGuard no_grad;
  for (const auto& group : groups_) {
    ParameterGroup present{
        .parameters = {}, .gradients = {}, .state = {}, .weight_decay = group.weight_decay};
    for (const auto& [parameter, state, rounded] : group.slots) {
      if (!parameter.tensor.grad().defined()) continue;
      present.parameters.push_back(parameter.tensor);
      present.gradients.push_back(parameter.tensor.grad());
      present.stacked_rows.push_back(parameter.stacked_rows);
      present.rounded.push_back(rounded);
      present.state.resize(state.size());
      for (size_t i = 0; i < state.size(); ++i) present.state[i].push_back(state[i].tensor);
    }
    if (present.parameters.empty() || group.rule->update_in_one_pass(present, lr * group.lr_factor)) continue;
    group.rule->update(present, lr * group.lr_factor);
    renew_copies(present);
  }
}

void Optimizer::keep_copy(const torch::Tensor& parameter, const torch::Tensor& rounded) {
  for (auto& group : groups_) {
    for (auto& slot : group.slots) {
      if (slot.parameter.tensor.is_same(parameter)) slot.rounded = rounded;
    }
  }
}

void Optimizer::zero_grad() {
  for (auto& group : groups_) {
    for (auto& slot : group.slots) slot.parameter.tensor.mutable_grad().reset();
  }
}

Tensors Optimizer::gradients() const {
  Tensors result;
  for (const auto& group : groups_) {
    for (const auto& slot : group.slots) {
      if (const auto& gradient = slot.parameter.tensor.grad(); gradient.defined()) result.push_back(gradient);
    }
  }
  return result;
}

TensorMap Optimizer::state() const {
  TensorMap all;
  for (const auto& group : groups_) {
    for (const auto& [parameter, state, rounded] : group.slots) {
      for (const auto& [name, tensor] : state) {
        if (tensor.defined()) all.emplace(parameter.name + "." + name, tensor);
      }
    }
  }
  return all;
}

torch::Tensor clip_grad_norm(const Tensors& gradients, double max_norm, const ProcessGroup* sharded_over,
                             const Tensors& shared) {
  const torch::NoGradGuard no_grad;
  auto norm = gradients.empty() ? torch::zeros({}) : total_norm(gradients);
  if (sharded_over) {
    auto squared = norm.square();
    sharded_over->all_reduce(squared).wait();
    if (!shared.empty()) squared = squared + total_norm(shared).square();
    norm = squared.sqrt();
  }
  if (max_norm > 0) {
    const auto factor = (max_norm / (norm + 1e-6)).clamp_max(1.0);
    foreach_mul_(gradients, factor);
    foreach_mul_(shared, factor);
  }
  return norm;
}

}  // namespace zoo
