#pragma once
// A foreign directory as a task with its configuration and vocabulary, and tensors with our names.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/packed_weights.h"
#include "interop/foreign_families.h"
#include "interop/foreign_tokens.h"
#include "io/tensor_source.h"
#include "tasks/task.h"

namespace zoo {

struct ForeignModel {
  const ForeignFamily* family = nullptr;
  std::unique_ptr<Task> task;
  std::shared_ptr<const TensorSource> tensors;  // with our names and shapes, in the stored types
  int64_t n_adapters = 0;                       // of PEFT in them
};

/// Opens what is_foreign(): a directory with config.json, weights and a tokenizer, a GGUF file, a file of
/// weights; reads no weights yet. Throws CheckpointError, which names the file and what in it is not
/// supported. An adapter is added to its base, with adapted_tensors(). `base`: of an adapter, see
/// open_foreign_source().
ForeignModel open_foreign(const std::filesystem::path& path, const std::filesystem::path& base = {});

/// Reads only the configuration. The experiment has the name of the directory. Throws CheckpointError
/// likewise.
Experiment read_foreign_experiment(const std::filesystem::path& path);

/// What a config.json says.
struct ForeignDescription {
  const ForeignFamily* family = nullptr;
  Experiment experiment;            // with the task of the class that the file names
  std::vector<std::string> labels;  // names of classes
  nlohmann::json config;            // what the file says
  PackedWeights packed;             // how its weights are stored
};

/// `dir`: the experiment gets its name. Throws CheckpointError for what is not
/// known or not supported.
ForeignDescription describe_foreign(ForeignConfig config, const ForeignGeneration& generation,
                                    const std::filesystem::path& dir);

/// The tensors of a model with this configuration by their foreign names. `config`: config.json, which
/// describes the same model.
TensorMapping tensor_mapping(const ForeignFamily& family, const Experiment& experiment,
                             const ModelPurpose& purpose, const nlohmann::json& config);

/// Corrects what only the tensors tell: whether the output is the matrix of the embeddings, whether a body
/// has a pooler, and whether a model of proteins tells contacts. Returns whether something changed.
bool follow_tensors(const TensorMapping& mapping, const std::shared_ptr<const TensorSource>& tensors,
                    const ModelPurpose& purpose, ModelConfig& model, Compared compared = Compared::values);

}  // namespace zoo
