#include "generation/rules/logits_processors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <torch/types.h>

namespace zoo {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

/// The rows after which a rule holds.
std::vector<int64_t> rows_of(const HoldsAfter& holds, std::span<const SequenceView> rows) {
  std::vector<int64_t> result;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (holds(rows[row])) result.push_back(static_cast<int64_t>(row));
  }
  return result;
}

/// `logits` without the tokens below `least` (B, 1); the likeliest stay.
torch::Tensor at_least(const torch::Tensor& logits, const torch::Tensor& probabilities,
                       const torch::Tensor& least) {
  const auto is_best = logits >= logits.amax(1, /*keepdim=*/true);
  return logits.masked_fill((probabilities < least).logical_and(is_best.logical_not()), kImpossible);
}

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

bool SuppressTokens::add_to(RowRules& rules) const {
  if (!rules.add(RowRules::Step::suppressed)) return false;
  rules.suppressed = sorted_;
  rules.vocab_size = vocab_size_;
  return true;
}

torch::Tensor ForbiddenTokens::process(const torch::Tensor& logits,
                                       std::span<const SequenceView> rows) const {
  const auto where = rows_of(holds_, rows);
  if (where.empty()) return logits;
  auto result = logits.clone();
  for (const int64_t row : where) {
    for (const int64_t id : ids_) {
      if (id < logits.size(1)) result[row][id].fill_(kImpossible);
    }
  }
  return result;
}

torch::Tensor ForcedToken::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  const auto where = rows_of(holds_, rows);
  if (where.empty() || id_ >= logits.size(1)) return logits;
  auto result = logits.clone();
  for (const int64_t row : where) {
    result[row].fill_(kImpossible);
    result[row][id_].fill_(0);
  }
  return result;
}

torch::Tensor LengthDecay::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  constexpr double largest = 1e30;  // a score that is multiplied by it stays finite
  auto result = logits;
  for (size_t row = 0; row < rows.size(); ++row) {
    const double n = static_cast<double>(rows[row].generated.size()) - start_;
    if (n <= 0) continue;
    if (result.is_same(logits)) result = logits.clone();
    for (const int64_t id : ends_) {
      if (id >= logits.size(1)) continue;
      auto score = result[static_cast<int64_t>(row)][id];
      const auto raised = score + score.abs() * (std::min(std::pow(factor_, n), largest) - 1);
      score.copy_(torch::where(score.isfinite(), raised, score));
    }
  }
  return result;
}

double Temperature::divisor(double temperature) {
  constexpr double smallest = 1e-30, largest = 1e30;
  return std::clamp(temperature, smallest, largest);
}

torch::Tensor Temperature::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (temperature_ == 1.0) return logits;
  // The largest logit is subtracted first, so nothing overflows: with a tiny temperature the likeliest token
  // has 0 and all others are far below.
  return (logits - logits.amax(1, /*keepdim=*/true)) / divisor(temperature_);
}

bool Temperature::add_to(RowRules& rules) const {
  rules.temperature = temperature_;
  return rules.add(RowRules::Step::temperature);
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

bool TopK::add_to(RowRules& rules) const {
  rules.top_k = k_;
  return rules.add(RowRules::Step::top_k);
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

bool TopP::add_to(RowRules& rules) const {
  rules.top_p = p_;
  return rules.add(RowRules::Step::top_p);
}

torch::Tensor MinP::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  if (p_ <= 0) return logits;
  const auto least = logits.amax(1, /*keepdim=*/true) + std::log(p_);  // (B, 1)
  return logits.masked_fill(logits < least, kImpossible);
}

bool MinP::add_to(RowRules& rules) const {
  rules.min_p = p_;
  return rules.add(RowRules::Step::min_p);
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

torch::Tensor EpsilonCutoff::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  return at_least(logits, logits.softmax(1), torch::full({1, 1}, least_, logits.options()));
}

torch::Tensor EtaCutoff::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  const auto logprobs = logits.log_softmax(1);
  const auto probabilities = logprobs.exp();
  const auto entropy = -(logprobs * probabilities).nansum(1, /*keepdim=*/true);  // (B, 1)
  return at_least(logits, probabilities, (std::sqrt(epsilon_) * (-entropy).exp()).clamp_max(epsilon_));
}

torch::Tensor Renormalised::process(const torch::Tensor& logits, std::span<const SequenceView>) const {
  return logits.log_softmax(1);
}

}  // namespace zoo
