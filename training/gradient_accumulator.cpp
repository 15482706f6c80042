#include "training/gradient_accumulator.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/random.h"
#include "base/tensor_memory.h"
#include "kernels/tensor_lists.h"
#include "layers/activation_checkpointing.h"
#include "layers/experts.h"
#include "models/comparing_model.h"
#include "parallel/threads.h"
#include "training/gradient_collector.h"

namespace zoo {
namespace {

/// The part of a batch that this thread is taking through the model, for hooks of tensors, which are given
/// only a gradient. On a GPU there is only part 0, which is the value in autograd's own threads, too.
thread_local size_t current_part = 0;

/// `what`: the kind of parts, and what to do about it.
[[noreturn]] void fail_to_split(const Model& model, std::string_view what) {
  if (comparing_of(model)) {
    throw ConfigError(fmt::format(
        "model.architecture: a dual_encoder learns from all pairs of a batch, which cannot be split into {}",
        what));
  }
  throw ConfigError(fmt::format(
      "model.architecture: batch norm is over all rows of a batch, which cannot be split into {}, or choose "
      "norm: group or frozen_batch",
      what));
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::shared_ptr<Model> model,
                                         std::shared_ptr<const Objective> objective,
                                         const GradientOptions& options)
    : model_(std::move(model)), objective_(std::move(objective)), options_(options) {
  TORCH_CHECK(model_ && objective_, "gradients need a model and an objective");
  experts_ = experts_of(*model_);
  for (const auto& parameter : model_->parameters()) {
    if (!parameter.requires_grad()) continue;
    parameters_.push_back(parameter);
    parameter_bytes_ += static_cast<int64_t>(parameter.nbytes());
  }
}

GradientAccumulator::GradientAccumulator(std::shared_ptr<Model> model,
                                         std::shared_ptr<const Objective> objective,
                                         const GradientOptions& options, const ProcessGroup& processes,
                                         const ReducerOptions& reducer)
    : GradientAccumulator(std::move(model), std::move(objective), options) {
  if (processes.is_alone()) return;
  if (model_->mixes_rows()) fail_to_split(*model_, "processes: train with one process");
  processes_ = &processes;
  exchanges_ = std::ranges::any_of(experts_, &ExpertsImpl::is_divided);
  reducer_ = std::make_unique<GradientReducer>(processes, parameters_, reducer);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(parameters_[i].register_hook([this, i](const torch::Tensor& gradient) {
      if (collector_ && !is_recomputing()) collector_->mark_ready(current_part, i, gradient);
    }));
  }
}

GradientAccumulator::~GradientAccumulator() {
  for (size_t i = 0; i < hooks_.size(); ++i) parameters_[i].remove_hook(hooks_[i]);
}

torch::Tensor GradientAccumulator::differentiate(const BatchSequence& batches, double scale,
                                                 std::optional<OutOfMemory> out_of_memory,
                                                 GradientExchange exchange) {
  const uint64_t seed = draw_seed();
  for (;;) {
    try {
      return try_to_differentiate(batches, scale, seed, exchange);
    } catch (const c10::OutOfMemoryError&) {
      // Gradients that the other processes have already received cannot be taken back.
      if (out_of_memory.value_or(options_.out_of_memory) == OutOfMemory::fail || collector_) throw;
    }
    take_fewer_rows(batches);
  }
}

void GradientAccumulator::exchange() {
  if (!reducer_) return;
  reducer_->begin();
  for (size_t i = 0; i < parameters_.size(); ++i) reducer_->mark_ready(i, parameters_[i].grad());
  reducer_->finish();
}

void GradientAccumulator::take_fewer_rows(const BatchSequence& batches) {
  int64_t most = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (const auto rows = own_rows(batches[i])) most = std::max(most, rows->n_rows());
  }
  if (options_.micro_batch_size > 0) most = std::min(most, options_.micro_batch_size);
  if (most <= 1) fail_out_of_memory();
  options_.micro_batch_size = (most + 1) / 2;
  for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  free_cached_memory(model_->device());
}

