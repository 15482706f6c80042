#include "generation/rules/logits_processors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <torch/types.h>

namespace zoo {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

}  // namespace

torch::Tensor process(const LogitsProcessors& processors, torch::Tensor logits,
                      std::span<const SequenceView> rows) {
  for (const auto& processor : processors) logits = processor->process(logits, rows);
  return logits;
}

SuppressTokens::SuppressTokens(const TokenIds& ids, int64_t vocab_size, torch::Device device)
    : sorted_(ids), vocab_size_(vocab_size) {
  std::ranges::sort(sorted_);
  on_device_ = torch::tensor(sorted_, torch::kInt64).to(device);
}

torch::Tensor SuppressTokens::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  const int64_t unused = std::max<int64_t>(0, logits.size(1) - vocab_size_);
  const auto n_ids = std::ranges::lower_bound(sorted_, logits.size(1)) - sorted_.begin();
  if (n_ids == 0 && unused == 0) return logits;
  auto result = logits.index_fill(1, on_device_.narrow(0, 0, n_ids), kImpossible);
  result.narrow(1, logits.size(1) - unused, unused).fill_(kImpossible);
  return result;
}

torch::Tensor TokenBiases::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  auto result = logits.clone();
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] < logits.size(1)) result.select(1, ids_[i]).add_(biases_[i]);
  }
  return result;
}

torch::Tensor ForcedToken::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  auto result = logits;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (std::ssize(rows[row].generated) != position_) continue;
    if (result.is_same(logits)) result = logits.clone();
    auto scores = result[static_cast<int64_t>(row)];
    const auto kept = logits[static_cast<int64_t>(row)][id_].clone();
    scores.fill_(-std::numeric_limits<float>::infinity());
    scores[id_].copy_(kept);
  }
  return result;
}

torch::Tensor Temperature::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (temperature_ == 1.0) return logits;
  // The largest logit is subtracted first, so nothing overflows: with a tiny temperature the likeliest token
  // has 0 and all others are far below.
  constexpr double smallest = 1e-30, largest = 1e30;
  return (logits - logits.amax(1, /*keepdim=*/true)) / std::clamp(temperature_, smallest, largest);
}

torch::Tensor TopK::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (k_ >= logits.size(1)) return logits;
  const auto least =
      std::get<0>(logits.topk(k_, 1)).select(1, k_ - 1).unsqueeze(1);  // (B, 1): the k-th largest
  const auto above = logits > least;
  const auto equal = logits == least;
  const auto room = k_ - above.sum(1, /*keepdim=*/true);
  return logits.masked_fill(above.logical_or(equal.logical_and(equal.cumsum(1) <= room)).logical_not(),
                            kImpossible);
}

torch::Tensor TopP::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (p_ >= 1.0) return logits;
  const auto order = std::get<1>(torch::sort(logits, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const auto mass = logits.to(torch::kFloat64).softmax(1).gather(1, order).cumsum(1);  // (B, V), sorted
  // A token stays if the tokens before it sum to less than p. The first one always stays.
  auto stays = torch::ones_like(order, torch::kBool);
  if (mass.size(1) > 1) stays.narrow(1, 1, mass.size(1) - 1).copy_(mass.narrow(1, 0, mass.size(1) - 1) < p_);
  const auto keep = torch::empty_like(stays).scatter_(1, order, stays);
  return logits.masked_fill(keep.logical_not(), kImpossible);
}

torch::Tensor MinP::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (p_ <= 0) return logits;
  const auto least = logits.amax(1, /*keepdim=*/true) + std::log(p_);  // (B, 1)
  return logits.masked_fill(logits < least, kImpossible);
}

torch::Tensor TypicalP::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (mass_ >= 1) return logits;
  const auto logprobs = logits.to(torch::kFloat64).log_softmax(1);
  const auto probabilities = logprobs.exp();
  const auto entropy = -(logprobs * probabilities).nansum(1, /*keepdim=*/true);  // (B, 1)
  const auto distance = (-logprobs - entropy).abs();
  const auto [sorted, order] = distance.sort(1);
  const auto mass = probabilities.gather(1, order).cumsum(1);
  const auto last = (mass < mass_).sum(1, /*keepdim=*/true).clamp_max(logits.size(1) - 1);
  return logits.masked_fill(distance > sorted.gather(1, last), kImpossible);
}

torch::Tensor MinNewTokens::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  auto result = logits;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (std::ssize(rows[row].generated) >= n_) continue;
    if (result.is_same(logits)) result = logits.clone();
    for (const int64_t id : ends_) {
      if (id < logits.size(1)) result[static_cast<int64_t>(row)][id].fill_(kImpossible);
    }
  }
  return result;
}

}  // namespace zoo
