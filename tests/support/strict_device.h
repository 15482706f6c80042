#pragma once
// A device for tests of what only a GPU would show. Its memory and its kernels are the processor's, its rules
// are those of CUDA. It takes the place of a device that this LibTorch has no kernels for, MTIA.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include <torch/types.h>

namespace zoo::testing {

/// The device. The first call registers it with LibTorch; it comes before the first backward pass of the
/// process. What an operation on it refuses, CUDA refuses, too:
///   - tensors of the processor beside its own, except numbers without dimensions
///   - gradients of another type than CUDA's kernels take, products of integers
///   - in a graph (training/step_graph.h): to wait for the device, and to copy to or from it
/// Its logarithm rounds in another way than the processor's. Nobody but its kernels may read its memory: its
/// tensors have addresses at which there is nothing. For mixed precision LibTorch has the same lists of
/// operations for MTIA and for CUDA.
torch::Device strict_device();

/// A piece of memory of more than `bytes` fails, as on a GPU whose memory is full. Nothing: no limit.
void limit_strict_memory(std::optional<size_t> bytes);

/// Runs a kernel that is no operation of LibTorch, or records it. It finds the device's memory at
/// address_on_the_processor().
void start_on_strict_device(const std::string& name, std::function<void()> kernel);
void* address_on_the_processor(void* address);

/// From now on the device fails in whatever it is asked to do, as a GPU after a failed assertion.
void fail_strict_device();

}  // namespace zoo::testing
