#include "generation/rules/repetition.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <torch/types.h>

namespace zoo {
namespace {

/// Some tokens of the rows as indices into their flattened logits (B·V), and a number for each.
struct Places {
  std::vector<int64_t> indices;
  std::vector<double> numbers;

  bool empty() const { return indices.empty(); }
  torch::Tensor indices_on(torch::Device device) const {
    return torch::tensor(indices, torch::kInt64).to(device);
  }
};

TokenIds said_in(const SequenceView& row, PresentTokens said) {
  TokenIds ids;
  if (said == PresentTokens::in_prompt_or_output) ids.assign(row.prompt.begin(), row.prompt.end());
  ids.insert(ids.end(), row.generated.begin(), row.generated.end());
  return ids;
}

/// The different tokens that were said before; their numbers of occurrences.
Places occurrences(std::span<const SequenceView> rows, PresentTokens said, int64_t vocab_size) {
  Places places;
  for (size_t b = 0; b < rows.size(); ++b) {
    auto ids = said_in(rows[b], said);
    std::ranges::sort(ids);
    for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
      while (end < ids.size() && ids[end] == ids[begin]) ++end;
      places.indices.push_back(static_cast<int64_t>(b) * vocab_size + ids[begin]);
      places.numbers.push_back(static_cast<double>(end - begin));
    }
  }
  return places;
}

/// The tokens that would complete n tokens that were said before.
Places repetitions(std::span<const SequenceView> rows, PresentTokens said, int64_t n, int64_t vocab_size) {
  Places places;
  const auto before = static_cast<size_t>(n - 1);
  for (size_t b = 0; b < rows.size(); ++b) {
    const auto ids = said_in(rows[b], said);
    if (ids.size() < static_cast<size_t>(n)) continue;
    const auto last = std::span(ids).last(before);
    for (size_t begin = 0; begin + before < ids.size(); ++begin) {
      if (std::ranges::equal(std::span(ids).subspan(begin, before), last))
        places.indices.push_back(static_cast<int64_t>(b) * vocab_size + ids[begin + before]);
    }
  }
  return places;
}

/// `logits` with `values` at `places`.
torch::Tensor replaced(const torch::Tensor& logits, const torch::Tensor& indices,
                       const torch::Tensor& values) {
  return logits.flatten().index_copy(0, indices, values).view(logits.sizes());
}

/// `logits` without the tokens at `places`; rows that would lose all tokens stay.
torch::Tensor without(const torch::Tensor& logits, const Places& places) {
  constexpr double impossible = -std::numeric_limits<double>::infinity();
  if (places.empty()) return logits;
  const auto result =
      logits.flatten().index_fill(0, places.indices_on(logits.device()), impossible).view(logits.sizes());
  const auto nothing_left = result.isneginf().all(1, /*keepdim=*/true);  // (B, 1)
  return torch::where(nothing_left, logits, result);
}

}  // namespace

torch::Tensor RepetitionPenalty::process(const torch::Tensor& logits,
                                         std::span<const SequenceView> rows) const {
  if (penalty_ == 1) return logits;
  const auto places = occurrences(rows, said_, logits.size(1));
  if (places.empty()) return logits;
  const auto indices = places.indices_on(logits.device());
  const auto scores = logits.flatten().index_select(0, indices);
  return replaced(logits, indices, torch::where(scores < 0, scores * penalty_, scores / penalty_));
}

torch::Tensor OccurrencePenalty::process(const torch::Tensor& logits,
                                         std::span<const SequenceView> rows) const {
  const auto places = occurrences(rows, PresentTokens::in_output, logits.size(1));
  if (places.empty()) return logits;
  const auto indices = places.indices_on(logits.device());
  const auto counts = torch::tensor(places.numbers, logits.dtype()).to(logits.device());
  const auto scores = logits.flatten().index_select(0, indices);
  return replaced(logits, indices, scores - presence_ - frequency_ * counts);
}

torch::Tensor NoRepeatNgram::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  return without(logits, repetitions(rows, said_, n_, logits.size(1)));
}

torch::Tensor BadWords::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  Places places;
  for (size_t b = 0; b < rows.size(); ++b) {
    const auto said = said_in(rows[b], said_);
    for (const auto& word : words_) {
      const auto before = std::span(word).first(word.size() - 1);
      if (word.back() >= logits.size(1) || before.size() > said.size()) continue;
      if (std::ranges::equal(std::span(said).last(before.size()), before))
        places.indices.push_back(static_cast<int64_t>(b) * logits.size(1) + word.back());
    }
  }
  return without(logits, places);
}

}  // namespace zoo
