#include "generation/rules/repetition.h"

#include <algorithm>
#include <limits>
#include <map>
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

/// The different tokens that were said before; their numbers of occurrences.
Places occurrences(std::span<const SequenceView> rows, const SaidTokens& said, int64_t vocab_size) {
  Places places;
  for (size_t b = 0; b < rows.size(); ++b) {
    auto ids = said.of(rows[b]);
    std::erase_if(ids, [&](int64_t id) { return id >= vocab_size; });
    std::ranges::sort(ids);
    for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
      while (end < ids.size() && ids[end] == ids[begin]) ++end;
      places.indices.push_back(static_cast<int64_t>(b) * vocab_size + ids[begin]);
      places.numbers.push_back(static_cast<double>(end - begin));
    }
  }
  return places;
}

/// The tokens that would complete n tokens of `earlier` after those of `said`.
Places repetitions(std::span<const SequenceView> rows, const SaidTokens& said, const SaidTokens& earlier,
                   int64_t n, int64_t vocab_size) {
  Places places;
  const auto before = static_cast<size_t>(n - 1);
  for (size_t b = 0; b < rows.size(); ++b) {
    const auto ids = said.of(rows[b]), from = earlier.of(rows[b]);
    if (ids.size() < before) continue;
    const auto last = std::span(ids).last(before);
    for (size_t begin = 0; begin + before < from.size(); ++begin) {
      const int64_t next = from[begin + before];
      if (next < vocab_size && std::ranges::equal(std::span(from).subspan(begin, before), last))
        places.indices.push_back(static_cast<int64_t>(b) * vocab_size + next);
    }
  }
  return places;
}

/// Whether the tokens of `sequence` but for the last one have just been said.
bool leads_to(const TokenIds& sequence, const TokenIds& said) {
  const auto before = std::span(sequence).first(sequence.size() - 1);
  return before.size() <= said.size() && std::ranges::equal(std::span(said).last(before.size()), before);
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

TokenIds SaidTokens::of(const SequenceView& row) const {
  TokenIds ids = first;
  if (which != PresentTokens::in_output) ids.insert(ids.end(), row.prompt.begin(), row.prompt.end());
  if (which != PresentTokens::in_prompt) ids.insert(ids.end(), row.generated.begin(), row.generated.end());
  return ids;
}

int64_t SaidTokens::n_before(const SequenceView& row) const {
  return std::ssize(first) + (which != PresentTokens::in_output ? std::ssize(row.prompt) : 0);
}

torch::Tensor RepetitionPenalty::process(const torch::Tensor& logits,
                                         std::span<const SequenceView> rows) const {
  if (penalty_ == 1) return logits;
  const auto places = occurrences(rows, said_, logits.size(1));
  if (places.empty()) return logits;
  const auto indices = places.indices_on(logits.device());
  const auto scores = logits.flatten().index_select(0, indices);
  return replaced(logits, indices, torch::where(scores < 0, scores * penalty_, scores / penalty_));
}

bool RepetitionPenalty::add_to(RowRules& rules) const {
  // RowRules counts the tokens that are chosen among those that were said.
  if (said_.which == PresentTokens::in_prompt || !rules.add(RowRules::Step::repetition)) return false;
  rules.repetition_penalty = penalty_;
  rules.said = [said = said_](const SequenceView& row) { return said.of(row); };
  return true;
}

bool OccurrencePenalty::add_to(RowRules& rules) const {
  if (!rules.add(RowRules::Step::occurrence)) return false;
  rules.presence_penalty = presence_;
  rules.frequency_penalty = frequency_;
  return true;
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
  return without(logits, repetitions(rows, said_, said_, n_, logits.size(1)));
}

torch::Tensor NoCopiedNgram::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  return without(logits, repetitions(rows, said_, PresentTokens::in_prompt, n_, logits.size(1)));
}

torch::Tensor SequenceBiases::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  std::map<int64_t, double> sums;  // of the places in the flattened logits
  for (size_t b = 0; b < rows.size(); ++b) {
    const auto said = said_.of(rows[b]);
    for (const auto& [tokens, bias] : sequences_) {
      if (tokens.back() < logits.size(1) && leads_to(tokens, said))
        sums[static_cast<int64_t>(b) * logits.size(1) + tokens.back()] += bias;
    }
  }
  Places places;
  for (const auto& [index, sum] : sums) {
    places.indices.push_back(index);
    places.numbers.push_back(sum);
  }
  if (places.empty()) return logits;
  const auto indices = places.indices_on(logits.device());
  const auto added = torch::tensor(places.numbers, logits.dtype()).to(logits.device());
  return replaced(logits, indices, logits.flatten().index_select(0, indices) + added);
}

torch::Tensor BadWords::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  Places places;
  for (size_t b = 0; b < rows.size(); ++b) {
    const auto said = said_.of(rows[b]);
    for (const auto& word : words_) {
      if (word.back() < logits.size(1) && leads_to(word, said))
        places.indices.push_back(static_cast<int64_t>(b) * logits.size(1) + word.back());
    }
  }
  return without(logits, places);
}

}  // namespace zoo
