#include "generation/hypothesis.h"

#include <cmath>

namespace zoo {

void Hypothesis::append(int64_t id, double logprob) {
  ids.push_back(id);
  logprobs.push_back(logprob);
  total += logprob;
}

double length_normalised(const Hypothesis& hypothesis, double penalty) {
  return hypothesis.total / std::pow(static_cast<double>(hypothesis.ids.size()), penalty);
}

}  // namespace zoo
