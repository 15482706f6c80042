#include "base/late_numbers.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {

LateNumbers::LateNumbers(const torch::Tensor& numbers) {
  const torch::NoGradGuard no_grad;
  const auto device = numbers.device();
  if (device.is_cpu()) {
    host_ = numbers.clone();  // the next step may overwrite them
    return;
  }
  // Without pinned memory the copy would wait for the device.
  host_ = torch::empty(numbers.sizes(), numbers.options().device(torch::kCPU).pinned_memory(true));
  host_.copy_(numbers, /*non_blocking=*/true);
  is_there_ = std::make_unique<c10::Event>(device.type());
  is_there_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

std::vector<double> LateNumbers::read() const {
  if (is_there_) is_there_->synchronize();
  const auto numbers = host_.to(torch::kDouble);
  const double* const data = numbers.const_data_ptr<double>();
  return {data, data + numbers.numel()};
}

}  // namespace zoo
