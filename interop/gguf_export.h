#pragma once
// Writes a model as a file that llama.cpp runs.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "interop/foreign_export.h"

namespace zoo {

/// Writes the new file `path`: the model, its tokenizer and its chat template, one tensor in memory at a
/// time. Vectors and tables of positions are float32. Without a `type` matrices keep the types of `tensors`.
/// With q4_0, the matrix whose products are the scores of tokens becomes q8_0. Rows that are no whole blocks
/// become float16. Returns the name of the architecture. Throws, before anything is written, ConfigError if
/// llama.cpp cannot express the model or its tokenizer (says which key or part), UsageError if `path` exists;
/// CheckpointError as the tensors do, SystemError.
std::string export_gguf(const std::filesystem::path& path, const Task& task,
                        const std::shared_ptr<const TensorSource>& tensors,
                        std::optional<ExportedType> type = std::nullopt);

/// Whether an export to this path makes a GGUF file: its name ends so.
bool is_gguf_name(const std::filesystem::path& path);

}  // namespace zoo
