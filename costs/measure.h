#pragma once
// The speed of a model in training, in reading prompts (prefill), and in writing token by token.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "models/model.h"
#include "tasks/task.h"

namespace zoo {

/// How often a measurement is repeated at least.
inline constexpr size_t kFewestRepeats = 3;

/// The value in the middle of at least one.
double median(std::vector<double> values);

/// Asked between the repeats of a measurement; true: it ends with MeasurementStopped.
using ShouldStop = std::function<bool()>;
/// A measurement that ShouldStop ended.
struct MeasurementStopped {};

struct MeasureOptions {
  double seconds = 1.0;  // for each of the three; at least three repeats, even if they take longer
  std::optional<int64_t> length = {};  // of a sequence in generation, in tokens; default data.sequence_length
  int64_t prompts = 8;                 // read at once
  ShouldStop should_stop = nullptr;
  std::function<void(const std::string& line)> on_message = nullptr;  // before each of the three
};

/// Optimiser steps as `zoo train` takes them, including reading the batch.
struct TrainingSpeed {
  double tokens_per_second = 0;  // tokens as Batch::tokens counts them
  double step_seconds = 0;
  double tokens_per_step = 0;  // mean
  /// Peak memory of tensors in the costliest step: weights, gradients, optimiser, activations.
  int64_t peak_memory_bytes = 0;
};

/// Prompts read together, up to the logits of their next tokens.
struct PromptSpeed {
  double tokens_per_second = 0;
  int64_t prompts = 0;  // B
  int64_t length = 0;   // T
};

/// Greedy decoding of one sequence with a cache.
struct DecodeSpeed {
  double tokens_per_second = 0;    // of all tokens after the first
  double first_token_seconds = 0;  // from the prompt to the first token
  int64_t prompt_length = 0;       // half of the length, at least 1
  int64_t n_tokens = 0;            // written: the other half, at most 128
};

struct Speed {
  TrainingSpeed train;
  std::optional<PromptSpeed> prompt;  // absent if the model does not generate
  std::optional<DecodeSpeed> decode;  // absent if the model does not generate
};

/// Measures the model of a task on its training data, with initial weights, because speed does not depend on
/// weights. Seeds the default generator, and sets the number of threads to training.threads. Throws DataError
/// and ConfigError as training does, UsageError for a length beyond model.max_positions, MeasurementStopped.
Speed measure_speed(Task& task, c10::Device device, const MeasureOptions& options = {});

/// Measures the greedy decoding of one sequence of `length` tokens by `model`, which has `vocab_size` tokens.
/// Repeats it for `seconds`, at least three times. Throws MeasurementStopped.
DecodeSpeed measure_decode(GenerativeModel& model, int64_t vocab_size, c10::Device device, int64_t length,
                           double seconds, const ShouldStop& should_stop = nullptr);

/// The median of each number over several measurements of one model; at least one.
Speed median_of(std::span<const Speed> speeds);

/// Times of one piece of work in seconds: the median, and the quartiles between which half of the repeats
/// lie. A few disturbed repeats do not change them.
struct Times {
  double median = 0, low = 0, high = 0;
};

/// The times of `work` on `device`. After a first run that does not count, it repeats `work` until `budget`
/// seconds are over, at least three times. Throws MeasurementStopped.
Times measure_times(const std::function<void()>& work, c10::Device device, double budget,
                    const ShouldStop& should_stop = nullptr);

}  // namespace zoo
