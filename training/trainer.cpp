#include "training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "base/tensor_memory.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/finite.h"
#include "checkpoints/guess.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "checkpoints/run_directory.h"
#include "checkpoints/stored_model.h"
#include "checkpoints/weight_average.h"
#include "io/files.h"
#include "io/metrics_log.h"
#include "io/progress.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "parallel/threads.h"
#include "tasks/epochs.h"
#include "tasks/preparation.h"
#include "tasks/task.h"
#include "training/learner.h"
#include "training/schedule.h"

namespace zoo {
namespace {

/// Sets the number of threads of this process; 0 = its share of the machine.
void use_threads(int64_t n_threads, const std::optional<ProcessPlace>& place) {
  const bool is_set = std::getenv("OMP_NUM_THREADS") != nullptr;
  if (n_threads == 0 && place && !is_set)
    n_threads = std::max<int64_t>(at::get_num_threads() / place->local_size, 1);
  if (n_threads > 0) at::set_num_threads(static_cast<int>(n_threads));
}

/// Metrics on the validation data for a row of metrics.jsonl.
Metrics with_prefix(std::string_view prefix, const Metrics& metrics) {
  Metrics row;
  for (const auto& [name, value] : metrics) {
    if (!is_count(name)) row.emplace(fmt::format("{}{}", prefix, name), value);
  }
  return row;
}

/// "12.3 k tokens/s", "840 images/s"
std::string rate_text(double rate, std::string_view unit) {
  return rate < 1000 ? fmt::format("{:.0f} {}s/s", rate, unit)
                     : fmt::format("{:.1f} k {}s/s", rate / 1000, unit);
}

/// The same metrics for people.
std::string listed(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    if (!is_count(name)) text += fmt::format("  {} {}", name, metric_text(value));
  }
  return text;
}

class Trainer {
 public:
  Trainer(const Experiment& experiment, const TrainOptions& options);
  TrainResult run();

 private:
  struct Step {
    double loss, lr, grad_norm;
  };
  /// Values that must be equal in all processes, though only one of them knows the value.
  struct Agreed {
    bool stop = false;     // some process was asked to stop
    double time_used = 0;  // fraction of max_seconds, by the clock of the first process
  };

  void start();
  void join();
  void load(const std::filesystem::path& checkpoint);
  void make_parts();
  void note_rows_at_once();
  uint64_t seed_step();
  Step take_step();
  std::vector<double> agree(const std::vector<double>& sums);
  bool overflowed(double loss, double grad_norm) const;
  void check_finite(const std::vector<double>& losses, double grad_norm,
                    const std::vector<BatchPosition>& positions) const;
  std::optional<TrainEnd> why_to_end() const;
  /// Before the first step there is no best one. While an evaluation is due, it must come first.
  bool is_out_of_patience() const {
    return state_.best_score && config_.is_out_of_patience(state_.step, state_.best_step);
  }
  bool due(int64_t every) const { return state_.step % every == 0; }
  double seconds() const { return seconds_before_ + watch_.seconds(); }
  [[noreturn]] void fail(const std::string& problem) const;
  std::string way_out() const;
  [[noreturn]] void fail_for_memory(const std::string& shortage) const;
  TrainResult take_steps();
  void finish();
  void log(const Step& step);
  Metrics metrics_of_validation();
  void evaluate_at_start();
  void evaluate();
  bool keep_if_best(const Metrics& metrics);
  void save_best() const;
  void try_mean();
  void save();
  void warn_if_nothing_learnt() const;
  void report(std::string message = {}) const;
  void remember(const Metrics& row) {
    for (const auto& [name, value] : row) newest_.insert_or_assign(name, value);
  }

  Experiment experiment_;
  const TrainingConfig& config_ = experiment_.training;
  TrainOptions options_;
  std::filesystem::path run_dir_;
  ProcessGroup processes_;
  TensorMemory memory_;                      // before the first tensor
  std::unique_ptr<RunDirectory> directory_;  // null in all processes but the first, like metrics_
  std::unique_ptr<Task> task_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<MetricsLog> metrics_;
  TrainingState state_;
  std::string base_;  // with adapters: the hash of RUN/base.safetensors, in the first process
  Agreed agreed_;

