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
  /// The type of what is read: that of plain numbers, float32 for blocks.
  torch::ScalarType type;
};

/// Nothing for a format that is not supported.
const BlockType* find_block_type(uint32_t id);

/// The names of all formats, for messages.
std::span<const BlockType> block_types();

}  // namespace zoo
