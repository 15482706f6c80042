#pragma once
// Writes GGUF files (io/formats/gguf_file.h).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/formats/block_types.h"
#include "io/tensor_source.h"

namespace zoo {

/// The value of a key, in the type in which it is stored.
using GgufValue = std::variant<uint32_t, float, bool, std::string, std::vector<std::string>,
                               std::vector<int32_t>, std::vector<float>, std::vector<uint8_t>>;
/// Keys in the order of the file.
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// What GgufFile::metadata() reads of these keys.
nlohmann::json as_json(const GgufMetadata& metadata);

/// Writes a file of version 3 with all tensors of a source, and flushes it. One tensor is in memory at a
/// time. `format_of`: how a tensor is stored; plain, or with BlockType::encode. Not atomic
/// (replace_file_atomically()). Throws SystemError, and what the source throws.
void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata, const TensorSource& tensors,
                const std::function<const BlockType&(const std::string& name)>& format_of);

}  // namespace zoo