  double valid_loss_ = 0;  // of the last evaluation
  Stopwatch watch_;
  double seconds_before_ = 0;  // duration of earlier parts of this run
  double busy_seconds_ = 0;    // duration of the steps since the last row of metrics
  int64_t busy_steps_ = 0;     // number of these steps
  int64_t tokens_at_log_ = 0;
  int64_t step_bytes_ = -1;  // bytes that this process exchanged with the others in the last step
  std::string status_;
  Metrics newest_;  // values of metrics.jsonl
};

Trainer::Trainer(const Experiment& experiment, const TrainOptions& options)
    : experiment_(experiment),
      options_(options),
      run_dir_(run_path(experiment, options.run_dir)),
      processes_(options.place.value_or(ProcessPlace()), options.device,
                 std::chrono::seconds(experiment.training.parallel.timeout_seconds)),
      memory_(options.device) {
  pin_paths(experiment_);
  use_threads(config_.threads, options.place);
  flush_denormals();
  // The other processes read what the first one has written into the directory.
  constexpr std::chrono::hours timeout(6);  // a large corpus takes long to prepare
  processes_.run_or_fail_together(
      [&] {
        if (processes_.is_first()) start();
      },
      timeout);
  processes_.run_or_fail_together(
      [&] {
        if (!processes_.is_first()) join();
      },
      timeout);
  learner_->share_weights();
  if (config_.batch_size.is_auto()) {
    const auto place = options.place.value_or(ProcessPlace());
    learner_->fit_into_memory(*task_, {.memory_bytes = options.memory_bytes,
                                       .n_sharing = options.device.is_cpu() ? place.local_size : 1,
                                       .before = state_.micro_batch_size});
    note_rows_at_once();
    memory_.reset_peak();
  }
  seconds_before_ = state_.seconds;
  tokens_at_log_ = state_.tokens;
}

/// Begins the run or goes on with it. Finds all errors in the configuration and the data before it replaces
/// an earlier run.
void Trainer::start() {
  directory_ = std::make_unique<RunDirectory>(experiment_, run_dir_, options_.existing);
  const auto announce = [&](const std::optional<std::string>& note) {
    if (note) report(*note);
  };
  if (!directory_->goes_on()) announce(learning_note(experiment_));
  task_ = directory_->goes_on() ? open_task(experiment_, directory_->vocabulary()) : make_task(experiment_);
  if (!directory_->goes_on() && !experiment_.init_from && task_->vocabulary().tokenizer)
    announce(vocabulary_note(experiment_.data.tokenizer, *task_->vocabulary().tokenizer));
  announce(reading_note(experiment_.data, Split::train));
  resolve_epochs(experiment_, *task_);
  make_parts();
  for (const auto& note : task_->notes()) report("note: " + note);
  const std::string data = hash_of_data(experiment_.data);
  if (const auto checkpoint = directory_->checkpoint()) {
    load(*checkpoint);
    if (!state_.data.empty() && state_.data != data) {
      throw ConfigError(
          fmt::format("{}: the training or validation data have changed since this run was started; restore "
                      "them, or train anew with ExistingRun::replace or another TrainOptions::run_dir",
                      run_dir_.string()));
    }
    finish_removals(run_dir_);
    report(fmt::format("goes on after step {} of {}", state_.step, config_.steps));
  }
  state_.data = data;
  directory_->begin(task_->vocabulary(), config_.steps);
  if (config_.lora && !directory_->checkpoint()) base_ = save_base(run_dir_, learner_->model());
  directory_->truncate_samples(state_.sample_bytes);
  std::error_code ignored;
  std::filesystem::remove(run_dir_ / kFailureFile, ignored);
  // Without a checkpoint the run starts over, and so does its log.
  metrics_ = std::make_unique<MetricsLog>(run_dir_, state_.step > 0 ? state_.step : -1);
}

/// Joins the run that the first process has begun.
void Trainer::join() {
  task_ = open_task(experiment_, read_run_vocabulary(run_dir_, task_type(experiment_)));
  resolve_epochs(experiment_, *task_);
  make_parts();
  if (const auto checkpoint = newest_checkpoint(run_dir_)) load(*checkpoint);
}

/// Random numbers of a step are a function of training.seed, the step, and, where LibTorch's generators give
/// them, the process. So there is no state of a generator to keep.
uint64_t Trainer::seed_step() {
  const auto seed = static_cast<uint64_t>(config_.seed), step = static_cast<uint64_t>(state_.step),
             rank = static_cast<uint64_t>(processes_.rank());
  for (const auto device : {torch::Device(torch::kCPU), options_.device}) {
    auto generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(CounterRandom({seed, step, rank}).next());
  }
  return CounterRandom({seed, step}).next();
}

/// Keeps the checkpoint's loss scale only if it was made with fp16 and this training uses fp16, too.
void Trainer::load(const std::filesystem::path& checkpoint) {
  const LossScale fresh = state_.loss_scale;
  state_ = learner_->load(checkpoint, base_);
  const bool was_scaled = state_.loss_scale != LossScale();
  if (!was_scaled || learner_->precision() != Precision::fp16) state_.loss_scale = fresh;
}

void Trainer::make_parts() {
  const auto checkpoint = directory_ ? directory_->checkpoint() : std::nullopt;
  if (checkpoint) {
    check_model_size(SafetensorsFile(config_.lora ? run_dir_ / kBaseFile : *checkpoint / "model.safetensors"),
                     *task_);
  }
  task_->batches(Split::train).use_share(processes_.rank(), processes_.size());
  torch::manual_seed(static_cast<uint64_t>(config_.seed));
  auto model = checkpoint ? build_model(experiment_, *task_)  // load() comes next
                          : make_model(experiment_, *task_);
  if (!checkpoint) start_at_mean(*task_, *model);
  if (config_.lora && checkpoint) base_ = load_base(run_dir_, *model, BaseCheck::hash);
  if (experiment_.init_from && directory_ && !checkpoint) {
    if (const auto note = initial_weights_note(experiment_)) report(*note);
    report(load_initial_weights(experiment_, *task_, *model));
  }
  task_->batches(Split::valid);
  learner_ = std::make_unique<Learner>(experiment_, std::move(model), task_->objective(), processes_,
                                       options_.device);
  state_.loss_scale = LossScale::for_precision(learner_->precision());
}

/// Reports how many rows go through the model at once, if the number has changed.
void Trainer::note_rows_at_once() {
  const int64_t n_rows = learner_->micro_batch_size();
  if (n_rows == state_.micro_batch_size) return;
  state_.micro_batch_size = n_rows;
  report(fmt::format("training.batch_size: auto: {} sequences go through the model at once, of {} in a step",
                     n_rows, config_.sequences()));
}

TrainResult Trainer::run() {
  try {
    return take_steps();
  } catch (const std::exception& error) {
    const auto shortage = memory_shortage(error);
    if (!shortage) throw;
    fail_for_memory(*shortage);
  }
}

/// The last checkpoint stays, and so does an earlier run's.
void Trainer::fail_for_memory(const std::string& shortage) const {
  const auto checkpoints = checkpoints_of(run_dir_);
  throw TrainingError(fmt::format(
      "step {}: {} has too little memory{}: set training.activation_checkpointing=every_layer, take a "
      "smaller "
      "training.batch_size with more training.gradient_accumulation, or a smaller data.sequence_length or "
      "model; {}",
      state_.step + 1, options_.device.str(), shortage,
      checkpoints.empty() ? "there is no checkpoint yet"
                          : fmt::format("{} stays", checkpoints.front().filename().string())));
}

TrainResult Trainer::take_steps() {
  watch_ = {};
  agree({});
  auto end = why_to_end();
  if (!end && is_out_of_patience()) end = TrainEnd::out_of_patience;
  // An earlier process ended between the last step and finish(), or the steps or the time limit were reduced.
  if (end && *end != TrainEnd::interrupted && state_.step > 0 && !state_.finished) finish();
  if (config_.evaluate_at_start && state_.step == 0 && !end) evaluate_at_start();
  while (!end) {
    const Stopwatch busy;
    const int64_t bytes = processes_.bytes_exchanged();
    const Step step = take_step();
    if (!processes_.is_alone() && step_bytes_ < 0) {
      report(fmt::format("{} processes; each exchanges {:.2f} MB with the others in a step",
                         processes_.size(), static_cast<double>(processes_.bytes_exchanged() - bytes) / 1e6));
    }
    step_bytes_ = processes_.bytes_exchanged() - bytes;
    busy_seconds_ += busy.seconds();
    ++busy_steps_;

    end = why_to_end();
    const auto is_last = [&] { return end && *end != TrainEnd::interrupted; };
    if (is_last() || due(config_.log_every)) log(step);
    report();
    if (due(config_.evaluate_every)) evaluate();
    if (!is_last() && is_out_of_patience()) end = TrainEnd::out_of_patience;
    if (is_last()) {
      finish();
    } else if (end || due(config_.checkpoint_every)) {
      save();
    }
  }
  return {.run_dir = run_dir_,
          .end = *end,
          .step = state_.step,
          .best_score = state_.best_score,
          .best_step = state_.best_step,
          .seconds = seconds()};
}

/// Evaluates and saves after the last step.
void Trainer::finish() {
  if (!due(config_.evaluate_every)) evaluate();
  if (config_.average_last) try_mean();
  state_.finished = true;
  save();
  warn_if_nothing_learnt();
}

/// Says that the model is no better than a guess.
void Trainer::warn_if_nothing_learnt() const {
  if (!processes_.is_first()) return;
  // A thread may still read batches of task_ ahead.
  const auto task = open_task(experiment_, task_->vocabulary());
  const auto guess = guess_losses(*task, Split::valid);
  if (const auto note = guess ? guess_note(valid_loss_, *guess) : std::nullopt) report("note: " + *note);
}

Trainer::Step Trainer::take_step() {
  state_.finished = false;
  const double lr = learning_rate(config_, experiment_.model.d_model, state_.step, agreed_.time_used);
  const auto batches =
      next_batches(task_->batches(Split::train), state_.next_batch, config_.gradient_accumulation);
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto batch = batches[i];
    state_.tokens += batch.tokens;
    // The backward pass costs twice the forward pass: one product for the weights and one for the input.
    state_.flops += 3 * forward_flops(experiment_.model, task_->purpose(), pass_shape(batch));
  }
  const RandomScope random({seed_step()});
  const auto gradients = learner_->differentiate(batches, state_.loss_scale.value);
  note_rows_at_once();
  const auto losses = agree(gradients.losses);
  const double total = std::reduce(losses.begin(), losses.end());
  if (overflowed(total, gradients.norm)) {
    state_.loss_scale.update(Overflow::yes);
  } else {
    check_finite(losses, gradients.norm, batches.positions());
    learner_->step(lr);
    if (learner_->precision() == Precision::fp16) state_.loss_scale.update(Overflow::no);
  }
  learner_->forget_gradients();
  state_.peak_memory_bytes = std::max(state_.peak_memory_bytes, memory_.peak());
  ++state_.step;
  if (std::isfinite(total)) {
    ++state_.steps_since_log;
    state_.loss_since_log += total;
  }
  return {.loss = total, .lr = lr, .grad_norm = gradients.norm};
}

