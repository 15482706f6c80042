#include "text/batches/unit_encoder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/batches/tagged_texts.h"

namespace zoo {

UnitEncoder::UnitEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer.joins_blanks()) return;
  try {
    blank_ = tokenizer.encode_continuation(" ");
  } catch (const DataError&) {  // the vocabulary has no blank, so texts are single words
  }
}

UnitEncoder::Unit UnitEncoder::encode(std::string_view unit, LabelUnit kind, bool is_first) const {
  const bool after_blank = !is_first && kind == LabelUnit::word;
  Unit result{.ids = is_first ? tokenizer_.encode(unit)
                              : tokenizer_.encode_continuation((after_blank ? " " : "") + std::string(unit))};
  const auto n_blank = std::ssize(blank_);
  const bool has_blank = after_blank && std::ssize(result.ids) >= n_blank &&
                         std::equal(blank_.begin(), blank_.end(), result.ids.begin());
  if (has_blank) result.first = n_blank;
  if (result.first >= std::ssize(result.ids)) result.first = -1;
  return result;
}

AlignedTokens UnitEncoder::operator()(std::string_view text, LabelUnit unit, int64_t most_tokens) {
  AlignedTokens aligned;
  for (const auto each : units_of(text, unit)) {
    const bool is_first = aligned.first.empty();
    const auto key = (is_first ? "^" : unit == LabelUnit::word ? " " : "+") + std::string(each);
    auto found = known_.find(key);
    if (found == known_.end()) found = known_.emplace(key, encode(each, unit, is_first)).first;
    const auto& [ids, first] = found->second;
    if (!ids.empty() && std::ssize(aligned.ids) >= most_tokens) {
      aligned.cut = true;
      break;
    }
    aligned.first.push_back(first < 0 ? -1 : std::ssize(aligned.ids) + first);
    aligned.ids.insert(aligned.ids.end(), ids.begin(), ids.end());
  }
  if (std::ssize(aligned.ids) <= most_tokens) return aligned;
  aligned.cut = true;
  aligned.ids.resize(static_cast<size_t>(most_tokens));
  while (!aligned.first.empty() && aligned.first.back() >= most_tokens) aligned.first.pop_back();
  return aligned;
}

}  // namespace zoo
