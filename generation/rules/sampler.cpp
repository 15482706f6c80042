#include "generation/rules/sampler.h"

#include <algorithm>
#include <cmath>

#include <ATen/core/PhiloxRNGEngine.h>
#include <torch/types.h>

#include "base/error.h"
#include "models/model.h"

namespace zoo {
namespace {

/// The tokens (B) int64. Fails if an entry of `evidence` (B) is not finite. Both are transferred at once.
std::vector<int64_t> checked(const torch::Tensor& tokens, const torch::Tensor& evidence) {
  const auto both = torch::stack({tokens.to(torch::kFloat64), evidence.to(torch::kFloat64)}).cpu();
  const auto values = both.accessor<double, 2>();
  std::vector<int64_t> result;
  for (int64_t i = 0; i < tokens.size(0); ++i) {
    if (!std::isfinite(values[1][i])) fail_not_a_number();
    result.push_back(static_cast<int64_t>(values[0][i]));
  }
  return result;
}

/// The same on the host. Fails if a mass is not a number.
std::vector<int64_t> chosen_at(const std::vector<double>& shares, const torch::Tensor& mass) {
  const auto numbers = torch::tensor(shares, torch::kFloat64).to(mass.device()).unsqueeze(1);  // (B, 1)
  const auto [tokens, total] = tokens_at(numbers, mass);
  return checked(tokens, total);
}

torch::Tensor probabilities(const torch::Tensor& logits) { return logits.to(torch::kFloat64).softmax(1); }

/// Random numbers for the same token that do not depend on each other.
enum class Purpose : uint64_t { token = 0, draft = 1, acceptance = 2, replacement = 3 };
double uniform_for(Purpose purpose, uint64_t seed, Draw draw) {
  draw.position |= static_cast<uint64_t>(purpose) << 62;
  return uniform(seed, draw);
}

}  // namespace

double uniform(uint64_t seed, const Draw& draw) {
  at::Philox4_32 engine(seed, draw.prompt << 32 | (draw.sample & 0xFFFFFFFF), draw.position);
  const uint64_t high = engine();
  const uint64_t low = engine();
  return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

double number_of_token(uint64_t seed, const Draw& draw) { return uniform_for(Purpose::token, seed, draw); }

TokensAt tokens_at(const torch::Tensor& numbers, const torch::Tensor& mass) {
  const auto sums = mass.cumsum(1);
  const auto total = sums.narrow(1, sums.size(1) - 1, 1);
  // The point stays below the total, so a first token beyond it exists, and has a probability above 0.
  const auto point = torch::minimum(numbers * total, torch::nextafter(total, torch::zeros_like(total)));
  const auto tokens = torch::searchsorted(sums, point, /*out_int32=*/false, /*right=*/true);
  return {.tokens = tokens.squeeze(1), .total = total.squeeze(1)};
}

bool GreedySampler::add_to(RowRules& rules) const {
  rules.seed.reset();
  return rules.add(RowRules::Step::choice);
}

bool RandomSampler::add_to(RowRules& rules) const {
  rules.seed = seed_;
  return rules.add(RowRules::Step::choice);
}

std::vector<int64_t> GreedySampler::sample(const torch::Tensor& logits, std::span<const Draw>) const {
  const auto [best, tokens] = logits.max(1);
  return checked(tokens, best);
}

std::vector<int64_t> RandomSampler::sample(const torch::Tensor& logits, std::span<const Draw> draws) const {
  std::vector<double> numbers;
  for (const auto& draw : draws) numbers.push_back(number_of_token(seed_, draw));
  return chosen_at(numbers, probabilities(logits));
}

Sampler::Drafted Sampler::draft(const torch::Tensor& logits, const Draw& draw) const {
  return {.token = sample(logits, {&draw, 1}).front(), .distribution = {}};
}

std::vector<int64_t> Sampler::check(const Proposal& proposal, const torch::Tensor& logits,
                                    std::span<const Draw> draws) const {
  auto tokens = sample(logits, draws);
  const auto n_equal = std::ranges::mismatch(tokens, proposal.tokens).in1 - tokens.begin();
  tokens.resize(static_cast<size_t>(n_equal) + 1);
  return tokens;
}

Sampler::Drafted RandomSampler::draft(const torch::Tensor& logits, const Draw& draw) const {
  const auto distribution = probabilities(logits);
  const auto token = chosen_at({uniform_for(Purpose::draft, seed_, draw)}, distribution).front();
  return {.token = token, .distribution = distribution[0]};
}

std::vector<int64_t> RandomSampler::check(const Proposal& proposal, const torch::Tensor& logits,
                                          std::span<const Draw> draws) const {
  if (!proposal.distributions.defined()) return Sampler::check(proposal, logits, draws);
  const auto model = probabilities(logits);
  std::vector<int64_t> tokens;
  for (const int64_t token : proposal.tokens) {
    const size_t i = tokens.size();
    const auto p = model[static_cast<int64_t>(i)], q = proposal.distributions[static_cast<int64_t>(i)];
    const double u = uniform_for(Purpose::acceptance, seed_, draws[i]);
    if (u * q[token].item<double>() < p[token].item<double>()) {
      tokens.push_back(token);
      continue;
    }
    auto rest = (p - q).clamp_min(0).unsqueeze(0);
    // Equal distributions differ by rounding only.
    if (rest.sum().item<double>() == 0) rest = p.unsqueeze(0);
    tokens.push_back(chosen_at({uniform_for(Purpose::replacement, seed_, draws[i])}, rest).front());
    return tokens;
  }
  const auto n = static_cast<int64_t>(tokens.size());
  tokens.push_back(sample(logits.narrow(0, n, 1), draws.subspan(tokens.size(), 1)).front());
  return tokens;
}

}  // namespace zoo
