#include "kernels/gpu/optimizer_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"
#include "kernels/gpu/optimizer_call.h"

namespace zoo::embedded {
extern const char optimizer_call_cuda[];
extern const char optimizer_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

static_assert(sizeof(OptimizerCall) <= 4096, "the arguments of a kernel have 4 KB");

using StepList = std::vector<torch::Tensor>;

std::string function_for(StepRule rule) {
  constexpr auto names = std::to_array({"adamw", "adam", "lion", "sgd"});
  return std::string("optimizer_") + names.at(static_cast<size_t>(rule));
}

float* step_data(const StepList& list, size_t i) {
  return list.empty() ? nullptr : static_cast<float*>(data_of(list[i]));
}

OptimizerCall call_for(const StepNumbers& numbers) {
  OptimizerCall call;
  call.lr = static_cast<float>(numbers.lr);
  call.weight_decay = static_cast<float>(numbers.weight_decay);
  call.beta1 = static_cast<float>(numbers.beta1);
  call.beta2 = static_cast<float>(numbers.beta2);
  call.log_beta1 = static_cast<float>(std::log(numbers.beta1));
  call.log_beta2 = static_cast<float>(std::log(numbers.beta2));
  call.eps = static_cast<float>(numbers.eps);
  return call;
}

bool is_float_on(const torch::Tensor& tensor, const torch::Tensor& parameter) {
  return tensor.scalar_type() == torch::kFloat && tensor.device() == parameter.device() &&
         tensor.sizes() == parameter.sizes();
}

bool is_copy_of(const torch::Tensor& copy, const torch::Tensor& parameter) {
  return copy.scalar_type() != torch::kFloat && has_kernels(copy.scalar_type()) && copy.is_contiguous() &&
         copy.device() == parameter.device() && copy.sizes() == parameter.sizes();
}

bool step_serves(const SteppedTensors& tensors) {
  if (tensors.parameters.empty() || !has_kernels(tensors.parameters.front().device())) return false;
  for (size_t i = 0; i < tensors.parameters.size(); ++i) {
    const auto& parameter = tensors.parameters[i];
    const auto suits = [&](const StepList& list) {
      return list.empty() || (is_float_on(list[i], parameter) && list[i].is_contiguous());
    };
    const bool has_copy = !tensors.rounded.empty() && tensors.rounded[i].defined();
    if (parameter.device() != tensors.parameters.front().device() || !suits(tensors.parameters) ||
        !suits(tensors.first) || !suits(tensors.second) || !is_float_on(tensors.gradients[i], parameter) ||
        (has_copy && !is_copy_of(tensors.rounded[i], parameter)))
      return false;
  }
  return true;
}

/// Parameters of one block, of several, and of as many numbers as blocks have, more of them than a call
/// takes.
struct ComparedTensors {
  StepList parameters, gradients, first, second, n_steps, rounded;

