#pragma once
// The files of a directory in Hugging Face's form: a download, a snapshot in the Hub's cache, or what
// save_pretrained() of transformers wrote. It may come from a stranger: nothing outside of it is read.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/tensor_source.h"

namespace zoo {

/// Whether there is a config.json in it, and no config.yaml, which makes a directory a run; or whether it is
/// an adapter or a file of weights, which stands for such a directory (foreign_source.h).
bool is_foreign(const std::filesystem::path& dir);

/// Whether it holds an adapter of the library PEFT, and no whole model.
bool is_adapter(const std::filesystem::path& dir);

/// Whether a file's name, or its beginning, is that of weights: GGUF, .safetensors, .pt, .pth, .ckpt, or a
/// .bin that is no text.
bool is_file_of_weights(const std::filesystem::path& path);

/// Whether it is the name of something in a directory: not empty, ".", ".." or a path.
bool is_plain_name(const std::string& name);

/// Whether the directory has a file of this name, or in a folder of it: "1_Pooling/config.json".
bool has_foreign_file(const std::filesystem::path& dir, const std::string& name);

/// The file that `name` leads to. The files of a snapshot in the Hub's cache are links to the folder blobs
/// beside the folder of the snapshots; other links may not leave the directory. Throws CheckpointError: it
/// leads elsewhere, there is none, or `name` is neither a plain name nor one in a folder with a plain name.
std::filesystem::path foreign_file(const std::filesystem::path& dir, const std::string& name);

/// The most bytes of a file that is not one of weights.
inline constexpr int64_t kMostForeignBytes = int64_t{64} << 20;

/// The content of a file. Throws CheckpointError as foreign_file(), and if it is larger than
/// kMostForeignBytes or cannot be read.
std::string read_foreign_file(const std::filesystem::path& dir, const std::string& name);

/// The value of a JSON text from the file `path`. Throws CheckpointError, which names the file.
nlohmann::json parse_foreign_json(const std::filesystem::path& path, const std::string& text);

/// The small files that belong to a model besides its weights: tokenizer, configuration, chat template, by
/// name.
std::map<std::string, std::string> read_small_files(const std::filesystem::path& dir);
/// Those of them that the tokenizer does not read; the others are not opened.
std::map<std::string, std::string> other_small_files(const std::filesystem::path& dir);

/// The tensors of a file of safetensors, if its name says so, or else of torch.save(). Throws
/// CheckpointError.
std::shared_ptr<const TensorSource> open_tensors_of_file(const std::filesystem::path& path);

/// The tensors of model.safetensors or else of pytorch_model.bin, or of the files that
/// model.safetensors.index.json or pytorch_model.bin.index.json lists. Throws CheckpointError: there are none
/// (says what else is there, and what to do with it), a file is missing or damaged, a tensor is in two files,
/// or file and index differ.
std::shared_ptr<const TensorSource> open_foreign_tensors(const std::filesystem::path& dir);

}  // namespace zoo