/// Sums numbers over the processes, and updates `agreed_`.
std::vector<double> Trainer::agree(const std::vector<double>& sums) {
  std::vector<double> numbers = sums;
  numbers.push_back(options_.should_stop && options_.should_stop() ? 1 : 0);
  numbers.push_back(processes_.is_first() && config_.max_seconds ? seconds() / *config_.max_seconds : 0);
  if (!processes_.is_alone()) {
    const auto tensor = torch::tensor(numbers, torch::kDouble);
    processes_.all_reduce(tensor).wait();
    numbers.assign(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
  }
  agreed_.time_used = numbers.back();
  numbers.pop_back();
  agreed_.stop = numbers.back() > 0;
  numbers.pop_back();
  return numbers;
}

/// Whether the scaled gradients were too large for fp16. If so, the step is skipped, and the next scale is
/// smaller.
bool Trainer::overflowed(double loss, double grad_norm) const {
  return learner_->precision() == Precision::fp16 && state_.loss_scale.value > LossScale::least &&
         !(std::isfinite(loss) && std::isfinite(grad_norm));
}

/// Prevents a step that would ruin the weights.
void Trainer::check_finite(const std::vector<double>& losses, double grad_norm,
                           const std::vector<BatchPosition>& positions) const {
  const auto fail_at = [&](const BatchPosition& position, std::string_view what, double value) {
    fail(fmt::format("step {}, epoch {}, batch {}: {} is {}", state_.step + 1, position.epoch, position.index,
                     what, value));
  };
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i])) fail_at(positions[i], "the loss", losses[i]);
  }
  if (!std::isfinite(grad_norm)) fail_at(positions.back(), "the norm of the gradient", grad_norm);
}

