#pragma once
// What calls of our kernels for GPUs share.

#include <cstdint>
#include <string>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

/// Threads of a block, as the texts have it.
constexpr int64_t kBlockThreads = 256;
/// Threads of a warp.
constexpr int64_t kWarpThreads = 32;

/// Whether the kernels have a function for numbers of this type: float, bfloat16 and half.
bool has_kernels(torch::ScalarType type);
/// "float", "bf16", "half", as in the names of functions.
std::string name_of_type(torch::ScalarType type);

/// The argument for a tensor; null for one that is not defined.
void* data_of(const torch::Tensor& tensor);

/// Elements that share a counter of random numbers, and that a thread takes at once (gpu/dropout_numbers.cu).
constexpr int64_t kDroppedTogether = 8;
/// x without gaps, from a multiple of 16 bytes on, as threads that take several numbers at once read it.
torch::Tensor in_packs(const torch::Tensor& x);
/// A seed (1) int64 for dropout, drawn on the device from its default generator of LibTorch, so that recorded
/// steps draw others each time.
torch::Tensor drawn_seed(c10::Device device);

/// The size of a call whose threads take turns at `n` things.
LaunchSize launch_size_for(int64_t n);

/// Keeps the program of a forward pass for the backward pass, which it must outlive.
void keep_program(torch::autograd::AutogradContext& context, const KernelProgram& program);
const KernelProgram& kept_program(torch::autograd::AutogradContext& context);

/// Numbers between -1 and 1 to compare kernels with: sines of multiples of `step`, float.
torch::Tensor wave(at::IntArrayRef sizes, double step, c10::Device device);
/// Whether tensors are the same to `tolerance` of the norm of `wanted`, or of 1 more than it. NaN is never.
bool is_near(const torch::Tensor& found, const torch::Tensor& wanted, double tolerance);

}  // namespace zoo
