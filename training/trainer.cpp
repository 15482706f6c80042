#include "training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "io/error.h"
#include "io/files.h"
#include "io/machine.h"
#include "io/metrics_log.h"
#include "io/progress.h"
#include "models/cost.h"
#include "training/checkpoint.h"
#include "training/gradient_accumulator.h"
#include "training/initial_weights.h"
#include "training/memory.h"
#include "training/optimizer.h"
#include "training/run_directory.h"
#include "training/schedule.h"
#include "training/task.h"
#include "training/weight_average.h"

namespace zoo {
namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

class Trainer {
 public:
  Trainer(const Experiment& experiment, const TrainOptions& options);
  TrainResult run();

 private:
  struct MicroBatch {
    Batch batch;
    int64_t epoch, index;
  };
  struct Step {
    double loss, lr, grad_norm;
  };

  std::vector<MicroBatch> next_batches();
  Step take_step(const std::vector<MicroBatch>& batches);
  bool overflowed(double loss, double grad_norm) const;
  void check_finite(const torch::Tensor& losses, double grad_norm,
                    const std::vector<MicroBatch>& batches) const;
  std::optional<TrainEnd> why_to_end() const;
  double time_used() const { return config_.max_seconds ? seconds() / *config_.max_seconds : 0; }
  bool due(int64_t every) const { return state_.step % every == 0; }
  double seconds() const { return seconds_before_ + watch_.seconds(); }
  void log(const Step& step);
  void evaluate();
  bool keep_if_best(double loss);
  void try_mean();
  void save();
  TrainedParts parts() { return {*model_, *optimizer_, average_.get(), options_.device}; }
  void report(std::string message = {}) const;

  Experiment experiment_;
  const TrainingConfig& config_ = experiment_.training;
  TrainOptions options_;
  RunDirectory directory_;
  TensorMemory memory_;  // before the first tensor
  const Precision precision_ = resolve(config_.precision, options_.device, experiment_.model.d_model);
  std::unique_ptr<Task> task_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<GradientAccumulator> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<MovingAverage> average_;
  std::unique_ptr<MetricsLog> metrics_;
  TrainingState state_;

