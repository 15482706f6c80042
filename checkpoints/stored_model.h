#pragma once
// A trained model on the disk, before it is built: a run of ours, a directory in Hugging Face's form, a GGUF
// file, or a file of weights. All commands that use a trained model open it here, so that they take all of
// these.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "io/tensor_source.h"
#include "tasks/experiment.h"
#include "tasks/task.h"

namespace zoo {

struct StoredModel {
  std::unique_ptr<Task> task;  // with configuration and vocabulary
  /// The weights by the names of our modules, maybe in other types; nothing is read yet.
  std::shared_ptr<const TensorSource> tensors;
};

/// Whether a path that the user names stands for a stored model and not for a configuration: a directory or a
/// file of weights, whatever is in it.
bool names_stored_model(const std::filesystem::path& path);

/// Advice for the case that there is no model `name`: "zoo train makes one", or, if the name is like those of
/// the Hub, how to get it from there.
std::string how_to_get_model(const std::filesystem::path& name);

/// The run that `dir` is a checkpoint of, if it is RUN/checkpoints/step-N or RUN/checkpoints/last. A
/// checkpoint is opened as its run with other weights.
std::optional<std::filesystem::path> run_of_checkpoint(const std::filesystem::path& dir);

/// Whether `dir` holds a stored model.
bool is_stored_model(const std::filesystem::path& dir);

/// The configuration alone. Throws CheckpointError: the directory holds no model, or its configuration is
/// damaged or not supported.
Experiment read_stored_experiment(const std::filesystem::path& dir);

/// Opens all parts. Throws CheckpointError: also if files are missing or damaged, or if the weights are of
/// another architecture than the configuration says. (Of a run only the size of the model is compared;
/// load_tensors() compares the rest.)
/// `base`: the model that an adapter of PEFT changes, in place of the one that its adapter_config.json names.
StoredModel open_stored_model(const std::filesystem::path& dir, const std::filesystem::path& base = {});

/// From so many bytes on, reading weights takes more than a few seconds on a slow disk.
inline constexpr int64_t kLargeWeights = 1'000'000'000;

/// "reading 5.1 GB of weights from DIR", if a stored model has at least so many bytes of weights. Nothing if
/// it cannot be read.
std::optional<std::string> weights_note(const std::filesystem::path& dir,
                                        int64_t least_bytes = kLargeWeights);

/// Compares a configuration with stored weights, before a model is built: a few bytes of text can
/// describe a model of any size. Throws CheckpointError if the model would be much larger than the weights.
void check_model_size(const TensorSource& source, const Task& task);

}  // namespace zoo
