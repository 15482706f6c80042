#include "generation/rules/constrained_tokens.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace zoo {

ConstrainedTokens::ConstrainedTokens(std::shared_ptr<TokenConstraint> constraint, LogitsProcessors others)
    : constraint_(std::move(constraint)), others_(std::move(others)) {}

torch::Tensor ConstrainedTokens::process(const torch::Tensor& logits,
                                         std::span<const SequenceView> rows) const {
  constexpr double impossible = -std::numeric_limits<double>::infinity();
  std::vector<torch::Tensor> allowed;
  for (const auto& row : rows) allowed.push_back(constraint_->allowed(row.prompt, row.generated));
  const auto found = std::ranges::find_if(allowed, [](const auto& tokens) { return tokens.defined(); });
  if (found == allowed.end()) return zoo::process(others_, logits, rows);
  const auto everything = torch::ones_like(*found);
  for (auto& tokens : allowed) {
    if (!tokens.defined()) tokens = everything;
  }
  const auto tokens = torch::stack(allowed);  // (B, V) of the vocabulary
  const int64_t n = std::min(tokens.size(1), logits.size(1));
  auto left = torch::full_like(logits, impossible);
  left.narrow(1, 0, n).copy_(logits.narrow(1, 0, n).masked_fill(
      tokens.narrow(1, 0, n).logical_not().to(logits.device()), impossible));
  // A token that is forced is possible even if it was not before.
  const auto result = zoo::process(others_, left, rows).masked_fill(left.isneginf(), impossible);
  const auto has_token = result.amax(1, /*keepdim=*/true) > impossible;  // (B, 1)
  return torch::where(has_token, result, left);
}

}  // namespace zoo
