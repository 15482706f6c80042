#pragma once
// Numbers of a GPU that are read while it already computes the next ones.

#include <memory>
#include <vector>

#include <c10/core/Event.h>
#include <torch/types.h>

namespace zoo {

/// Numbers that a device is making. On the CPU they are there at once.
class LateNumbers {
 public:
  /// `numbers`: (N) float. Copies them as soon as the device has made them; does not wait.
  explicit LateNumbers(const torch::Tensor& numbers);
  /// Waits until they are there, not for any later work of the device.
  std::vector<double> read() const;

 private:
  torch::Tensor host_;
  std::unique_ptr<c10::Event> is_there_;  // null on the CPU
};

}  // namespace zoo
