#include "generation/rules/timestamps.h"

#include <algorithm>
#include <limits>

namespace zoo {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

/// Forbids the ids from `begin` to before `end` in one row (V).
void forbid(torch::Tensor& row, int64_t begin, int64_t end) {
  const int64_t most = row.size(0), first = std::clamp<int64_t>(begin, 0, most);
  if (end > first) row.narrow(0, first, std::min(end, most) - first).fill_(kForbidden);
}

}  // namespace

void describe(ConfigVisitor& v, TimestampOptions& c) {
  v.field("first", c.first, "Id of the token for 0 seconds. All ids from it on are times.",
          Limits::at_least(0));
  v.field("none", c.none, "Id of the token that says that no times are written.", Limits::at_least(0));
  v.field("most_at_beginning", c.most_at_beginning,
          "Number of the latest time with which an output may begin; default: any.", Limits::at_least(0));
}

torch::Tensor TimestampRule::process(const torch::Tensor& logits, std::span<const SequenceView> rows) const {
  auto scores = logits.clone();
  const int64_t first = options_.first, all = scores.size(1);
  for (size_t b = 0; b < rows.size(); ++b) {
    auto row = scores[static_cast<int64_t>(b)];
    const auto& said = rows[b].generated;
    if (options_.none) forbid(row, *options_.none, *options_.none + 1);
    const bool last_is_time = !said.empty() && said.back() >= first;
    const bool other_is_time = said.size() < 2 || said[said.size() - 2] >= first;
    if (last_is_time) other_is_time ? forbid(row, first, all) : forbid(row, 0, end_);
    const auto latest =
        std::ranges::find_if(said.rbegin(), said.rend(), [&](int64_t id) { return id >= first; });
    if (latest != said.rend()) forbid(row, first, *latest + (last_is_time && !other_is_time ? 0 : 1));
    if (said.empty()) {
      forbid(row, 0, first);
      if (options_.most_at_beginning) forbid(row, first + *options_.most_at_beginning + 1, all);
    }
    if (first >= all) continue;
    const auto logprobs = row.log_softmax(0);
    const auto of_times = logprobs.narrow(0, first, all - first).logsumexp(0).item<float>();
    if (first > 0 && of_times > logprobs.narrow(0, 0, first).max().item<float>()) forbid(row, 0, first);
  }
  return scores;
}

TokenRuleType timestamp_rule() {
  TokenRuleType type;
  type.name = "timestamps";
  type.doc = "Tokens that say times come in pairs and never go back, as Whisper writes them.";
  type.make_options = options_of<TimestampOptions>();
  type.make = [](const Selection& selection, const TokenRuleContext& context) {
    const int64_t end = context.ends.empty() ? 0 : *std::ranges::min_element(context.ends);
    return std::make_unique<const TimestampRule>(selection.as<TimestampOptions>(), end);
  };
  return type;
}

}  // namespace zoo
