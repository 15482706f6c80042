#pragma once
// What a run keeps on the disk. A checkpoint is a directory that is complete as soon as it can be seen:
//
//   RUN/checkpoints/step-N/model.safetensors      weights
//                          optimizer.safetensors  state of the optimiser
//                          average.safetensors    moving average of the weights, if one is kept
//                          rng.safetensors        states of the random generators: cpu, cuda
//                          state.json             TrainingState
//   RUN/checkpoints/last                          symbolic link to the newest
//   RUN/model.safetensors                         the best weights, by training.best_by
//   RUN/failed.txt                                why training could not go on, if it could not

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "data/batch_source.h"
#include "io/safetensors.h"
#include "training/config/precision.h"
#include "training/runs/weight_average.h"

namespace zoo {

inline constexpr const char* kFailureFile = "failed.txt";

/// Where a training stands, beside its tensors.
struct TrainingState {
  int64_t step = 0;  // optimiser steps done
  BatchPosition next_batch;
  int64_t tokens = 0;                // read so far
  double flops = 0;                  // of forward and backward passes so far, see models/cost.h
  double seconds = 0;                // of training so far
  int64_t peak_memory_bytes = 0;     // of tensors so far, see training/gradients/memory.h
  int64_t peak_resident_bytes = 0;   // of the whole process, as the operating system counts
  std::optional<double> best_score;  // training.best_by of the best weights
  int64_t best_step = 0;
  double loss_since_log = 0;  // sum of the losses of the steps that no row of metrics has yet
  int64_t steps_since_log = 0;
  int64_t sample_bytes = 0;  // length of samples.txt
  LossScale loss_scale;
  int64_t rows_at_once = 0;  // what batch_size: auto has found; 0 = nothing
  bool finished = false;     // the last step was evaluated, and there was nothing more to do
  std::string data;          // hash of what is trained and validated on
};

/// The weights and buffers of a module by name; a tensor that is used twice appears once.
TensorMap named_tensors(const torch::nn::Module& module);

/// Copies the tensors of a file into `tensors`, which must have the same names, shapes and types. Throws
/// CheckpointError that names the file and the first tensor that is missing, superfluous or different. Of a
/// file that several processes share each may want a part.
enum class Wanted { all_tensors, some_tensors };
void load_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  Wanted wanted = Wanted::all_tensors);

/// Replaces RUN/model.safetensors (or another file) by the weights of `module`, atomically. Throws
/// SystemError.
void save_weights(const std::filesystem::path& path, const torch::nn::Module& module);

/// What a training changes: a checkpoint holds all of it.
struct TrainedParts {
  torch::nn::Module& model;
  TensorMap optimizer;           // its state: to save, the whole; to load, what this process has of it
  const MovingAverage* average;  // null = none is kept
  torch::Device device;          // whose random numbers are drawn
};

/// Which checkpoints stay when there is a new one: the `newest` of those at multiples of `every` steps, the
/// new one included, which may be at any step. So a run that was stopped in between comes to keep the same as
/// one that was not.
struct KeptCheckpoints {
  int64_t newest = 2;
  int64_t every = 1;
};

/// Writes RUN/checkpoints/step-N, points `last` at it, and removes those that are not `kept`. Throws
/// SystemError, in which case everything that was there before still is.
void save_checkpoint(const std::filesystem::path& run_dir, const TrainedParts& parts,
                     const TrainingState& state, const KeptCheckpoints& kept);

/// The checkpoints of a run, the newest first.
std::vector<std::filesystem::path> checkpoints_of(const std::filesystem::path& run_dir);

/// N of a checkpoint step-N; nothing for another path.
std::optional<int64_t> step_of(const std::filesystem::path& checkpoint);

/// The newest checkpoint of a run, if it has any.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& run_dir);

/// Where the training of a checkpoint stands. Throws CheckpointError.
TrainingState read_training_state(const std::filesystem::path& checkpoint);

/// Restores all of it, `optimizer` of the optimiser's state. Throws CheckpointError.
TrainingState load_checkpoint(const std::filesystem::path& checkpoint, const TrainedParts& parts,
                              Wanted optimizer = Wanted::all_tensors);

}  // namespace zoo
