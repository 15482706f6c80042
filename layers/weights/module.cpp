#include "layers/weights/module.h"

#include <mutex>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/utils.h>

#include "layers/weights/construction.h"

namespace zoo {
namespace {

/// Restores the state of LibTorch's default generator on the CPU, from which constructors draw weights.
class RandomStateGuard {
 public:
  RandomStateGuard() : generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~RandomStateGuard() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  at::Generator generator_;
  torch::Tensor state_;
};

/// The tensors keep their identity, because members of modules refer to them.
template <class Tensors>
void copy_tensors(const Tensors& to, const Tensors& from, const std::optional<torch::Device>& device) {
  TORCH_CHECK(to.size() == from.size(), "a copy has ", to.size(), " tensors in place of ", from.size(),
              ": fresh() must construct the same module");
  for (const auto& item : from) {
    auto* const target = to.find(item.key());
    const auto& source = item.value();
    TORCH_CHECK(target && target->sizes() == source.sizes(), item.key(),
                " differs in a copy: fresh() must construct the same module");
    torch::Tensor tensor = *target;
    tensor.requires_grad_(false);
    tensor.set_data(source.detach().to(device.value_or(source.device()), source.scalar_type(),
                                       /*non_blocking=*/false, /*copy=*/true));
    tensor.requires_grad_(source.requires_grad());
  }
}

}  // namespace

std::shared_ptr<torch::nn::Module> Module::clone(const std::optional<torch::Device>& device) const {
  const torch::NoGradGuard no_grad;
  const RandomStateGuard guard;  // modules of programs may draw numbers as they like
  const ConstructionScope scope(Construction::uninitialized);
  auto copy = fresh(device);
  copy_state(*copy, *this, device);
  return copy;
}

std::shared_ptr<torch::nn::Module> Module::fresh(const std::optional<torch::Device>&) const {
  TORCH_CHECK(false, name(), " cannot be cloned by itself: it does not implement fresh()");
}

void Module::take_settings(const torch::nn::Module&) {}

void Module::copy_state(torch::nn::Module& to, const torch::nn::Module& from,
                        const std::optional<torch::Device>& device) {
  if (auto* const ours = dynamic_cast<Module*>(&to)) ours->take_settings(from);
  to.train(from.is_training());  // of submodules, too, which then take their own mode
  copy_tensors(to.named_parameters(/*recurse=*/false), from.named_parameters(/*recurse=*/false), device);
  copy_tensors(to.named_buffers(/*recurse=*/false), from.named_buffers(/*recurse=*/false), device);
  const auto parts = to.named_children();
  for (const auto& part : from.named_children()) {
    const auto* const target = parts.find(part.key());
    TORCH_CHECK(target, part.key(), " is missing in a copy: fresh() must construct the same module");
    copy_state(**target, *part.value(), device);
  }
}

// A torch::nn::Cloneable that has this module as a part calls this to copy the part.
void Module::clone_(torch::nn::Module& other, const std::optional<torch::Device>& device) {
  const torch::NoGradGuard no_grad;
  copy_state(*this, other, device);
}

}  // namespace zoo