void GradientAccumulator::rehearse(const Batch& rows) const {
  const double weight = 1.0 / static_cast<double>(std::max<int64_t>(objective_->n_targets(rows), 1));
  differentiate_parts(rows, static_cast<size_t>(n_parts(rows)), weight, draw_seed());
}

torch::Tensor GradientAccumulator::try_to_differentiate(const BatchSequence& batches, double scale,
                                                        uint64_t seed, GradientExchange exchange) {
  int64_t n_targets = 0;
  for (size_t i = 0; i < batches.size(); ++i) n_targets += objective_->n_targets(batches[i]);
  const double weight = scale / static_cast<double>(std::max<int64_t>(n_targets, 1));
  for (const auto& experts : experts_) experts->begin_step();
  torch::Tensor losses;  // one tensor for all: there may be a million
  int64_t first_row = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const bool is_last = i + 1 == batches.size();
    torch::Tensor loss;
    Batch batch = batches[i];
    batch.first_row = first_row;
    first_row += batch.n_rows();
    const auto all = micro_batches(batch);
    for (const auto& micro_batch : all) {
      const auto& rows = micro_batch.rows;
      const size_t n = rows ? static_cast<size_t>(n_parts(*rows)) : 1;
      if (reducer_ && exchange == GradientExchange::in_last_pass && is_last && &micro_batch == &all.back()) {
        reducer_->begin();
        collector_ = std::make_unique<GradientCollector>(parameters_, n, *reducer_);
      }
      for (const auto& experts : experts_) experts->weigh_losses(weight * micro_batch.share);
      auto results = differentiate_parts(rows, n, weight * micro_batch.share, seed);
      for (const auto& result : results) loss = loss.defined() ? loss + result.loss : result.loss;
      if (!collector_) accumulate(std::move(results));
    }
    if (!losses.defined()) losses = torch::empty({static_cast<int64_t>(batches.size())}, loss.options());
    losses[static_cast<int64_t>(i)].copy_(loss);
  }
  if (collector_) {
    collector_.reset();
    reducer_->finish();
  }
  return scale == 1.0 ? losses : losses / scale;
}

/// The rows of this process. If there are fewer rows than processes, some processes have none.
std::optional<Batch> GradientAccumulator::own_rows(const Batch& batch) const {
  if (!processes_) return batch;
  const int64_t n_shares = std::min(processes_->size(), batch.n_rows());
  if (processes_->rank() >= n_shares) return std::nullopt;
  return take_part(batch, processes_->rank(), n_shares);
}

/// The rows of this process in the order in which they go through the model: at least one micro-batch, which
/// may be nullopt.
std::vector<GradientAccumulator::MicroBatch> GradientAccumulator::micro_batches(const Batch& batch) const {
  if (exchanges_) return equally_many(batch);
  auto rows = own_rows(batch);
  const int64_t n_rows = rows ? rows->n_rows() : 0, at_once = options_.micro_batch_size;
  std::vector<MicroBatch> result;
  if (n_rows > at_once && at_once > 0 && model_->mixes_rows())
    fail_to_split(*model_, "micro-batches: let all its rows through the model at once");
  if (at_once == 0 || n_rows <= at_once) {
    result.push_back({std::move(rows)});
  } else {
    for (auto& micro_batch : split_rows(*rows, (n_rows + at_once - 1) / at_once))
      result.push_back({std::move(micro_batch)});
  }
  return result;
}

