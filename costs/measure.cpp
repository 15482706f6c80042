#include "costs/measure.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/device.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "base/tensor_memory.h"
#include "generation/scheduler.h"
#include "models/inference_scope.h"
#include "models/stack.h"
#include "training/learner.h"
#include "training/micro_batch_size.h"

namespace zoo {
namespace {

/// The value at a share of the sorted values, without interpolation.
double quantile(std::vector<double> values, double share) {
  const auto n = static_cast<double>(values.size() - 1);
  const auto found = values.begin() + static_cast<std::ptrdiff_t>(std::ceil(share * n));
  std::nth_element(values.begin(), found, values.end());
  return *found;
}

void stop_if_told(const ShouldStop& should_stop) {
  if (should_stop && should_stop()) throw MeasurementStopped{};  // NOLINT(bugprone-std-exception-baseclass)
}

/// The steps of a training from its first batch on, as the trainer takes them.
class TrainingSteps {
 public:
  TrainingSteps(Task& task, c10::Device device)
      : experiment_(task.experiment()),
        source_(task.batches(Split::train)),
        device_(device),
        learner_(experiment_, initialized_model(experiment_, task), task.objective(), alone_, device),
        scale_(LossScale::for_precision(learner_.precision()).value) {
    if (experiment_.training.batch_size.is_auto()) learner_.fit_into_memory(task, {});
  }

  /// Takes `n_steps` steps from batch `first` of the data on, and waits for the device. Returns the number of
  /// tokens read.
  int64_t take(int64_t n_steps, int64_t first = 0) {
    tokens_ = 0;
    position_ = {.epoch = 0, .index = first};
    for (int64_t step = 0; step < n_steps; ++step) take_one(step);
    synchronize(device_);
    return tokens_;
  }

 private:
  void take_one(int64_t step) {
    const auto& config = experiment_.training;
    const auto batches = next_batches(source_, position_, config.gradient_accumulation);
    for (size_t i = 0; i < batches.size(); ++i) tokens_ += batches[i].tokens;
    learner_.differentiate(batches, scale_);
    learner_.step(config.learning_rate(experiment_.model.d_model, step));
    learner_.forget_gradients();
  }

