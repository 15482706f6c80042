#include "training/gradients/gradient_accumulator.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "layers/activation_checkpointing.h"
#include "layers/kernels/cross_entropy.h"
#include "layers/kernels/tensor_lists.h"
#include "training/gradients/memory.h"
#include "training/parallel/gradient_arrivals.h"

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// sums[i] += terms[i]; a tensor that is not there is zero.
void add_what_is_there(Tensors& sums, const Tensors& terms) {
  Tensors targets, sources;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i].defined()) continue;
    if (!sums[i].defined()) {
      sums[i] = terms[i];
    } else {
      targets.push_back(sums[i]);
      sources.push_back(terms[i]);
    }
  }
  add_to(targets, sources);
}

Tensors gradients_of(const torch::Tensor& output, const torch::Tensor& output_gradient,
                     const Tensors& inputs) {
  const Tensors output_gradients = output_gradient.defined() ? Tensors{output_gradient} : Tensors{};
  return torch::autograd::grad({output}, inputs, output_gradients, /*retain_graph=*/false,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

/// The part of a batch that this thread is taking through the model: a hook of a tensor is told nothing but a
/// gradient. The threads of a GPU's backward pass know of one part only.
thread_local size_t current_part = 0;

}  // namespace

GradientAccumulator::GradientAccumulator(std::shared_ptr<Model> model, const GradientOptions& options)
    : model_(std::move(model)), options_(options) {
  for (const auto& parameter : model_->parameters()) {
    if (!parameter.requires_grad()) continue;
    parameters_.push_back(parameter);
    parameter_bytes_ += static_cast<int64_t>(parameter.nbytes());
  }
}

GradientAccumulator::GradientAccumulator(std::shared_ptr<Model> model, const GradientOptions& options,
                                         const ProcessGroup& processes, const ReducerOptions& reducer)
    : GradientAccumulator(std::move(model), options) {
  if (processes.is_alone()) return;
  processes_ = &processes;
  reducer_ = std::make_unique<GradientReducer>(processes, parameters_, reducer);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(parameters_[i].register_hook([this, i](const torch::Tensor& gradient) {
      if (arrivals_ && !is_recomputing()) arrivals_->arrive(current_part, i, gradient);
    }));
  }
}

GradientAccumulator::~GradientAccumulator() {
  for (size_t i = 0; i < hooks_.size(); ++i) parameters_[i].remove_hook(hooks_[i]);
}

torch::Tensor GradientAccumulator::differentiate(const std::vector<Batch>& batches, double scale) {
  for (;;) {
    try {
      return try_to_differentiate(batches, scale);
    } catch (const c10::OutOfMemoryError&) {
      // What the other processes have already had cannot be taken back.
      if (options_.out_of_memory == OutOfMemory::fail || arrivals_) throw;
    }
    take_fewer_rows(batches);
  }
}

void GradientAccumulator::take_fewer_rows(const std::vector<Batch>& batches) {
  int64_t most = 0;
  for (const auto& batch : batches) {
    if (const auto rows = own_rows(batch)) most = std::max(most, rows->input.batch_size());
  }
  if (options_.rows_at_once > 0) most = std::min(most, options_.rows_at_once);
  if (most <= 1) fail_with_one_sequence();
  options_.rows_at_once = (most + 1) / 2;
  for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  free_cached_memory(model_->device());
}

void GradientAccumulator::rehearse(const Batch& rows) const {
  const double weight = 1.0 / static_cast<double>(std::max<int64_t>(rows.n_targets(), 1));
  differentiate_parts(rows, static_cast<size_t>(n_parts(rows)), weight, {.seed = draw_seed()});
}

torch::Tensor GradientAccumulator::try_to_differentiate(const std::vector<Batch>& batches, double scale) {
  int64_t n_targets = 0;
  for (const auto& batch : batches) n_targets += batch.n_targets();
  const double weight = scale / static_cast<double>(std::max<int64_t>(n_targets, 1));
  Tensors losses;
  for (const auto& batch : batches) {
    const bool is_last = losses.size() + 1 == batches.size();
    torch::Tensor loss;
    const auto all = slices(batch);
    // One seed a batch: processes with more slices than others would draw more, and go apart.
    Draws draws{.seed = draw_seed(),
                .first_part = processes_ ? static_cast<uint64_t>(processes_->rank() * most_parts()) : 0};
    for (const auto& rows : all) {
      const size_t n = rows ? static_cast<size_t>(n_parts(*rows)) : 1;
      if (reducer_ && is_last && &rows == &all.back()) {
        reducer_->begin();
        arrivals_ = std::make_unique<GradientArrivals>(parameters_, n, *reducer_);
      }
      auto results = differentiate_parts(rows, n, weight, draws);
      ++draws.slice;
      for (const auto& result : results) loss = loss.defined() ? loss + result.loss : result.loss;
      if (!arrivals_) accumulate(std::move(results));
    }
    losses.push_back(loss);
  }
  if (arrivals_) {
    arrivals_.reset();
    reducer_->finish();
  }
  const auto result = at::stack(losses);
  return scale == 1.0 ? result : result / scale;
}

/// The rows of this process; none where there are fewer rows than processes.
std::optional<Batch> GradientAccumulator::own_rows(const Batch& batch) const {
  if (!processes_) return batch;
  const int64_t n_shares = std::min(processes_->size(), batch.input.batch_size());
  if (processes_->rank() >= n_shares) return std::nullopt;
  return take_part(batch, processes_->rank(), n_shares);
}

