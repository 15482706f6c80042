#pragma once
// The files with which sentence-transformers says how a model makes vectors of texts: modules.json, the
// folders of its modules, sentence_bert_config.json, config_sentence_transformers.json.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <torch/types.h>

#include "tasks/experiment.h"

namespace zoo {

/// The folders that modules.json names, such as "1_Pooling", each the plain name of a folder. Other names are
/// left out: read_sentence_vectors() refuses them.
std::vector<std::string> module_folders(const std::map<std::string, std::string>& files);

/// Sets `embedding` and data.sequence_length of `to` as the files among `files` say; nothing if there is no
/// modules.json. Throws CheckpointError, which names the file in `dir` and its key, for a module or a key
/// that is not known, and for an order of modules that is not supported: a transformer, one pooling, dense
/// maps, and a scaling to norm 1.
void read_sentence_vectors(const std::filesystem::path& dir, const std::map<std::string, std::string>& files,
                           Experiment& to);

/// Takes over to `config`, the value of config.json, how a CrossEncoder of sentence-transformers makes scores
/// of its outputs, if config_sentence_transformers.json says it. Throws CheckpointError as above.
void read_cross_encoder(const std::filesystem::path& dir, const std::map<std::string, std::string>& files,
                        nlohmann::json& config);

/// A text has at most the tokens that its tokenizer's model_max_length says: data.sequence_length of `to`, if
/// its task is not one that writes texts.
void read_tokenizer_length(const std::filesystem::path& dir, Experiment& to);

/// The weights of the dense maps, as float: "0.weight" (out, in), "0.bias" (out), "1.weight", … Throws
/// CheckpointError for weights of another shape.
std::map<std::string, torch::Tensor> read_dense_maps(const std::filesystem::path& dir,
                                                     const std::map<std::string, std::string>& files,
                                                     const EmbeddingConfig& embedding);

/// Writes them into the folders that the modules.json among `files` names, below `dir`.
void write_dense_maps(const std::filesystem::path& dir, const std::map<std::string, std::string>& files,
                      const std::map<std::string, torch::Tensor>& maps);

}  // namespace zoo
