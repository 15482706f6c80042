#pragma once
// Where tensors live.

#include <array>
#include <cstdint>
#include <string_view>

#include <c10/core/Device.h>

namespace zoo {

/// Reads auto (a GPU if there is one, else the CPU), cpu, cuda or cuda:N. Without N, the GPU is number `gpu`.
/// Throws UsageError for another word, SystemError for a missing GPU.
c10::Device parse_device(std::string_view text, int64_t gpu = 0);

/// Waits until `device` has finished all submitted work. Throws c10::Error if it has failed.
void synchronize(c10::Device device);

/// How a GPU computes products and convolutions of float32 numbers.
///   fp32  as they are
///   tf32  with 10 bits of each number, several times as fast
enum class FloatProducts { fp32, tf32 };
constexpr auto config_names(FloatProducts) { return std::to_array<std::string_view>({"fp32", "tf32"}); }

/// For the whole process. LibTorch's own default is tf32 for convolutions.
void set_float_products(FloatProducts products);

}  // namespace zoo
