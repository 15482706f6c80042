#pragma once
// Copies from the host's memory to a device's for which nobody waits. base/late_numbers.h is the way back.

#include <torch/types.h>

namespace zoo {

/// `host` on a device. The copy takes its place among the work of the current stream; the host does not wait.
torch::Tensor sent(const torch::Tensor& host, torch::Device device);
/// The same into memory of the device.
void send(const torch::Tensor& host, const torch::Tensor& to);

}  // namespace zoo
