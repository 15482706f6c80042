#include "generation/speculation.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

namespace zoo {
namespace {

TokenIds whole(const SequenceView& text) {
  TokenIds ids(text.prompt.begin(), text.prompt.end());
  ids.insert(ids.end(), text.generated.begin(), text.generated.end());
  return ids;
}

/// How many tokens before position `a` and before position `b` > a are equal, at most `most`.
int64_t n_equal_before(const TokenIds& ids, int64_t a, int64_t b, int64_t most) {
  int64_t n = 0;
  while (n < most && n < a && ids[static_cast<size_t>(a - 1 - n)] == ids[static_cast<size_t>(b - 1 - n)]) ++n;
  return n;
}

}  // namespace

Proposal PromptLookup::propose(const SequenceView& text, int64_t most, const Draw&) {
  constexpr int64_t kMostCompared = 8, kFarthest = 8192;  // tokens
  const auto ids = whole(text);
  const int64_t size = std::ssize(ids), first = std::max<int64_t>(1, size - kFarthest);
  int64_t best = 0, n_best = 1;  // at least two tokens agree
  for (int64_t place = size - 1; place >= first; --place) {
    const int64_t n = n_equal_before(ids, place, size, kMostCompared);
    if (n > n_best) best = place, n_best = n;
    if (n_best == kMostCompared) break;
  }
  if (best == 0) return {};
  const int64_t end = std::min(best + most, size);
  return {.tokens = {ids.begin() + best, ids.begin() + end}};
}

/// The logits after `text`, (1, V) float32. The state takes back the tokens of another text.
torch::Tensor DraftModel::read(const TokenIds& text) {
  const auto same = std::ranges::mismatch(read_, text).in1 - read_.begin();
  const int64_t n_kept = std::min<int64_t>(same, std::ssize(text) - 1);
  const std::vector<int64_t> rest(text.begin() + n_kept, text.end());
  const TokenBatch tokens{.ids = torch::tensor(rest, torch::kInt64).unsqueeze(0).to(device_)};
  if (n_kept == 0) {
    state_ = model_.begin({.input = tokens});
  } else {
    state_.truncate({n_kept});
  }
  read_ = text;
  return model_.forward(tokens, state_).to(torch::kFloat32);
}

Proposal DraftModel::propose(const SequenceView& text, int64_t most, const Draw& draw) {
  auto ids = whole(text);
  most = std::min(most, model_.max_length() - std::ssize(ids));
  Proposal proposal;
  std::vector<torch::Tensor> distributions;
  TokenIds generated(text.generated.begin(), text.generated.end());
  for (int64_t i = 0; i < most; ++i) {
    const SequenceView view{.prompt = text.prompt, .generated = generated};
    auto at = draw;
    at.position += static_cast<uint64_t>(i);
    const auto [token, distribution] =
        rules_->sampler->draft(process(rules_->processors, read(ids), {{view}}), at);
    proposal.tokens.push_back(token);
    if (distribution.defined()) distributions.push_back(distribution);
    ids.push_back(token);
    generated.push_back(token);
  }
  if (!distributions.empty()) proposal.distributions = torch::stack(distributions);
  return proposal;
}

}  // namespace zoo
