#include "generation/sequence_reader.h"

#include <algorithm>

#include <torch/types.h>

namespace zoo {

torch::Tensor SequenceReader::start(std::vector<TokenIds> prompts) {
  seen_ = std::move(prompts);
  return read();
}

TokenBatch SequenceReader::padded() const {
  const auto n_rows = static_cast<int64_t>(seen_.size());
  auto lengths = torch::empty({n_rows}, torch::kInt64);
  for (int64_t i = 0; i < n_rows; ++i)
    lengths[i] = static_cast<int64_t>(seen_[static_cast<size_t>(i)].size());
  const auto longest = lengths.max().item<int64_t>();
  auto ids = torch::zeros({n_rows, longest}, torch::kInt64);
  for (int64_t i = 0; i < n_rows; ++i) {
    const auto& row = seen_[static_cast<size_t>(i)];
    std::copy(row.begin(), row.end(), ids.data_ptr<int64_t>() + i * longest);
  }
  const bool equal = lengths.min().item<int64_t>() == longest;
  return TokenBatch{.ids = ids, .lengths = equal ? torch::Tensor() : lengths}.to(device_);
}

torch::Tensor SequenceReader::read() {
  if (model_.continues_prompt()) {
    const int64_t limit = model_.max_length();
    const int64_t kept = (limit + 1) / 2;
    for (auto& row : seen_) {
      if (static_cast<int64_t>(row.size()) > limit) row.erase(row.begin(), row.end() - kept);
    }
  }
  const auto batch = padded();
  state_ = DecodingState();
  cached_ = batch.length();
  return model_.prefill(batch, state_).to(torch::kFloat32);
}

torch::Tensor SequenceReader::advance(std::span<const int64_t> parents, std::span<const int64_t> tokens) {
  bool moved = parents.size() != seen_.size();
  for (size_t i = 0; i < parents.size() && !moved; ++i) moved = parents[i] != static_cast<int64_t>(i);
  if (moved) {
    std::vector<TokenIds> copies;
    for (const int64_t parent : parents) copies.push_back(seen_[static_cast<size_t>(parent)]);
    seen_ = std::move(copies);
  }
  if (model_.continues_prompt()) {
    for (size_t i = 0; i < tokens.size(); ++i) seen_[i].push_back(tokens[i]);
  }
  // The cache must not outgrow the model's positions either, be it with the padding of rows that are gone by
  // now.
  if (model_.continues_prompt() && cached_ + 1 > model_.max_length()) return read();

  const auto to_tensor = [&](std::span<const int64_t> values) {
    return torch::tensor(at::ArrayRef<int64_t>(values.data(), values.size()), torch::kInt64).to(device_);
  };
  if (moved) state_.reorder(to_tensor(parents));
  ++cached_;
  return model_.step(to_tensor(tokens), state_).to(torch::kFloat32);
}

}  // namespace zoo
