#include "generation/sequence_reader.h"

#include <algorithm>

#include <torch/types.h>

namespace zoo {

bool shorten(TokenIds& sequence, int64_t limit) {
  if (std::ssize(sequence) <= limit) return false;
  sequence.erase(sequence.begin(), sequence.end() - (limit + 1) / 2);
  return true;
}

TokenBatch SequenceReader::padded(const std::vector<TokenIds>& rows) const {
  const auto n_rows = std::ssize(rows);
  int64_t longest = 0, shortest = std::ssize(rows.front());
  for (const auto& row : rows) {
    longest = std::max(longest, std::ssize(row));
    shortest = std::min(shortest, std::ssize(row));
  }
  auto ids = torch::zeros({n_rows, longest}, torch::kInt64);
  auto lengths = torch::empty({n_rows}, torch::kInt64);
  for (int64_t b = 0; b < n_rows; ++b) {
    const auto& row = rows[static_cast<size_t>(b)];
    std::ranges::copy(row, ids.mutable_data_ptr<int64_t>() + b * longest);
    lengths.mutable_data_ptr<int64_t>()[b] = std::ssize(row);
  }
  // Equal lengths are left undefined: no model needs them.
  return {.ids = ids.to(device_), .lengths = shortest < longest ? lengths.to(device_) : torch::Tensor()};
}

torch::Tensor SequenceReader::start(std::vector<TokenIds> prompts, const BatchFields& fields) {
  if (model_.continues_prompt()) {
    for (auto& prompt : prompts) shorten(prompt, model_.max_length());
    seen_ = prompts;
  }
  const Batch sources{.input = padded(prompts), .fields = fields};
  return model_.prefill(sources.to(device_), state_).to(torch::kFloat32);
}

torch::Tensor SequenceReader::advance(std::span<const int64_t> parents, std::span<const int64_t> tokens) {
  state_.reorder({parents.begin(), parents.end()});
  std::vector<TokenIds> reads;
  for (const int64_t token : tokens) reads.push_back({token});
  if (model_.continues_prompt()) {
    std::vector<TokenIds> sequences;
    auto lengths = state_.lengths();
    for (size_t i = 0; i < parents.size(); ++i) {
      auto& sequence = sequences.emplace_back(seen_[static_cast<size_t>(parents[i])]);
      sequence.push_back(tokens[i]);
      if (!shorten(sequence, model_.max_length())) continue;
      reads[i] = sequence;
      lengths[i] = 0;
    }
    seen_ = std::move(sequences);
    state_.truncate(lengths);
  }
  return model_.forward(padded(reads), state_, LogitsAt::last_token()).to(torch::kFloat32);
}

}  // namespace zoo
