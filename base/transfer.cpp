#include "base/transfer.h"

namespace zoo {

torch::Tensor sent(const torch::Tensor& host, torch::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}

void send(const torch::Tensor& host, const torch::Tensor& to) {
  to.copy_(to.is_cpu() ? host : host.pin_memory(), /*non_blocking=*/true);
}

}  // namespace zoo
