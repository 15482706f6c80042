#pragma once
// The rule of tokens that say times, as Whisper writes them (Radford et al. 2022).

#include <cstdint>
#include <optional>
#include <vector>

#include "generation/rules/logits_processors.h"
#include "generation/rules/token_rule_types.h"

namespace zoo {

/// The keys of the type `timestamps` of generation.rules.
struct TimestampOptions {
  int64_t first = 0;                 // id of 0 seconds; all later ids are times, too
  std::optional<int64_t> none = {};  // id of the token that says that no times are written
  /// The number of the latest time that an output may begin with.
  std::optional<int64_t> most_at_beginning = {};
};
void describe(ConfigVisitor& v, TimestampOptions& c);

/// An output begins with a time. Times stand in pairs, the end of a segment and the beginning of the next, or
/// alone before the end of the output; they never go back, and a segment takes some time. Where all times
/// together are likelier than the likeliest other token, a time comes. Equal to
/// WhisperTimeStampLogitsProcessor of transformers.
class TimestampRule final : public LogitsProcessor {
 public:
  /// `end`: the least id of those that may follow the end of a segment; lower ones are text.
  TimestampRule(const TimestampOptions& options, int64_t end) : options_(options), end_(end) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  TimestampOptions options_;
  int64_t end_;
};

TokenRuleType timestamp_rule();

}  // namespace zoo
