#pragma once
// The formats in which GGUF stores numbers: plain ones, and blocks of small integers with a scale
// (https://github.com/ggml-org/ggml, ggml-quants.c).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <torch/types.h>

namespace zoo {

struct BlockType {
  uint32_t id;            // in the file
  std::string_view name;  // as ggml calls it
  int64_t elements;       // of a block
  size_t bytes;           // of a block
  /// Writes the numbers of whole blocks. Null for numbers that are stored as they are.
  void (*decode)(std::span<const std::byte> blocks, std::span<float> to);
  /// Writes whole blocks of numbers. Null for numbers that are stored as they are, and for formats that are
  /// only read.
  void (*encode)(std::span<const float> numbers, std::span<std::byte> to);
  /// The type in which a tensor is read: as it is stored, or float32 for most blocks.
  torch::ScalarType type;
};

/// Nothing for a format that is not supported.
const BlockType* find_block_type(uint32_t id);

/// The format in which plain numbers of a type are stored: float32, float16 or bfloat16, and float32 for
/// others.
const BlockType& plain_block_type(torch::ScalarType type);
/// Q4_0: 32 numbers of 4 bits with a scale.
const BlockType& q4_0_block_type();
/// Q8_0: 32 numbers of 8 bits with a scale.
const BlockType& q8_0_block_type();

/// All formats.
std::span<const BlockType> block_types();

}  // namespace zoo
