#pragma once
// How fast a model is: at training, at reading prompts, and at writing token after token.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include <c10/core/Device.h>

#include "training/tasks/task.h"

namespace zoo {

struct MeasureOptions {
  double seconds = 1.0;  // of measuring, for each of the three; at least three repeats whatever they take
  std::optional<int64_t> length = {};  // tokens of a sequence under generation; default data.sequence_length
  int64_t prompts = 8;                 // that are read at once
};

/// Optimiser steps as `zoo train` takes them, reading the batch included.
struct TrainingSpeed {
  double tokens_per_second = 0;  // tokens as Batch::tokens counts them
  double step_seconds = 0;
  double tokens_per_step = 0;  // mean
  int64_t peak_memory_bytes =
      0;  // of tensors, in the costliest step: weights, gradients, optimiser, activations
};

/// Prompts that are read together, up to the scores of what follows.
struct PromptSpeed {
  double tokens_per_second = 0;
  int64_t prompts = 0;  // B
  int64_t length = 0;   // T
};

/// Greedy decoding of one sequence with a cache.
struct DecodeSpeed {
  double tokens_per_second = 0;    // of those after the first
  double first_token_seconds = 0;  // from the prompt to the first token
  int64_t prompt_length = 0;       // half of MeasureOptions::length
  int64_t n_tokens = 0;            // written: the other half, at most 128
};

struct Speed {
  TrainingSpeed train;
  std::optional<PromptSpeed> prompt;  // absent where the model does not generate
  std::optional<DecodeSpeed> decode;  // the same
};

/// Measures the model of a task on its training data. No weights are asked for: speed does not depend on
/// them, so fresh models are measured and a trained one is neither needed nor harmed. Seeds the default
/// generator, and sets the number of threads as training.threads says. Throws DataError and ConfigError as
/// training does, UsageError for a length beyond model.max_positions.
Speed measure_speed(Task& task, c10::Device device, const MeasureOptions& options = {});

/// Number by number the median of one model's speeds at several times; at least one.
Speed median_of(std::span<const Speed> speeds);

/// The median of the seconds that `work` takes on `device`: of what is repeated until `budget` seconds are
/// over, at least three times, after a first time that does not count. A median is not moved by a few repeats
/// that something else on the machine disturbed.
double median_seconds(const std::function<void()>& work, c10::Device device, double budget);

}  // namespace zoo