/// The rows of this process in the order in which they go through the model. There is always a last one.
std::vector<std::optional<Batch>> GradientAccumulator::slices(const Batch& batch) const {
  auto rows = own_rows(batch);
  const int64_t n_rows = rows ? rows->input.batch_size() : 0, at_once = options_.rows_at_once;
  std::vector<std::optional<Batch>> result;
  if (at_once == 0 || n_rows <= at_once) {
    result.push_back(std::move(rows));
  } else {
    for (auto& slice : split_rows(*rows, (n_rows + at_once - 1) / at_once))
      result.emplace_back(std::move(slice));
  }
  return result;
}

int64_t GradientAccumulator::most_parts() const {
  return options_.n_parts > 0 ? options_.n_parts : at::get_num_threads();
}

int64_t GradientAccumulator::n_parts(const Batch& rows) const {
  if (!model_->device().is_cpu()) return 1;
  // Threads with gradients of their own: more memory than this would better be spent on larger batches.
  constexpr int64_t most_bytes = int64_t{1} << 30;
  const int64_t n_threads = most_parts();
  const int64_t n_rows = rows.input.batch_size();
  const int64_t n_parts = std::min(n_rows, n_threads);
  // Threads are idle where there are a few rows more than threads, or fewer.
  const int64_t most_rows = (n_rows + n_parts - 1) / n_parts;
  const double busy = static_cast<double>(n_rows) / static_cast<double>(most_rows * n_threads);
  return busy >= 0.8 && n_parts * parameter_bytes_ <= most_bytes ? n_parts : 1;
}

std::vector<GradientAccumulator::Result> GradientAccumulator::differentiate_parts(
    const std::optional<Batch>& rows, size_t n, double weight, const Draws& draws) const {
  std::vector<Result> results(n);
  if (!rows) {
    results.front() = {torch::zeros({}, torch::dtype(torch::kFloat).device(model_->device())),
                       Tensors(parameters_.size())};
    if (arrivals_) arrivals_->finish(0);
    return results;
  }
  const auto take = [&](size_t i, const Batch& part) {
    const RandomScope random({draws.seed, draws.place(i)});
    current_part = i;
    results[i] = differentiate_part(part, weight, i);
    current_part = 0;
    if (arrivals_) arrivals_->finish(i);
  };
  if (n == 1) {
    take(0, rows->to(model_->device()));
    return results;
  }
  const auto parts = split_rows(*rows, static_cast<int64_t>(n));
  const at::ThreadLocalState state;  // gradients are recorded there as here, and memory is counted
  at::parallel_for(0, static_cast<int64_t>(n), 1, [&](int64_t begin, int64_t end) {
    const at::ThreadLocalStateGuard guard(state);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) take(i, parts[i]);
  });
  return results;
}

/// Adds what the parts have found to the parameters' gradients.
void GradientAccumulator::accumulate(std::vector<Result> results) {
  auto& total = results.front().gradients;
  for (size_t i = 1; i < results.size(); ++i) {
    add_what_is_there(total, results[i].gradients);
    results[i].gradients.clear();
  }
  Tensors existing;
  for (const auto& parameter : parameters_) existing.push_back(parameter.grad());
  add_what_is_there(existing, total);
  for (size_t i = 0; i < existing.size(); ++i) parameters_[i].mutable_grad() = existing[i];
}

GradientAccumulator::Result GradientAccumulator::differentiate_part(const Batch& part, double weight,
                                                                    size_t index) const {
  const int64_t bytes_per_target = model_->n_outputs() * static_cast<int64_t>(sizeof(float));
  const int64_t piece = std::max(options_.fewest_targets, options_.logits_bytes / bytes_per_target);
  const PrecisionScope precision(options_.precision, model_->device().type());
  const auto features = model_->features(part);
  if (part.n_targets() > piece) return differentiate_in_pieces(part, features, piece, weight, index);
  const auto loss = cross_entropy_sum(model_->logits(features), part.targets,
                                      {.label_smoothing = options_.label_smoothing, .weight = weight});
  if (arrivals_) arrivals_->listen(index, {});
  return {loss.detach(), gradients_of(loss, {}, parameters_)};
}

// The graph is cut at the features. Each piece's gradient with respect to them is made at once, and its
// logits are gone before the next ones come.
GradientAccumulator::Result GradientAccumulator::differentiate_in_pieces(const Batch& part,
                                                                         const torch::Tensor& features,
                                                                         int64_t piece, double weight,
                                                                         size_t index) const {
  const auto all = features.detach();
  Tensors gradients(parameters_.size()), feature_gradients;
  auto total = torch::zeros({}, all.options().dtype(torch::kFloat));
  const int64_t n = part.n_targets(), n_pieces = (n + piece - 1) / piece;
  for (int64_t i = 0; i < n_pieces; ++i) {
    const int64_t begin = n * i / n_pieces, count = n * (i + 1) / n_pieces - begin;
    Tensors inputs = parameters_;
    inputs.push_back(all.narrow(0, begin, count).requires_grad_());
    const auto loss = cross_entropy_sum(model_->logits(inputs.back()), part.targets.narrow(0, begin, count),
                                        {.label_smoothing = options_.label_smoothing, .weight = weight});
    total += loss.detach();
    auto found = gradients_of(loss, {}, inputs);
    feature_gradients.push_back(found.back());
    found.pop_back();
    add_what_is_there(gradients, found);
  }
  if (arrivals_) arrivals_->listen(index, gradients);
  add_what_is_there(gradients, gradients_of(features, torch::cat(feature_gradients), parameters_));
  return {total, std::move(gradients)};
}

}  // namespace zoo
