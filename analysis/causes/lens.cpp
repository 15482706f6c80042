#include "analysis/causes/lens.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/inference_scope.h"
#include "models/observation_scope.h"

namespace zoo {
namespace {

constexpr int64_t kPlacesAtOnce = 256;  // limits the memory of probabilities

/// Puts the residuals of all depths, mapped, in the place of the last one, as further rows of the batch.
class AllDepths final : public ActivationObserver {
 public:
  AllDepths(StackSide side, int64_t n_layers, const TrainedLens& lens)
      : side_(side), n_layers_(n_layers), lens_(lens) {}
  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override {
    if (place.kind != ActivationKind::residual || place.side != side_) return x;
    const bool is_last = place.layer == n_layers_;
    residuals_.push_back(is_last || lens_.empty() ? x : lens_[static_cast<size_t>(place.layer)](x));
    return is_last ? torch::cat(residuals_) : x;
  }

 private:
  StackSide side_;
  int64_t n_layers_;
  const TrainedLens& lens_;
  std::vector<torch::Tensor> residuals_;
};

/// The batch with its positions in the rows of all depths.
Batch with_all_positions(Batch batch, int64_t n_depths) {
  if (!batch.positions.defined()) return batch;
  const int64_t n = batch.decoder.defined() ? batch.decoder.ids.numel() : batch.input.ids.numel();
  std::vector<torch::Tensor> positions;
  for (int64_t depth = 0; depth < n_depths; ++depth) positions.push_back(batch.positions + depth * n);
  batch.positions = torch::cat(positions);
  return batch;
}

LensCell cell_of(const torch::Tensor& log_shares, const torch::Tensor& final_log_shares, int64_t target,
                 const Question& question, int64_t n) {
  LensCell cell;
  const auto [values, ids] = log_shares.topk(std::min(n, log_shares.size(0)));
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const auto id = ids[i].item<int64_t>();
    cell.likeliest.push_back(
        {.id = id, .label = question.label(id), .probability = std::exp(values[i].item<double>())});
  }
  const auto own = log_shares[target].item<double>();
  cell.probability = std::exp(own);
  cell.rank = 1 + log_shares.gt(own).sum().item<int64_t>();
  cell.divergence =
      (final_log_shares.exp() * (final_log_shares - log_shares)).sum().clamp_min(0).item<double>();
  return cell;
}

/// (M, V): in double on the CPU.
torch::Tensor log_shares_of(const torch::Tensor& logits) {
  const auto shares = logits.to(torch::kCPU, torch::kDouble).log_softmax(-1);
  if (shares.isnan().any().item<bool>()) fail_not_a_number();
  return shares;
}

}  // namespace

std::vector<torch::Tensor> lens_features(Model& model, const Batch& batch, const TrainedLens& lens) {
  const auto stacks = stacks_of(model);
  const int64_t n_layers = stacks.empty() ? 0 : std::ssize(stacks.back()->layers);
  TORCH_CHECK(lens.empty() || std::ssize(lens) == n_layers, "a map for each of ", n_layers, " layers");
  AllDepths observer(stacks.size() == 1 ? StackSide::only : StackSide::decoder, n_layers, lens);
  const ObservationScope scope(model, observer);
  return model.features(with_all_positions(batch, n_layers + 1)).chunk(n_layers + 1);
}

void lens_logits(Model& model, const Batch& batch,
                 const std::function<void(int64_t depth, const torch::Tensor& logits)>& look,
                 const TrainedLens& lens) {
  const InferenceScope inference(model);
  int64_t depth = 0;
  for (const auto& features : lens_features(model, batch, lens)) look(depth++, model.logits(features));
}

LensReading::LensReading(Model& model, Question question, const LensOptions& options)
    : model_(model), n_likeliest_(options.n_likeliest) {
  const InferenceScope inference(model);
  const auto logits = model.logits(model.features(question.batch));
  fill_targets(question, logits);
  own_ = log_shares_of(logits);
  features_ = lens_features(model, question.batch, options.lens);
  report_.kind = options.lens.empty() ? LensKind::plain : LensKind::trained;
  report_.question = std::move(question);
}

void LensReading::go_on() {
  const InferenceScope inference(model_);
  const auto logits = model_.logits(features_.at(report_.depths.size()));
  const auto& question = report_.question;
  std::vector<LensCell> cells;
  for (int64_t begin = 0; begin < logits.size(0); begin += kPlacesAtOnce) {
    const int64_t count = std::min(kPlacesAtOnce, logits.size(0) - begin);
    const auto shares = log_shares_of(logits.narrow(0, begin, count));
    for (int64_t i = 0; i < count; ++i)
      cells.push_back(cell_of(shares[i], own_[begin + i], question.targets[static_cast<size_t>(begin + i)],
                              question, n_likeliest_));
  }
  report_.depths.push_back(std::move(cells));
}

LensContributions lens_contributions(Model& model, const Question& question, int64_t place) {
  LensContributions result{.place = place, .output = question.targets[static_cast<size_t>(place)]};
  try {
    result.contributions = logit_contributions(model, question.batch, place, result.output);
  } catch (const UsageError& error) {
    result.reason = error.what();
  }
  return result;
}

LensReport lens_report(Model& model, Question question, const LensOptions& options) {
  LensReading reading(model, std::move(question), options);
  while (reading.has_more()) reading.go_on();
  return std::move(reading).report();
}

}  // namespace zoo
