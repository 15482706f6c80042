#include "analysis/causes/baseline_path.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "analysis/causes/repeated_rows.h"
#include "base/error.h"
#include "base/named_enum.h"

namespace zoo {
namespace {

/// Puts other vectors in the place of tokens, or keeps those that are there.
class VectorObserver final : public TokenVectorObserver {
 public:
  explicit VectorObserver(GradientInputs inputs = {}) : inputs_(std::move(inputs)) {}
  torch::Tensor on(StackSide side, const torch::Tensor& vectors) override {
    return inputs_.try_emplace(side, vectors.detach()).first->second;
  }
  const GradientInputs& inputs() const { return inputs_; }

 private:
  GradientInputs inputs_;
};

/// The vectors of tokens (…) as the embedder gets them.
torch::Tensor vectors_of(const TokenEmbeddingImpl& table, const torch::Tensor& ids) {
  return table.matrix().rows(ids) * table.options.scale();
}

torch::Tensor mean_vector(const TokenEmbeddingImpl& table, torch::Device device) {
  constexpr int64_t rows_at_once = 4096;
  const int64_t n = table.options.vocab_size();
  torch::Tensor sum;
  for (int64_t first = 0; first < n; first += rows_at_once) {
    const auto ids =
        torch::arange(first, std::min(n, first + rows_at_once), torch::dtype(torch::kInt64).device(device));
    const auto part = vectors_of(table, ids).to(torch::kDouble).sum(0);
    sum = sum.defined() ? sum + part : part;
  }
  return (sum / n).to(torch::kFloat);
}

}  // namespace

BaselinePath::BaselinePath(Model& model, Batch batch, AttributionBaseline baseline, int64_t token)
    : model_(model), batch_(std::move(batch)), is_picture_(batch_.fields.contains(fields::kImages)) {
  if (is_picture_) {
    input_.emplace(StackSide::only, batch_.field(fields::kImages));
  } else {
    embedders_ = token_embedders_of(model);
    VectorObserver observer;
    const TokenVectorScope scope(model, observer);
    model.features(batch_);
    input_ = observer.inputs();
  }
  for (const auto& [side, input] : input_) baseline_.emplace(side, baseline_of(side, input, baseline, token));
}

torch::Tensor BaselinePath::baseline_of(StackSide side, const torch::Tensor& input,
                                        AttributionBaseline baseline, int64_t token) const {
  switch (baseline) {
    case AttributionBaseline::zero:
      return torch::zeros_like(input);
    case AttributionBaseline::mean:
      if (is_picture_) return input.mean({2, 3}, /*keepdim=*/true).expand_as(input);
      return mean_vector(embedders_.at(side)->table(), input.device())
          .to(input.scalar_type())
          .expand_as(input);
    case AttributionBaseline::pad:
    case AttributionBaseline::mask:
      break;
  }
  if (is_picture_)
    throw UsageError(fmt::format("a picture has no tokens, so the baseline cannot be {}: choose zero or mean",
                                 name_of(baseline)));
  const auto id = torch::full({1}, token, torch::dtype(torch::kInt64).device(input.device()));
  return vectors_of(embedders_.at(side)->table(), id).expand_as(input);
}

GradientInputs BaselinePath::at(std::span<const double> points) const {
  GradientInputs inputs;
  for (const auto& [side, input] : input_) {
    std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
    shape.front() = std::ssize(points);
    const auto shares =
        torch::tensor(std::vector<double>(points.begin(), points.end())).to(input.options()).view(shape);
    inputs.emplace(side, baseline_.at(side) + shares * difference(side));
  }
  return inputs;
}

torch::Tensor BaselinePath::logits(const GradientInputs& inputs, int64_t place) const {
  const int64_t n = inputs.begin()->second.size(0);
  auto rows = repeated_rows(batch_, n);
  torch::Tensor features;
  if (is_picture_) {
    rows.fields[fields::kImages] = inputs.at(StackSide::only);
    features = model_.features(rows);
  } else {
    VectorObserver observer(inputs);
    const TokenVectorScope scope(model_, observer);
    features = model_.features(rows);
  }
  return model_.logits(features.view({n, -1, features.size(-1)}).select(1, place));
}

}  // namespace zoo