  explicit ComparedTensors(c10::Device device, torch::ScalarType type) {
    for (int64_t i = 0; i < kOptimizerTensors + 3; ++i) {
      const int64_t n = i == 1 ? 2 * kOptimizerNumbers + 5 : i == 2 ? kOptimizerNumbers : 3 + i;
      const double step = 0.01 * static_cast<double>(i);
      parameters.push_back(wave({n}, 0.37 + step, device));
      gradients.push_back(wave({n}, 0.53 + step, device));
      first.push_back(wave({n}, 0.71 + step, device) * 0.1);
      second.push_back(wave({n}, 0.91 + step, device).square());
      n_steps.push_back(torch::full({}, static_cast<double>(i + 1), parameters.back().options()));
      rounded.push_back(i % 2 == 0 ? torch::zeros_like(parameters.back(), type) : torch::Tensor());
    }
  }
  StepList all() const {
    auto result = parameters;
    for (const auto* const list : {&first, &second}) result.insert(result.end(), list->begin(), list->end());
    return result;
  }
};

void step_by_torch(const StepNumbers& numbers, const ComparedTensors& of) {
  const auto adam = [&](auto step) {
    const auto n_steps = at::_foreach_add(of.n_steps, 1);
    step(of.parameters, of.gradients, of.first, of.second, at::TensorList{}, n_steps, numbers.lr,
         numbers.beta1, numbers.beta2, numbers.weight_decay, numbers.eps, /*amsgrad=*/false,
         /*maximize=*/false);
  };
  switch (numbers.rule) {
    case StepRule::adamw:
      return adam([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    case StepRule::adam:
      return adam([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    case StepRule::lion:
      for (size_t i = 0; i < of.parameters.size(); ++i) {
        const auto update = of.first[i].lerp(of.gradients[i], 1 - numbers.beta1).sign();
        of.parameters[i].mul_(1 - numbers.lr * numbers.weight_decay).sub_(update, numbers.lr);
        of.first[i].lerp_(of.gradients[i], 1 - numbers.beta2);
      }
      return;
    case StepRule::sgd:
      return at::_fused_sgd_(of.parameters, of.gradients, of.first, numbers.weight_decay, numbers.beta1,
                             numbers.lr, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                             /*is_first_step=*/false);
  }
}

bool steps_agree(const KernelProgram& program, c10::Device device) {
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    for (const auto rule : {StepRule::adamw, StepRule::adam, StepRule::lion, StepRule::sgd}) {
      const StepNumbers numbers = {
          .rule = rule, .lr = 0.01, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6};
      const ComparedTensors found(device, type), wanted(device, type);
      const bool is_adam = rule == StepRule::adamw || rule == StepRule::adam;
      step_by(program, numbers,
              {.parameters = found.parameters,
               .gradients = found.gradients,
               .first = found.first,
               .second = is_adam ? found.second : StepList(),
               .n_steps = is_adam ? found.n_steps : StepList(),
               .rounded = found.rounded});
      step_by_torch(numbers, wanted);
      const auto ours = found.all(), theirs = wanted.all();
      for (size_t i = 0; i < ours.size(); ++i)
        if (!is_near(ours[i], theirs[i], 1e-5)) return false;
      for (size_t i = 0; i < found.rounded.size(); ++i) {
        if (found.rounded[i].defined() && !torch::equal(found.rounded[i], found.parameters[i].to(type)))
          return false;
      }
    }
  }
  return true;
}

}  // namespace

void step_by(const KernelProgram& program, const StepNumbers& numbers, const SteppedTensors& tensors) {
  const size_t n = tensors.parameters.size();
  StepList gradients;  // without gaps
  for (const auto& gradient : tensors.gradients) gradients.push_back(gradient.contiguous());
  for (size_t begin = 0; begin < n; begin += kOptimizerTensors) {
    auto call = call_for(numbers);
    int64_t n_blocks = 0;
    for (size_t i = begin; i < std::min(n, begin + kOptimizerTensors); ++i) {
      auto& tensor = call.tensors[call.n_tensors];
      const int64_t size = tensors.parameters[i].numel();
      if (size == 0) continue;
      tensor = {.parameters = step_data(tensors.parameters, i),
                .gradients = step_data(gradients, i),
                .first = step_data(tensors.first, i),
                .second = step_data(tensors.second, i),
                .n_steps = step_data(tensors.n_steps, i),
                .n = size,
                .first_block = n_blocks};
      if (!tensors.rounded.empty() && tensors.rounded[i].defined()) {
        tensor.rounded = static_cast<unsigned short*>(data_of(tensors.rounded[i]));
        call.rounded =
            tensors.rounded[i].scalar_type() == torch::kHalf ? RoundedType::half : RoundedType::bf16;
      }
      ++call.n_tensors;
      n_blocks += (size + kOptimizerNumbers - 1) / kOptimizerNumbers;
    }
    if (n_blocks == 0) continue;
    program.launch(function_for(numbers.rule), {.blocks = n_blocks, .threads = kBlockThreads}, {&call});
  }
}

bool gpu_step(const StepNumbers& numbers, const SteppedTensors& tensors) {
  if (!step_serves(tensors)) return false;
  static CheckedProgram programs("steps of optimisers", "optimizer",
                                 std::string(embedded::optimizer_call_cuda) + embedded::optimizer_cuda,
                                 steps_agree);
  const auto* const program = programs.on(tensors.parameters.front().device());
  if (program == nullptr) return false;
  step_by(*program, numbers, tensors);
  return true;
}

}  // namespace zoo
