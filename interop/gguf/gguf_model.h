#pragma once
// A GGUF file as a directory in Hugging Face's form would say the same: config.json, tokenizer.json and
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

/// Opens a file of one of gguf_architectures(); reads no weights yet. Throws CheckpointError, which names the
/// file and what in it is not supported.
GgufModel open_gguf(const std::filesystem::path& path);

/// The files of its tokenizer alone, of whatever architecture it is. Throws CheckpointError likewise.
std::map<std::string, std::string> gguf_tokenizer(const std::filesystem::path& path);

}  // namespace zoo
