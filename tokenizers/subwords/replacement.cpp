#include "tokenizers/subwords/replacement.h"

#include "base/error.h"

namespace zoo {

TextPattern::TextPattern(const nlohmann::json& pattern) {
  if (const auto regex = pattern.find("Regex"); regex != pattern.end()) {
    pattern_.emplace(regex->get<std::string>());
  } else {
    literal_ = pattern.at("String").get<std::string>();
    if (literal_.empty()) throw DataError("tokenizer.json: a pattern is empty");
  }
}

void TextPattern::for_each_match(std::string_view text,
                                 const std::function<void(size_t, size_t)>& use) const {
  if (pattern_) return pattern_->for_each_match(text, use);
  for (size_t at = text.find(literal_); at != text.npos; at = text.find(literal_, at + literal_.size()))
    use(at, at + literal_.size());
}

std::string TextPattern::replaced(std::string_view text, std::string_view content) const {
  std::string result;
  size_t copied = 0;
  for_each_match(text, [&](size_t begin, size_t end) {
    result += text.substr(copied, begin - copied);
    result += content;
    copied = end;
  });
  return result += text.substr(copied);
}

}  // namespace zoo