  const Experiment& experiment_;
  BatchSource& source_;
  const ProcessGroup alone_;
  c10::Device device_;
  Learner learner_;
  double scale_;
  BatchPosition position_;
  int64_t tokens_ = 0;
};

TrainingSpeed measure_training(Task& task, c10::Device device, const MeasureOptions& options) {
  const double budget = options.seconds;
  constexpr double kRounds = 5;
  constexpr int64_t kMostSteps = 100;
  torch::manual_seed(static_cast<uint64_t>(task.experiment().training.seed));
  const TensorMemory memory(device);  // before the first tensor
  TrainingSteps steps(task, device);
  steps.take(1, costliest_batch(task));  // also the first step, which is slow
  const int64_t peak = memory.peak();
  stop_if_told(options.should_stop);
  const Stopwatch watch;
  steps.take(1);
  const double once = watch.seconds();

  // Batches differ in size, so each repeat takes the same round of steps.
  const auto n_steps = std::clamp(static_cast<int64_t>(budget / kRounds / once), int64_t{1}, kMostSteps);
  int64_t tokens = 0;
  const double seconds =
      measure_times([&] { tokens = steps.take(n_steps); }, device, budget, options.should_stop).median;
  return {.tokens_per_second = static_cast<double>(tokens) / seconds,
          .step_seconds = seconds / static_cast<double>(n_steps),
          .tokens_per_step = static_cast<double>(tokens) / static_cast<double>(n_steps),
          .peak_memory_bytes = peak};
}

/// (n) token ids, always the same ones.
TokenIds some_tokens(int64_t n, int64_t vocab_size) {
  TokenIds ids(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) ids[static_cast<size_t>(i)] = i * 31 % vocab_size;
  return ids;
}

PromptSpeed measure_prompt(GenerativeModel& model, int64_t vocab_size, c10::Device device, int64_t length,
                           const MeasureOptions& options) {
  const int64_t n_tokens = options.prompts * length;
  const Batch prompts{.input = {.ids = torch::tensor(some_tokens(n_tokens, vocab_size), torch::kInt64)
                                           .view({options.prompts, length})
                                           .to(device)}};
  const auto read = [&] {
    DecodingState state;
    model.prefill(prompts, state);
  };
  const double seconds = measure_times(read, device, options.seconds, options.should_stop).median;
  return {.tokens_per_second = static_cast<double>(n_tokens) / seconds,
          .prompts = options.prompts,
          .length = length};
}

int64_t generated_length(const Experiment& experiment, const MeasureOptions& options) {
  const int64_t length = options.length.value_or(experiment.data.sequence_length);
  if (length < 1) throw UsageError(fmt::format("a length of {} tokens: choose 1 or more", length));
  if (length > experiment.model.max_positions) {
    throw UsageError(
        fmt::format("a length of {} tokens is beyond model.max_positions, {}: choose a shorter one", length,
                    experiment.model.max_positions));
  }
  return length;
}

}  // namespace

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

Speed median_of(std::span<const Speed> speeds) {
  const auto of = [speeds](auto&& number) {
    std::vector<double> values;
    for (const auto& speed : speeds) values.push_back(number(speed));
    return median(std::move(values));
  };
  Speed result = speeds.front();
  result.train.tokens_per_second = of([](const Speed& s) { return s.train.tokens_per_second; });
  result.train.step_seconds = of([](const Speed& s) { return s.train.step_seconds; });
  result.train.tokens_per_step = of([](const Speed& s) { return s.train.tokens_per_step; });
  if (result.prompt)
    result.prompt->tokens_per_second = of([](const Speed& s) { return s.prompt->tokens_per_second; });
  if (result.decode) {
    result.decode->tokens_per_second = of([](const Speed& s) { return s.decode->tokens_per_second; });
    result.decode->first_token_seconds = of([](const Speed& s) { return s.decode->first_token_seconds; });
  }
  return result;
}

Times measure_times(const std::function<void()>& work, c10::Device device, double budget,
                    const ShouldStop& should_stop) {
  work();
  synchronize(device);
  std::vector<double> seconds;
  const Stopwatch all;
  while (seconds.size() < kFewestRepeats || all.seconds() < budget) {
    stop_if_told(should_stop);
    const Stopwatch one;
    work();
    synchronize(device);
    seconds.push_back(one.seconds());
  }
  return {.median = median(seconds), .low = quantile(seconds, 0.25), .high = quantile(seconds, 0.75)};
}

DecodeSpeed measure_decode(GenerativeModel& model, int64_t vocab_size, c10::Device device, int64_t length,
                           double seconds, const ShouldStop& should_stop) {
  constexpr int64_t kMostTokens = 128;
  DecodeSpeed speed;
  speed.prompt_length = std::max<int64_t>(length / 2, 1);
  speed.n_tokens = std::clamp<int64_t>(length - speed.prompt_length, 2, kMostTokens);
  const auto prompt = some_tokens(speed.prompt_length, vocab_size);
  const auto greedy = std::make_shared<TokenRules>(
      TokenRules{.processors = {}, .sampler = std::make_unique<GreedySampler>()});

  std::vector<double> first, rest;  // seconds
  const auto write = [&] {
    // Each step copies its token to the CPU, so no further synchronisation is needed.
    Scheduler scheduler(model, device);
    const size_t request =
        scheduler.submit({.prompt = prompt, .rules = greedy, .limits = {.max_new_tokens = speed.n_tokens}});
    const Stopwatch until_first;
    while (scheduler.outputs(request).front().ids.empty()) scheduler.step();
    first.push_back(until_first.seconds());
    const Stopwatch until_last;
    while (scheduler.step()) stop_if_told(should_stop);
    rest.push_back(until_last.seconds());
  };
  write();
  first.clear();
  rest.clear();
  const Stopwatch watch;
  while (first.size() < kFewestRepeats || watch.seconds() < seconds) write();
  speed.first_token_seconds = median(std::move(first));
  speed.tokens_per_second = static_cast<double>(speed.n_tokens - 1) / median(std::move(rest));
  return speed;
}

Speed measure_speed(Task& task, c10::Device device, const MeasureOptions& options) {
  const auto& experiment = task.experiment();
  const int64_t length = generated_length(experiment, options);
  if (const auto threads = experiment.training.threads; threads > 0)
    at::set_num_threads(static_cast<int>(threads));
  const auto say = [&](const std::string& line) {
    if (options.on_message) options.on_message(line);
  };
  Speed speed;
  say("measuring training");
  speed.train = measure_training(task, device, options);

  // A new model, because some training steps at an unsuitable learning rate might have made weights NaN.
  const auto model = initialized_model(experiment, task);
  if (!model->generative() || model->generative()->reads_recordings() || !task.vocabulary().tokenizer)
    return speed;
  model->to(device);
  store_weights(*model, experiment.generation.weights);
  store_cache(*model, experiment.generation.cache);
  const InferenceScope scope(*model);
  const int64_t vocab_size = std::min(task.tokenizer().vocab_size(), model->n_outputs());
  say("measuring the reading of prompts");
  speed.prompt = measure_prompt(*model->generative(), vocab_size, device, length, options);
  say("measuring the writing of tokens");
  speed.decode =
      measure_decode(*model->generative(), vocab_size, device, length, options.seconds, options.should_stop);
  return speed;
}

}  // namespace zoo
