#include "generation/rows/prompt_reading.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "base/transfer.h"

namespace zoo {
namespace {

TokenBatch one_row(const TokenIds& ids, int64_t first, int64_t last, torch::Device device) {
  const std::vector<int64_t> some(ids.begin() + first, ids.begin() + last);
  return {.ids = torch::tensor(some, torch::kInt64).unsqueeze(0).to(device)};
}

bool begins_with(const TokenIds& ids, const TokenIds& beginning) {
  return ids.size() > beginning.size() &&
         std::ranges::equal(std::span(ids).first(beginning.size()), beginning);
}

}  // namespace

std::optional<DecodingState> PrefixCache::find(const TokenIds& prompt) {
  auto best = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const bool longer = best == entries_.end() || entry->tokens.size() > best->tokens.size();
    if (longer && begins_with(prompt, entry->tokens)) best = entry;
  }
  if (best == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, best);
  return best->state.copy();
}

int64_t PrefixCache::n_shared(const TokenIds& prompt) const {
  int64_t most = 0;
  for (const auto& entry : entries_) {
    const auto difference = std::ranges::mismatch(prompt, entry.tokens);
    most = std::max<int64_t>(most, difference.in1 - prompt.begin());
  }
  return most;
}

void PrefixCache::keep(TokenIds beginning, const DecodingState& state) {
  const int64_t size = state.bytes();
  const bool known =
      std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.tokens == beginning; });
  if (known || size > most_bytes_) return;
  for (bytes_ += size; bytes_ > most_bytes_; entries_.pop_back()) bytes_ -= entries_.back().state.bytes();
  entries_.push_front({.tokens = std::move(beginning), .state = state.copy()});
}

PromptReading::PromptReading(GenerativeModel& model, torch::Device device, PrefixCache& cache,
                             TokenIds prompt, BatchFields fields, int64_t piece)
    : model_(model),
      device_(device),
      cache_(cache),
      prompt_(std::move(prompt)),
      fields_(std::move(fields)),
      piece_(piece),
      n_shared_(cache.n_shared(prompt_) / piece * piece) {
  if (!model_.continues_prompt()) return;
  if (auto beginning = cache_.find(prompt_)) {
    state_ = std::move(*beginning);
    n_read_ = state_.lengths().front();
  }
}

int64_t PromptReading::read() {
  if (!model_.continues_prompt()) {
    const Batch sources{.input = one_row(prompt_, 0, size(), device_), .fields = fields_};
    logits_ = model_.prefill(sources.to(device_), state_).to(torch::kFloat32);
    return size();
  }
  const int64_t first = n_read_;
  n_read_ = std::min(first + piece_, size());
  const auto tokens = one_row(prompt_, first, n_read_, device_);
  if (first == 0) state_ = model_.begin({.input = tokens});
  const auto logits = model_.forward(tokens, state_);
  if (n_read_ == size()) {
    logits_ = logits.to(torch::kFloat32);
  } else {
    keep_state();
  }
  return n_read_ - first;
}

void PromptReading::read_together(const std::vector<PromptReading*>& prompts) {
  auto& model = prompts.front()->model_;
  const auto device = prompts.front()->device_;
  const auto n_rows = std::ssize(prompts);
  int64_t longest = 0;
  for (const auto* const prompt : prompts) longest = std::max(longest, prompt->size());
  auto ids = torch::zeros({n_rows, longest}, torch::kInt64);
  std::vector<int64_t> lengths, last;
  for (int64_t b = 0; b < n_rows; ++b) {
    const auto& tokens = prompts[static_cast<size_t>(b)]->prompt_;
    std::ranges::copy(tokens, ids.mutable_data_ptr<int64_t>() + b * longest);
    lengths.push_back(std::ssize(tokens));
    last.push_back(b * longest + lengths.back() - 1);
  }
  // Padding is read like tokens, and forgotten. Causality hides it, so there is no mask of its own.
  const TokenBatch all{.ids = sent(ids, device)};
  auto state = model.begin({.input = all});
  const auto at = LogitsAt::positions(sent(torch::tensor(last, torch::kInt64), device));
  const auto logits = model.forward(all, state, at).to(torch::kFloat32);
  state.truncate(lengths);
  for (int64_t b = 0; b < n_rows; ++b) {
    auto& prompt = *prompts[static_cast<size_t>(b)];
    prompt.n_read_ = lengths[static_cast<size_t>(b)];
    prompt.state_ = state.shared_row(b);
    prompt.logits_ = logits.narrow(0, b, 1);
    prompt.keep_beginnings();
  }
}

/// Keeps the states that keep_state() would keep if the prompt were read piece by piece.
void PromptReading::keep_beginnings() {
  const int64_t last = last_whole_piece();
  for (const int64_t n : {n_shared_, last}) {
    if (n == 0 || n > last || !cache_.is_wanted()) continue;
    auto beginning = state_.copy();
    beginning.truncate({n});
    cache_.keep({prompt_.begin(), prompt_.begin() + n}, beginning.row(0));
  }
}

/// The last whole piece serves the same prompt, or one that goes on from it; a piece that an earlier prompt
/// shares serves others that begin alike.
void PromptReading::keep_state() {
  if (n_read_ == last_whole_piece() || n_read_ == n_shared_)
    cache_.keep({prompt_.begin(), prompt_.begin() + n_read_}, state_);
}

}  // namespace zoo
