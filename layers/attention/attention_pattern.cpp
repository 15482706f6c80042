#include "layers/attention/attention_pattern.h"

#include <utility>

namespace zoo {

VisiblePairs AttentionPattern::visible(const PatternInput& input) const {
  return VisiblePairs(bands(input.length), input.lengths);
}

Bands AttentionPattern::directed(Bands bands) const {
  return direction_ == Direction::causal ? causal(bands) : std::move(bands);
}

}  // namespace zoo