/// Training cannot go on, because something is not finite. All processes call this together, or the first one
/// does within run_or_fail_together().
void Trainer::fail(const std::string& problem) const {
  if (!processes_.is_first()) throw PeerError("training cannot go on; the first process reports the reason");
  const auto message = fmt::format("{}; {}", problem, way_out());
  write_file_atomically(run_dir_ / kFailureFile, message + "\n");
  throw TrainingError(message);
}

/// What people can do. A checkpoint of this very step does not help: from there the same happens again.
std::string Trainer::way_out() const {
  constexpr std::string_view remedy = "a lower training.optimizer.lr or a longer warm-up";
  std::optional<std::filesystem::path> good, useless;
  for (const auto& checkpoint : checkpoints_of(run_dir_)) {
    auto& kind = *step_of(checkpoint) < state_.step ? good : useless;
    if (!kind) kind = checkpoint;
  }
  if (good && useless) {
    return fmt::format(
        "the last good checkpoint is {}: remove {}, which leads here again, and resume with {}",
        good->string(), useless->string(), remedy);
  }
  if (good) return fmt::format("the last good checkpoint is {}: resume with {}", good->string(), remedy);
  if (useless) {
    return fmt::format("the only checkpoint, {}, leads here again: train anew with {}", useless->string(),
                       remedy);
  }
  return fmt::format("there is no checkpoint yet: train anew with {}", remedy);
}

