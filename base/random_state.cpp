#include "base/random_state.h"

#include <mutex>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

namespace zoo {
namespace {

void set_generator_state(c10::Device device, const torch::Tensor& state) {
  if (!state.defined()) return;
  auto generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

torch::Tensor random_state(c10::Device device) {
  if (device.is_cpu()) return {};
  auto generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

RandomStateScope::RandomStateScope(c10::Device device, const torch::Tensor& state)
    : device_(device), former_(random_state(device)) {
  set_generator_state(device_, state);
}

// The former state was read from the same device, so setting it does not throw.
// NOLINTNEXTLINE(bugprone-exception-escape)
RandomStateScope::~RandomStateScope() { set_generator_state(device_, former_); }

}  // namespace zoo
