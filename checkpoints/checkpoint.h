#pragma once
// The files of a run. A checkpoint is a directory that is complete as soon as it is visible:
//
//   RUN/checkpoints/step-N/model.safetensors      weights; with adapters adapter.safetensors instead
//                                                 (checkpoints/base_weights.h)
//                          optimizer.safetensors  state of the optimiser
//                          average.safetensors    moving average of the weights, if one is kept
//                          state.json             TrainingState
//   RUN/checkpoints/last                          symbolic link to the newest
//   RUN/model.safetensors                         the weights that training.best_by selects
//   RUN/failed.txt                                the reason, if training could not go on

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "data/batch_source.h"
#include "io/safetensors.h"
#include "layers/weights/weights.h"
#include "models/precision.h"

namespace zoo {

inline constexpr const char* kFailureFile = "failed.txt";

/// The state of a training except its tensors.
struct TrainingState {
  int64_t step = 0;  // optimiser steps done
  BatchPosition next_batch;
  int64_t tokens = 0;                // read so far
  double flops = 0;                  // of forward and backward passes so far, see layers/weights/cost.h
  double seconds = 0;                // duration of the training so far
  int64_t peak_memory_bytes = 0;     // of tensors so far, see base/tensor_memory.h
  int64_t peak_resident_bytes = 0;   // of the whole process, as the operating system counts
  std::optional<double> best_score;  // of the weights that are kept: training.kept_metric()
  int64_t best_step = 0;
  double loss_since_log = 0;  // sum of the losses since the last row of metrics
  int64_t steps_since_log = 0;
  int64_t sample_bytes = 0;  // length of samples.txt
  LossScale loss_scale;
  int64_t micro_batch_size = 0;  // the result of batch_size: auto; 0 = there is none
  bool finished = false;         // the last step was evaluated, and nothing is left to do
  std::string data;              // hash of the training and validation data
};

/// The weights and buffers of a module by name; a tensor that is used twice appears once.
TensorMap named_tensors(const torch::nn::Module& module);

/// The weights alone.
TensorMap named_weights(const torch::nn::Module& module);

/// Whether a file must have exactly the tensors that are loaded, or may have more: a process may load its
/// part of a file that several processes share.
enum class Wanted { all_tensors, some_tensors };
/// Copies the tensors of a file into `tensors`, which must have the same names, shapes and types. Throws
/// CheckpointError that names the file and the first tensor that is missing, superfluous or different.
void load_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  Wanted wanted = Wanted::all_tensors);

/// Copies weights and buffers into `module`. Numbers of another floating-point type are converted. Throws
/// CheckpointError as load_tensors(), and names the first tensor of weights that is not finite.
void load_weights(const TensorSource& source, const torch::nn::Module& module);

/// The same for a model that is not trained further: each matrix is stored in fast_format(format) as soon as
/// it is read, so that no more than one is in memory in fp32.
void load_weights(const TensorSource& source, torch::nn::Module& module, WeightFormat format);

/// Loads the weights of a file: all tensors, or with adapters those beside the base.
void load_weights(const std::filesystem::path& path, const torch::nn::Module& module);

/// Replaces RUN/model.safetensors (or another file) by the weights of `module`, atomically. A link there is
/// replaced, not followed. `metadata` goes to the head of the file. Throws SystemError.
void save_weights(const std::filesystem::path& path, const torch::nn::Module& module,
                  const StringMap& metadata = {});

/// Everything that a training changes. A checkpoint holds all of it.
struct TrainedParts {
  torch::nn::Module& model;
  TensorMap optimizer;               // state of the optimiser: all of it to save, this process's part to load
  std::optional<TensorMap> average;  // its state, if there is one
  /// With adapters: the hash of the run's base, to which the weights belong. Empty: it is not compared.
  std::string base = {};
};

/// Names the first tensor that is infinite or NaN, if there is one: weights, state of the optimiser, average.
std::optional<std::string> find_not_finite(const TrainedParts& parts);

/// Which checkpoints stay when there is a new one: the new one, and the newest `newest` - 1 of the others at
/// multiples of `every` steps. In the end a run that was stopped keeps the same checkpoints as one that was
/// not.
struct KeptCheckpoints {
  int64_t newest = 2;
  int64_t every = 1;
};

/// Writes RUN/checkpoints/step-N, lets `last` point to it, and removes checkpoints that are not `kept`.
/// Throws SystemError, CheckpointError (RUN/checkpoints is a link); in this case everything that was there
/// before is still there.
void save_checkpoint(const std::filesystem::path& run_dir, const TrainedParts& parts,
                     const TrainingState& state, const KeptCheckpoints& kept);

/// Ends the removal of checkpoints by a process that was killed meanwhile. A removal that fails only leaves a
/// directory that takes up space.
void finish_removals(const std::filesystem::path& run_dir);

/// The checkpoints of a run, the newest first. Throws CheckpointError if RUN/checkpoints or a checkpoint is
/// something else than a directory, such as a link to one.
std::vector<std::filesystem::path> checkpoints_of(const std::filesystem::path& run_dir);

/// N of a checkpoint step-N; nothing for another path.
std::optional<int64_t> step_of(const std::filesystem::path& checkpoint);

/// The newest checkpoint of a run, if it has any. Throws as checkpoints_of().
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& run_dir);

/// The state of the training at a checkpoint. Throws CheckpointError.
TrainingState read_training_state(const std::filesystem::path& checkpoint);

/// Replaces it, atomically. Throws SystemError.
void write_training_state(const std::filesystem::path& checkpoint, const TrainingState& state);

/// Restores all parts; `optimizer` says whether the optimiser needs all tensors of the file. Throws
/// CheckpointError, also for tensors that are not finite.
TrainingState load_checkpoint(const std::filesystem::path& checkpoint, const TrainedParts& parts,
                              Wanted optimizer = Wanted::all_tensors);

}  // namespace zoo
