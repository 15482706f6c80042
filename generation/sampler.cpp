#include "generation/sampler.h"

#include <cmath>

#include <ATen/core/PhiloxRNGEngine.h>
#include <torch/types.h>

#include "base/error.h"

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

}  // namespace

double uniform(uint64_t seed, const Draw& draw) {
  at::Philox4_32 engine(seed, draw.prompt << 32 | (draw.sample & 0xFFFFFFFF), draw.position);
  const uint64_t high = engine();
  const uint64_t low = engine();
  return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

std::vector<int64_t> GreedySampler::sample(const torch::Tensor& logits, std::span<const Draw>) const {
  const auto [best, tokens] = logits.max(1);
  return checked(tokens, best);
}

std::vector<int64_t> RandomSampler::sample(const torch::Tensor& logits, std::span<const Draw> draws) const {
  std::vector<double> numbers;
  for (const auto& draw : draws) numbers.push_back(uniform(seed_, draw));
  const auto u = torch::tensor(numbers, torch::kFloat64).to(logits.device()).unsqueeze(1);  // (B, 1)
  const auto mass = logits.to(torch::kFloat64).softmax(1).cumsum(1);                        // (B, V)
  const auto total = mass.narrow(1, mass.size(1) - 1, 1);
  // The point stays below the total, so a first token beyond it exists, and has a probability above 0.
  const auto point = torch::minimum(u * total, torch::nextafter(total, torch::zeros_like(total)));
  const auto tokens = torch::searchsorted(mass, point, /*out_int32=*/false, /*right=*/true);
  return checked(tokens.squeeze(1), total.squeeze(1));
}

}  // namespace zoo
