#include "generation/hypothesis.h"

#include <cmath>

namespace zoo {

std::optional<OutputEnd> SearchLimits::end_of(std::span<const int64_t> prompt, std::span<const int64_t> ids,
                                              ContinuationDecoder* text) const {
  if (is_end(ids.back())) return OutputEnd::end_token;
  if (text) text->push(ids.back());
  if (text && text->stopped()) return OutputEnd::stop_text;
  if (is_complete && is_complete(prompt, ids)) return OutputEnd::complete;
  if (std::ssize(ids) >= max_new_tokens) return OutputEnd::length;
  return std::nullopt;
}

void Hypothesis::append(int64_t id, double logprob) {
  ids.push_back(id);
  logprobs.push_back(logprob);
  total += logprob;
}

double length_normalised(const Hypothesis& hypothesis, double penalty) {
  return hypothesis.total / std::pow(static_cast<double>(hypothesis.ids.size()), penalty);
}

}  // namespace zoo
