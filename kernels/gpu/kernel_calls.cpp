#include "kernels/gpu/kernel_calls.h"

#include <algorithm>
#include <limits>

#include <c10/util/accumulate.h>
#include <torch/utils.h>

namespace zoo {

bool has_kernels(torch::ScalarType type) {
  return type == torch::kFloat || type == torch::kBFloat16 || type == torch::kHalf;
}

std::string name_of_type(torch::ScalarType type) {
  return type == torch::kFloat ? "float" : type == torch::kHalf ? "half" : "bf16";
}

void* data_of(const torch::Tensor& tensor) {
  return tensor.defined() ? const_cast<void*>(tensor.const_data_ptr()) : nullptr;
}

torch::Tensor in_packs(const torch::Tensor& x) {
  constexpr uintptr_t pack_bytes = 16;
  const auto dense = x.contiguous();
  return reinterpret_cast<uintptr_t>(dense.const_data_ptr()) % pack_bytes == 0 ? dense : dense.clone();
}

torch::Tensor drawn_seed(c10::Device device) {
  return torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::dtype(torch::kLong).device(device));
}

LaunchSize launch_size_for(int64_t n) {
  constexpr int64_t most_blocks = 4096;  // more than a card has room for at once
  return {.blocks = std::min((n + kBlockThreads - 1) / kBlockThreads, most_blocks), .threads = kBlockThreads};
}

void keep_program(torch::autograd::AutogradContext& context, const KernelProgram& program) {
  context.saved_data["program"] = reinterpret_cast<int64_t>(&program);
}

const KernelProgram& kept_program(torch::autograd::AutogradContext& context) {
  return *reinterpret_cast<const KernelProgram*>(context.saved_data["program"].toInt());
}

torch::Tensor wave(at::IntArrayRef sizes, double step, c10::Device device) {
  const int64_t n = c10::multiply_integers(sizes);
  return torch::arange(n, torch::dtype(torch::kFloat).device(device)).mul_(step).sin_().view(sizes);
}

bool is_near(const torch::Tensor& found, const torch::Tensor& wanted, double tolerance) {
  const auto numbers = wanted.to(torch::kFloat);
  return (found.to(torch::kFloat) - numbers).norm().item<double>() <=
         tolerance * (numbers.norm().item<double>() + 1);
}

}  // namespace zoo
