#pragma once
// The formats of the keys and values that a model keeps of the tokens that it has read.

#include <array>
#include <string_view>

namespace zoo {

/// How keys and values are stored:
///   fp32  as the layer computes them
///   bf16  half the memory: 8 bits of each number
///   int8  a quarter of the memory: whole numbers from -127 to 127, and a scale for each vector of a head
enum class CacheFormat { fp32, bf16, int8 };
constexpr auto config_names(CacheFormat) { return std::to_array<std::string_view>({"fp32", "bf16", "int8"}); }

}  // namespace zoo