std::optional<TrainEnd> Trainer::why_to_end() const {
  if (state_.step >= config_.steps) return TrainEnd::all_steps;
  if (agreed_.time_used >= 1) return TrainEnd::out_of_time;
  if (agreed_.stop) return TrainEnd::interrupted;
  return std::nullopt;
}

void Trainer::log(const Step& step) {
  // NaN if every step since the last row overflowed. Only finite values are written.
  const double loss = state_.loss_since_log / static_cast<double>(state_.steps_since_log);
  const double rate = static_cast<double>(state_.tokens - tokens_at_log_) / busy_seconds_;
  Metrics row = {
      {"train_loss", loss},          {"lr", step.lr},
      {"grad_norm", step.grad_norm}, {"tokens_per_second", rate},
      {"flops", state_.flops},       {"peak_memory_bytes", static_cast<double>(state_.peak_memory_bytes)}};
  if (learner_->precision() == Precision::fp16) {
    row.emplace("loss_scale", state_.loss_scale.value);
    row.emplace("skipped_steps", static_cast<double>(state_.loss_scale.skipped));
  }
  if (!processes_.is_alone()) {
    row.emplace("communication_bytes_per_step", static_cast<double>(step_bytes_));
  }
  std::erase_if(row, [](const auto& entry) { return !std::isfinite(entry.second); });
  if (metrics_) metrics_->write(state_.step, state_.tokens, seconds(), row);
  remember(row);
  status_ = fmt::format("loss {:.4f}  {}  {:.1f} ms/step", loss, rate_text(rate, task_type(experiment_).unit),
                        busy_seconds_ * 1000 / static_cast<double>(busy_steps_));
  state_.loss_since_log = 0;
  state_.steps_since_log = 0;
  tokens_at_log_ = state_.tokens;
  busy_seconds_ = 0;
  busy_steps_ = 0;
}

Metrics Trainer::metrics_of_validation() {
  return task_->evaluate(
      learner_->model(), Split::valid,
      {.max_batches = config_.evaluate_batches, .processes = &processes_, .wanted = config_.kept_metric()});
}

/// Writes a row for step 0. Nothing has been learnt, so there are neither samples nor best weights.
void Trainer::evaluate_at_start() {
  Metrics row = with_prefix("valid_", metrics_of_validation());
  row.emplace("flops", 0);
  if (metrics_) metrics_->write(0, 0, seconds(), row);
}

void Trainer::evaluate() {
  const auto averaged = learner_->use_average();
  const Metrics metrics = metrics_of_validation();
  if (const double loss = metrics.at("loss"); !std::isfinite(loss))
    fail(fmt::format("step {}: the validation loss is {}", state_.step, loss));
  valid_loss_ = metrics.at("loss");
  if (processes_.is_first()) {
    Metrics row = with_prefix("valid_", metrics);
    row.emplace("flops", state_.flops);
    metrics_->write(state_.step, state_.tokens, seconds(), row);
    remember(row);
    state_.sample_bytes += directory_->append_sample(fmt::format("=== step {}, validation loss {:.4f}\n{}\n",
                                                                 state_.step, metrics.at("loss"),
                                                                 to_text(task_->samples(learner_->model()))));
  }
  const bool best = keep_if_best(metrics);
  const bool is_news = best && !config_.keeps_last();
  report(fmt::format("step {}: validation{}{}", state_.step, listed(metrics), is_news ? "  (best)" : ""));
}

