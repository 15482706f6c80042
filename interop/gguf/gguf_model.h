#pragma once
// Gives a GGUF file the form of a Hugging Face directory: config.json, tokenizer.json and
// tokenizer_config.json made from its keys, and its tensors under the names of transformers. So everything
// that opens foreign directories opens GGUF files, too.

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "io/tensor_source.h"

namespace zoo {

struct GgufModel {
  std::map<std::string, std::string> files;  // by the names of transformers
  std::shared_ptr<const TensorSource> tensors;
};

/// Opens a file of one of gguf_architectures(). Reads no weights, except the divisors of rotary positions
/// and, where an architecture has the output also if it is tied, it and the embeddings, to compare them.
/// Throws CheckpointError, which names the file and what in it is not supported.
GgufModel open_gguf(const std::filesystem::path& path);

/// Its config.json alone. Throws CheckpointError likewise.
std::map<std::string, std::string> gguf_config(const std::filesystem::path& path);

/// The files of its tokenizer alone, of whatever architecture it is. Throws CheckpointError likewise.
std::map<std::string, std::string> gguf_tokenizer(const std::filesystem::path& path);

}  // namespace zoo