  Stopwatch watch_;
  double seconds_before_ = 0;  // of earlier parts of this run
  double busy_seconds_ = 0;    // in steps, since the last row of metrics
  int64_t tokens_at_log_ = 0;
  std::string status_;
};

Trainer::Trainer(const Experiment& experiment, const TrainOptions& options)
    : experiment_(experiment),
      options_(options),
      directory_(experiment, options.run_dir, options.existing),
      memory_(options.device) {
  if (config_.threads > 0) at::set_num_threads(static_cast<int>(config_.threads));
  // Everything that can be wrong with the configuration or the data is found before an earlier run is
  // replaced.
  task_ = directory_.goes_on() ? open_task(experiment_, directory_.vocabulary()) : make_task(experiment_);
  torch::manual_seed(static_cast<uint64_t>(config_.seed));
  model_ = make_model(experiment_, *task_);
  if (experiment_.init_from && !directory_.checkpoint())
    report(load_initial_weights(experiment_, *task_, *model_));
  model_->to(options_.device);
  model_->train();
  model_->checkpoint_activations(config_.activation_checkpointing);
  task_->batches(Split::train);
  task_->batches(Split::valid);
  gradients_ = std::make_unique<GradientAccumulator>(
      model_, GradientOptions{.label_smoothing = config_.label_smoothing, .precision = precision_});
  optimizer_ = std::make_unique<Optimizer>(config_.optimizer, parameters_of(*model_));
  if (config_.ema_decay) average_ = std::make_unique<MovingAverage>(*model_, *config_.ema_decay);

  state_.loss_scale = LossScale::for_precision(precision_);
  if (const auto checkpoint = directory_.checkpoint()) {
    state_ = load_checkpoint(*checkpoint, parts());
    report(fmt::format("goes on after step {} of {}", state_.step, config_.steps));
  }
  directory_.begin(task_->vocabulary());
  directory_.truncate_samples(state_.sample_bytes);
  std::error_code ignored;
  std::filesystem::remove(directory_.path() / kFailureFile, ignored);
  metrics_ = std::make_unique<MetricsLog>(directory_.path(), state_.step);
  seconds_before_ = state_.seconds;
  tokens_at_log_ = state_.tokens;
}

TrainResult Trainer::run() {
  watch_ = {};
  auto end = why_to_end();
  while (!end) {
    const Stopwatch busy;
    const Step step = take_step(next_batches());
    busy_seconds_ += busy.seconds();

    end = why_to_end();
    const bool last = end && *end != TrainEnd::interrupted;
    if (last || due(config_.log_every)) log(step);
    report();
    if (last || due(config_.evaluate_every)) evaluate();
    if (last && config_.average_last) try_mean();
    if (end || due(config_.checkpoint_every)) save();
  }
  return {.run_dir = directory_.path(),
          .end = *end,
          .step = state_.step,
          .best_loss = state_.best_loss,
          .best_step = state_.best_step,
          .seconds = seconds()};
}

Trainer::Step Trainer::take_step(const std::vector<MicroBatch>& batches) {
  const double lr = learning_rate(config_, experiment_.model.d_model, state_.step, time_used());
  int64_t n_targets = 0;
  for (const auto& micro : batches) n_targets += micro.batch.n_targets();

  std::vector<torch::Tensor> losses;
  for (const auto& micro : batches) {
    losses.push_back(gradients_->add(micro.batch, n_targets, state_.loss_scale.value));
    state_.tokens += micro.batch.tokens;
    // The backward pass costs twice the forward one: a product for the weights and one for the input.
    state_.flops += 3 * forward_flops(experiment_.model, task_->purpose(), pass_shape(micro.batch));
  }
  if (const double scale = state_.loss_scale.value; scale != 1.0) {
    const torch::NoGradGuard no_grad;
    at::_foreach_mul_(optimizer_->gradients(), 1 / scale);
  }
  losses.push_back(clip_grad_norm(optimizer_->gradients(), config_.clip_grad_norm));

  const auto numbers = torch::stack(losses).to(torch::kCPU, torch::kDouble);  // the only wait for the device
  const double grad_norm = numbers[-1].item<double>();
  const auto loss = numbers.narrow(0, 0, numbers.numel() - 1);
  const double total = loss.sum().item<double>();
  if (overflowed(total, grad_norm)) {
    state_.loss_scale.update(Overflow::yes);
  } else {
    check_finite(loss, grad_norm, batches);
    optimizer_->step(lr);
    if (average_) average_->update();
    if (precision_ == Precision::fp16) state_.loss_scale.update(Overflow::no);
  }
  optimizer_->zero_grad();
  state_.peak_memory_bytes = std::max(state_.peak_memory_bytes, memory_.peak());
  ++state_.step;
  if (std::isfinite(total)) {
    ++state_.steps_since_log;
    state_.loss_since_log += total;
  }
  return {.loss = total, .lr = lr, .grad_norm = grad_norm};
}

/// The batches of one step, and moves on to those of the next.
std::vector<Trainer::MicroBatch> Trainer::next_batches() {
  BatchSource& source = task_->batches(Split::train);
  std::vector<MicroBatch> result;
  for (int64_t i = 0; i < config_.gradient_accumulation; ++i) {
    if (state_.batch >= source.n_batches(state_.epoch)) {
      ++state_.epoch;
      state_.batch = 0;
    }
    result.push_back({source.batch(state_.epoch, state_.batch), state_.epoch, state_.batch});
    ++state_.batch;
  }
  return result;
}

/// Whether the scaled gradients were too large for fp16. The step is left out then, and the next scale is
/// smaller.
bool Trainer::overflowed(double loss, double grad_norm) const {
  return precision_ == Precision::fp16 && state_.loss_scale.value > LossScale::least &&
         !(std::isfinite(loss) && std::isfinite(grad_norm));
}

/// A step that would ruin the weights is not taken.
void Trainer::check_finite(const torch::Tensor& losses, double grad_norm,
                           const std::vector<MicroBatch>& batches) const {
  const auto fail = [&](const MicroBatch& micro, std::string_view what, double value) {
    const auto checkpoint = newest_checkpoint(directory_.path());
    const auto message = fmt::format(
        "step {}, epoch {}, batch {}: {} is {}; {}; a lower training.optimizer.lr or a longer "
        "warm-up may help",
        state_.step + 1, micro.epoch, micro.index, what, value,
        checkpoint ? fmt::format("the last checkpoint is {}", checkpoint->string())
                   : "there is no checkpoint yet");
    write_file_atomically(directory_.path() / kFailureFile, message + "\n");
    throw TrainingError(message);
  };
  for (size_t i = 0; i < batches.size(); ++i) {
    const double loss = losses[static_cast<int64_t>(i)].item<double>();
    if (!std::isfinite(loss)) fail(batches[i], "the loss", loss);
  }
  if (!std::isfinite(grad_norm)) fail(batches.back(), "the norm of the gradient", grad_norm);
}

std::optional<TrainEnd> Trainer::why_to_end() const {
  if (state_.step >= config_.steps) return TrainEnd::all_steps;
  if (time_used() >= 1) return TrainEnd::out_of_time;
  if (options_.should_stop && options_.should_stop()) return TrainEnd::interrupted;
  return std::nullopt;
}

void Trainer::log(const Step& step) {
  // NaN where every step since the last row overflowed: nothing that is not finite is written.
  const double loss = state_.loss_since_log / static_cast<double>(state_.steps_since_log);
  const double rate = static_cast<double>(state_.tokens - tokens_at_log_) / busy_seconds_;
  Metrics row = {
      {"train_loss", loss},          {"lr", step.lr},
      {"grad_norm", step.grad_norm}, {"tokens_per_second", rate},
      {"flops", state_.flops},       {"peak_memory_bytes", static_cast<double>(state_.peak_memory_bytes)}};
  if (precision_ == Precision::fp16) {
    row.emplace("loss_scale", state_.loss_scale.value);
    row.emplace("skipped_steps", static_cast<double>(state_.loss_scale.skipped));
  }
  std::erase_if(row, [](const auto& entry) { return !std::isfinite(entry.second); });
  metrics_->write(state_.step, state_.tokens, seconds(), row);
  status_ = fmt::format("loss {:.4f}  {:.1f} k tokens/s", loss, rate / 1000);
  state_.loss_since_log = 0;
  state_.steps_since_log = 0;
  tokens_at_log_ = state_.tokens;
  busy_seconds_ = 0;
}

void Trainer::evaluate() {
  std::optional<SubstituteWeights> averaged;
  if (average_) averaged.emplace(*model_, average_->weights());
  const Metrics metrics = task_->evaluate(*model_, Split::valid, config_.evaluate_batches);
  Metrics row = {{"flops", state_.flops}};
  for (const auto& [name, value] : metrics) {
    if (name != "tokens") row.emplace("valid_" + name, value);
  }
  metrics_->write(state_.step, state_.tokens, seconds(), row);
  const double loss = metrics.at("loss");
  state_.sample_bytes += directory_.append_sample(fmt::format(
      "=== step {}, validation loss {:.4f}\n{}\n", state_.step, loss, to_text(task_->samples(*model_))));

  const bool best = keep_if_best(loss);
  std::string text;
  for (const auto& [name, value] : metrics) {
    if (name != "tokens") text += fmt::format("  {} {:.4f}", name, value);
  }
  report(fmt::format("step {}: validation{}{}", state_.step, text, best ? "  (best)" : ""));
}

/// Makes the model, as it is now, the run's if it is the best so far, and says whether it is.
bool Trainer::keep_if_best(double loss) {
  if (!std::isfinite(loss) || (state_.best_loss && loss >= *state_.best_loss)) return false;
  save_weights(directory_.path() / "model.safetensors", *model_);
  state_.best_loss = loss;
  state_.best_step = state_.step;
  return true;
}

/// Tries the mean of the last checkpoints' weights, those of now among them.
void Trainer::try_mean() {
  std::vector<std::filesystem::path> files;
  std::vector<int64_t> steps = {state_.step};
  for (const auto& checkpoint : checkpoints_of(directory_.path())) {
    const int64_t step = *step_of(checkpoint);
    // What a stop left does not count: a run that was stopped ends as one that was not.
    if (step >= state_.step || step % config_.checkpoint_every != 0) continue;
    if (std::ssize(steps) == *config_.average_last) break;
    files.push_back(checkpoint / "model.safetensors");
    steps.push_back(step);
  }
  if (files.empty()) return report("training.average_last: there is no checkpoint before the last step");

  const SubstituteWeights mean(*model_, mean_weights(*model_, files));
  const double loss = task_->evaluate(*model_, Split::valid, config_.evaluate_batches).at("loss");
  metrics_->write(state_.step, state_.tokens, seconds(), {{"mean_valid_loss", loss}});
  const bool best = keep_if_best(loss);
  report(fmt::format("mean of the weights at steps {}: validation loss {:.4f}{}", fmt::join(steps, ", "),
                     loss, best ? "  (best)" : ", no better"));
}

void Trainer::save() {
  state_.seconds = seconds();
  state_.peak_resident_bytes = std::max(state_.peak_resident_bytes, peak_resident_bytes());
  save_checkpoint(directory_.path(), parts(), state_,
                  {.newest = std::max(config_.keep_checkpoints, config_.average_last.value_or(0)),
                   .every = config_.checkpoint_every});
  directory_.committed();
}

void Trainer::report(std::string message) const {
  if (!options_.on_progress) return;
  options_.on_progress(
      {.step = state_.step, .steps = config_.steps, .status = status_, .message = std::move(message)});
}

}  // namespace

TrainResult train(const Experiment& experiment, const TrainOptions& options) {
  return Trainer(experiment, options).run();
}

std::function<void(const TrainProgress&)> progress_on_stderr(std::string_view title) {
  // Made at the first call, when it is known how many steps are done already.
  const auto shown = std::make_shared<std::unique_ptr<Progress>>();
  return [shown, name = std::string(title)](const TrainProgress& progress) {
    if (!*shown) *shown = std::make_unique<Progress>(name, progress.steps, progress.step);
    if (!progress.message.empty()) (*shown)->message(progress.message);
    (*shown)->update(progress.step, progress.status);
  };
}

}  // namespace zoo