/// As many as the process with the most rows needs.
std::vector<GradientAccumulator::MicroBatch> GradientAccumulator::equally_many(const Batch& batch) const {
  const int64_t n_shares = std::min(processes_->size(), batch.n_rows()), at_once = options_.micro_batch_size;
  const int64_t most_rows = (batch.n_rows() + n_shares - 1) / n_shares;
  const int64_t n = at_once == 0 ? 1 : (most_rows + at_once - 1) / at_once;
  std::vector<MicroBatch> result;
  if (const auto rows = own_rows(batch)) {
    for (auto& part : split_rows(*rows, std::min(n, rows->n_rows()))) result.push_back({std::move(part)});
  }
  while (std::ssize(result) < n) result.push_back({.rows = take_part(batch, 0, batch.n_rows()), .share = 0});
  return result;
}

int64_t GradientAccumulator::most_parts() const {
  return options_.n_parts > 0 ? options_.n_parts : at::get_num_threads();
}

int64_t GradientAccumulator::n_parts(const Batch& rows) const {
  if (!model_->device().is_cpu() || model_->mixes_rows() || exchanges_) return 1;
  // Limit for the gradients of all threads together: more memory is better spent on larger batches.
  constexpr int64_t most_bytes = int64_t{1} << 30;
  const int64_t n_threads = most_parts();
  const int64_t n_rows = rows.n_rows();
  const int64_t n_parts = std::min(n_rows, n_threads);
  // Threads are idle if there are fewer rows than threads, or slightly more.
  const int64_t most_rows = (n_rows + n_parts - 1) / n_parts;
  const double busy = static_cast<double>(n_rows) / static_cast<double>(most_rows * n_threads);
  return busy >= 0.8 && n_parts * parameter_bytes_ <= most_bytes ? n_parts : 1;
}

std::vector<LossAndGradients> GradientAccumulator::differentiate_parts(const std::optional<Batch>& rows,
                                                                       size_t n, double weight,
                                                                       uint64_t seed) const {
  std::vector<LossAndGradients> results(n);
  if (!rows) {
    results.front() = {torch::zeros({}, torch::dtype(torch::kFloat).device(model_->device())),
                       Gradients(parameters_.size())};
    if (collector_) collector_->finish(0);
    return results;
  }
  const auto take = [&](size_t i, const Batch& part) {
    const RandomScope random({seed});
    const RowScope numbered(part.first_row);
    current_part = i;
    results[i] = differentiate_part(part, weight, i);
    current_part = 0;
    if (collector_) collector_->finish(i);
  };
  if (n == 1) {
    take(0, model_->on_device(*rows));
    return results;
  }
  const auto parts = split_rows(*rows, static_cast<int64_t>(n));
  for_each_on_one_thread(static_cast<int64_t>(n),
                         [&](int64_t i) { take(static_cast<size_t>(i), parts[static_cast<size_t>(i)]); });
  return results;
}

/// Adds the parts' gradients to the parameters' gradients.
void GradientAccumulator::accumulate(std::vector<LossAndGradients> results) {
  auto& total = results.front().gradients;
  for (size_t i = 1; i < results.size(); ++i) {
    add_gradients(total, results[i].gradients);
    results[i].gradients.clear();
  }
  Gradients existing;
  for (const auto& parameter : parameters_) existing.push_back(parameter.grad());
  add_gradients(existing, total);
  for (size_t i = 0; i < existing.size(); ++i) parameters_[i].mutable_grad() = existing[i];
}

LossAndGradients GradientAccumulator::differentiate_part(const Batch& part, double weight,
                                                         size_t index) const {
  const PrecisionScope precision(options_.precision, model_->device().type());
  GradientRequest request{.parameters = parameters_, .weight = weight};
  if (collector_)
    request.before_last_pass = [&](Gradients earlier) {
      collector_->begin_last_pass(index, std::move(earlier));
    };
  return objective_->differentiate(*model_, part, request);
}

void fail_out_of_memory(std::string_view details) {
  throw TrainingError(fmt::format(
      "training.batch_size: auto: a step with one sequence at a time needs more memory than there "
      "is: set training.activation_checkpointing=every_layer, shorten data.sequence_length, or use "
      "a smaller model{}",
      details));
}

}  // namespace zoo
