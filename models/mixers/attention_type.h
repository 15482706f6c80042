#pragma once
// What the types of `model.attention` share that are softmax attention: over all keys, or over those of a
// pattern.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "layers/attention/attention_pattern.h"
#include "models/mixers/mixers.h"

namespace zoo {

/// The largest number in the keys of a pattern.
inline constexpr double kLargestDistance = 1 << 30;

/// √max_positions, at least 2: the usual stride of the Sparse Transformer.
int64_t root_of_length(const ModelConfig& config);
/// Complains about what fits no pattern.
void validate_pattern(const MixerPlace& place, const ComplainAboutMixer& complain);
/// Complains about a distance that no two positions have.
void validate_distance(const MixerPlace& place, std::string_view key, int64_t distance,
                       const ComplainAboutMixer& complain);
/// The options of an attention with this pattern.
AttentionOptions options_with(std::shared_ptr<const AttentionPattern> pattern, const MixerPlace& place);
/// A type whose attention has the options that `options` gives. Its cost counts the pairs that its pattern
/// shows, or all pairs.
MixerType attention_type(std::string name, std::string doc,
                         const std::function<AttentionOptions(const MixerPlace&)>& options);

}  // namespace zoo