/// Saves the current weights as the run's if they are the best so far or best_by is `last`. Returns whether
/// it did.
bool Trainer::keep_if_best(const Metrics& metrics) {
  const double score = metrics.at(config_.kept_metric());
  const Better better = task_type(experiment_).better(config_.kept_metric());
  const auto is_better = [&](double other) {
    return better == Better::lower ? score < other : score > other;
  };
  if (!std::isfinite(metrics.at("loss"))) return false;
  if (state_.best_score && !config_.keeps_last() && !is_better(*state_.best_score)) return false;
  // All processes have the same weights, so they take the same decision.
  if (const auto name = find_not_finite(named_weights(learner_->model())))
    fail(fmt::format("step {}: the weights of {} are not numbers", state_.step, *name));
  if (processes_.is_first()) save_best();
  state_.best_score = score;
  state_.best_step = state_.step;
  return true;
}

void Trainer::save_best() const {
  const auto& model = learner_->model();
  save_weights(run_dir_ / weights_name(model), model, belongs_to(base_));
}

/// Evaluates the mean of the weights of the last checkpoints and of now, and keeps it if it is better.
void Trainer::try_mean() {
  std::vector<std::filesystem::path> files;
  std::vector<int64_t> steps = {state_.step};
  for (const auto& checkpoint : checkpoints_of(run_dir_)) {
    const int64_t step = *step_of(checkpoint);
    // Checkpoints from stops do not count, so that a stopped run ends like one that was not stopped.
    if (step >= state_.step || step % config_.checkpoint_every != 0) continue;
    if (std::ssize(steps) == *config_.average_last) break;
    files.push_back(checkpoint / weights_name(learner_->model()));
    steps.push_back(step);
  }
  if (files.empty()) return report("training.average_last: there is no checkpoint before the last step");

  const SubstituteWeights mean(learner_->model(), mean_weights(learner_->model(), files));
  const Metrics metrics = metrics_of_validation();
  if (metrics_) metrics_->write(state_.step, state_.tokens, seconds(), with_prefix("mean_valid_", metrics));
  const bool best = keep_if_best(metrics);
  report(fmt::format("mean of the weights at steps {}: validation{}{}", fmt::join(steps, ", "),
                     listed(metrics), best ? "  (best)" : ", no better"));
}

void Trainer::save() {
  state_.seconds = seconds();
  state_.peak_resident_bytes = std::max(state_.peak_resident_bytes, peak_resident_bytes());
  auto parts = learner_->gather();
  parts.base = base_;
  // If a checkpoint cannot be written, all processes end.
  processes_.run_or_fail_together([&] {
    if (!processes_.is_first()) return;
    if (const auto name = find_not_finite(parts))
      fail(fmt::format("step {}: {} has elements that are not numbers", state_.step, *name));
    save_checkpoint(run_dir_, parts, state_,
                    {.newest = std::max(config_.keep_checkpoints, config_.average_last.value_or(0)),
                     .every = config_.checkpoint_every});
    directory_->committed();
  });
}

void Trainer::report(std::string message) const {
  if (!options_.on_progress || !processes_.is_first()) return;
  options_.on_progress({.step = state_.step,
                        .steps = config_.steps,
                        .seconds = seconds(),
                        .max_seconds = config_.max_seconds,
                        .status = status_,
                        .message = std::move(message),
                        .metrics = newest_});
}

}  // namespace

TrainResult train(const Experiment& experiment, const TrainOptions& options) {
  return Trainer(experiment, options).run();
}

std::function<void(const TrainProgress&)> progress_on_stderr(std::string_view title) {
  // Made after the first step, because only then it is known how many steps are done already, and how many
  // there are.
  const auto shown = std::make_shared<std::unique_ptr<Progress>>();
  return [shown, name = std::string(title)](const TrainProgress& progress) {
    if (!*shown) {
      if (!progress.message.empty()) return Progress(name, {}).message(progress.message);
      *shown = std::make_unique<Progress>(
          name, ProgressCount{.total = progress.steps, .unit = "steps", .first = progress.step});
    }
    if (!progress.message.empty()) (*shown)->message(progress.message);
    std::optional<TimeLimit> limit;
    if (progress.max_seconds) limit = {.used = progress.seconds, .total = *progress.max_seconds};
    (*shown)->update(progress.step, progress.status, limit);
  };
}

}  // namespace zoo
