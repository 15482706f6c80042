#pragma once
// What stands for a directory in Hugging Face's form: such a directory, a GGUF file, or a single file of
// weights.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "interop/peft/adapted_tensors.h"
#include "io/tensor_source.h"

namespace zoo {

struct ForeignSource {
  /// Where the files are that are not the weights.
  std::filesystem::path dir;
  /// Where config.json comes from, for messages.
  std::string config_place;
  std::map<std::string, std::string> files = {};  // by the names of transformers
  std::shared_ptr<const TensorSource> tensors = {};
  /// The adapter that changes the tensors, if there is one. `files` then has the config.json of the base,
  /// with the class for the adapter's task.
  std::optional<Adapter> adapter = {};
};

/// Which files are read: config.json and those that are not of the tokenizer, or all and the tensors.
enum class ForeignParts { config, all };

/// Reads the small files and opens the weights, whose numbers are read later. A single file of weights
/// (NAME.pt, NAME.pth, NAME.safetensors …) belongs to the config.json beside it; a checkpoint of nanoGPT
/// needs none. Throws CheckpointError, which says what a file is and what to do.
///
/// An adapter of the library PEFT comes with its base: the directory `base`, or else the one that
/// adapter_config.json names. Throws CheckpointError likewise, and UsageError for a `base` of what is no
/// adapter.
ForeignSource open_foreign_source(const std::filesystem::path& path, ForeignParts parts,
                                  const std::filesystem::path& base = {});

/// Where the tokenizer and the chat template of a foreign model are: its directory, the one of its file of
/// weights, or the base of an adapter that has no tokenizer itself, which may be a GGUF file. Throws as
/// open_foreign_source() for an adapter.
std::filesystem::path place_of_tokenizer(const std::filesystem::path& path,
                                         const std::filesystem::path& base = {});

}  // namespace zoo
