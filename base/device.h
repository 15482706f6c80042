#pragma once
// Where tensors live.

#include <cstdint>
#include <string_view>

#include <c10/core/Device.h>

namespace zoo {

/// Reads auto (a GPU if there is one, else the CPU), cpu, cuda or cuda:N. Without N, the GPU is number `gpu`.
/// Throws UsageError for another word, SystemError for a missing GPU.
c10::Device parse_device(std::string_view text, int64_t gpu = 0);

/// Waits until `device` has finished all submitted work.
void synchronize(c10::Device device);

}  // namespace zoo
