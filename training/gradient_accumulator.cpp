#include "training/gradient_accumulator.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/cross_entropy.h"
#include "layers/random.h"

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// sums[i] += terms[i]; a tensor that is not there is zero.
void add_to(Tensors& sums, const Tensors& terms) {
  const torch::NoGradGuard no_grad;
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
  if (!targets.empty()) at::_foreach_add_(targets, sources);
}

Tensors gradients_of(const torch::Tensor& output, const torch::Tensor& output_gradient,
                     const Tensors& inputs) {
  const Tensors output_gradients = output_gradient.defined() ? Tensors{output_gradient} : Tensors{};
  return torch::autograd::grad({output}, inputs, output_gradients, /*retain_graph=*/false,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::shared_ptr<Model> model, const GradientOptions& options)
    : model_(std::move(model)), options_(options) {
  for (const auto& parameter : model_->parameters()) {
    if (!parameter.requires_grad()) continue;
    parameters_.push_back(parameter);
    parameter_bytes_ += static_cast<int64_t>(parameter.nbytes());
  }
}

int64_t GradientAccumulator::n_parts(const Batch& batch) const {
  if (!model_->device().is_cpu()) return 1;
  // Threads with gradients of their own: more memory than this would better be spent on larger batches.
  constexpr int64_t most_bytes = int64_t{1} << 30;
  const int64_t n_threads = options_.n_parts > 0 ? options_.n_parts : at::get_num_threads();
  const int64_t n_rows = batch.input.batch_size();
  const int64_t n_parts = std::min(n_rows, n_threads);
  // Threads are idle where there are a few rows more than threads, or fewer.
  const double busy =
      static_cast<double>(n_rows) / static_cast<double>((n_rows + n_parts - 1) / n_parts * n_threads);
  return busy >= 0.8 && n_parts * parameter_bytes_ <= most_bytes ? n_parts : 1;
}

torch::Tensor GradientAccumulator::add(const Batch& batch, int64_t n_targets, double scale) {
  const double weight = scale / static_cast<double>(n_targets);
  const uint64_t seed = draw_seed();
  std::vector<Result> results;
  if (const int64_t n = n_parts(batch); n == 1) {
    const RandomScope random({seed});
    results.push_back(differentiate(batch.to(model_->device()), weight));
  } else {
    const auto parts = split_rows(batch, n);
    results.resize(parts.size());
    const at::ThreadLocalState state;  // gradients are recorded there as here, and memory is counted
    at::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
      const at::ThreadLocalStateGuard guard(state);
      for (int64_t i = begin; i < end; ++i) {
        const RandomScope random({seed, static_cast<uint64_t>(i)});
        results[static_cast<size_t>(i)] = differentiate(parts[static_cast<size_t>(i)], weight);
      }
    });
  }

  auto& total = results.front();
  for (size_t i = 1; i < results.size(); ++i) {
    total.loss += results[i].loss;
    add_to(total.gradients, results[i].gradients);
    results[i].gradients.clear();
  }
  Tensors existing;
  for (const auto& parameter : parameters_) existing.push_back(parameter.grad());
  add_to(existing, total.gradients);
  for (size_t i = 0; i < existing.size(); ++i) parameters_[i].mutable_grad() = existing[i];
  return scale == 1.0 ? total.loss : total.loss / scale;
}

GradientAccumulator::Result GradientAccumulator::differentiate(const Batch& batch, double weight) const {
  const int64_t bytes_per_target = model_->n_outputs() * static_cast<int64_t>(sizeof(float));
  const int64_t piece = std::max(options_.fewest_targets, options_.logits_bytes / bytes_per_target);
  const PrecisionScope precision(options_.precision, model_->device().type());
  const auto features = model_->features(batch);
  if (batch.n_targets() > piece) return differentiate_in_pieces(batch, features, piece, weight);
  const auto loss = cross_entropy_sum(model_->logits(features), batch.targets,
                                      {.label_smoothing = options_.label_smoothing, .weight = weight});
  return {loss.detach(), gradients_of(loss, {}, parameters_)};
}

// The graph is cut at the features. Each piece's gradient with respect to them is made at once, and its
// logits are gone before the next ones come.
GradientAccumulator::Result GradientAccumulator::differentiate_in_pieces(const Batch& batch,
                                                                         const torch::Tensor& features,
                                                                         int64_t piece, double weight) const {
  const auto all = features.detach();
  Tensors gradients(parameters_.size()), feature_gradients;
  auto total = torch::zeros({}, all.options().dtype(torch::kFloat));
  const int64_t n = batch.n_targets(), n_pieces = (n + piece - 1) / piece;
  for (int64_t i = 0; i < n_pieces; ++i) {
    const int64_t begin = n * i / n_pieces, count = n * (i + 1) / n_pieces - begin;
    Tensors inputs = parameters_;
    inputs.push_back(all.narrow(0, begin, count).requires_grad_());
    const auto loss = cross_entropy_sum(model_->logits(inputs.back()), batch.targets.narrow(0, begin, count),
                                        {.label_smoothing = options_.label_smoothing, .weight = weight});
    total += loss.detach();
    auto found = gradients_of(loss, {}, inputs);
    feature_gradients.push_back(found.back());
    found.pop_back();
    add_to(gradients, found);
  }
  add_to(gradients, gradients_of(features, torch::cat(feature_gradients), parameters_));
  return {total, std::move(gradients)};
}

}  // namespace zoo
