#include "tasks/text/stream_examples.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tasks/text/text_tasks.h"

namespace zoo {
namespace {

/// The parts of a long text.
std::vector<std::string_view> parts_of(std::string_view text) {
  constexpr size_t least = 1000, most = 4000;  // bytes; the latter of a text without lines
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto line_end = text.find('\n', std::min(least, text.size()) - 1);
    size_t n = std::min({text.size(), most, line_end == text.npos ? text.size() : line_end + 1});
    while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;  // a whole character
    parts.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return parts;
}

/// Spreads the losses of the tokens of one text over its parts.
class Spreader {
 public:
  /// examples: of the parts, one after the other.
  explicit Spreader(std::vector<ExampleScore> examples) : examples_(std::move(examples)) {
    for (const auto& example : examples_)
      ends_.push_back(total() + static_cast<double>(example.input.size()));
  }

  double total() const { return ends_.empty() ? 0 : ends_.back(); }
  /// The next token, which has so many bytes of the text; without a loss if it is not predicted.
  void add(std::optional<double> loss, double bytes) {
    const double begin = at_;
    at_ += bytes;
    while (part_ + 1 < examples_.size() && begin >= ends_[part_]) ++part_;
    if (loss) ++examples_[part_].targets;
    double from = begin;
    for (size_t i = part_; i < examples_.size(); ++i) {
      const bool is_last = i + 1 == examples_.size() || at_ <= ends_[i];
      const double to = is_last ? at_ : ends_[i];
      examples_[i].loss += loss.value_or(0) * (bytes > 0 ? (to - from) / bytes : 1);
      if (is_last) return;
      from = to;
    }
  }
  std::vector<ExampleScore> take() { return std::move(examples_); }

 private:
  std::vector<ExampleScore> examples_;
  std::vector<double> ends_;  // of the parts, in bytes of the text
  size_t part_ = 0;           // in which the next token begins
  double at_ = 0;             // where it begins
};

}  // namespace

std::vector<ExampleScore> examples_of_stream(const TokenStore& stream, const std::vector<std::string>& texts,
                                             StreamTexts kind, const Tokenizer& tokenizer,
                                             const std::vector<double>& losses, int64_t first) {
  std::vector<ExampleScore> examples;
  for (int64_t row = 0; row < stream.n_rows(); ++row) {
    const auto& text = texts.at(static_cast<size_t>(row));
    const int64_t begin = stream.row_begin(row), end = begin + stream.row_length(row);
    if (begin == end) continue;
    std::vector<ExampleScore> parts;
    if (kind == StreamTexts::examples) parts.push_back({.input = text});
    for (const auto part : kind == StreamTexts::examples ? std::vector<std::string_view>() : parts_of(text))
      parts.push_back({.input = std::string(part)});
    const double bytes = static_cast<double>(predicted_bytes(tokenizer, stream, begin, end, text.size()));
    for (auto& part : parts) {
      const double share =
          text.empty() ? 1 : static_cast<double>(part.input.size()) / static_cast<double>(text.size());
      part.bytes = std::llround(bytes * share);
    }
    // What single tokens decode to may differ from the text, such as by a blank at its beginning.
    std::vector<double> sizes;
    double sum = 0;
    for (const int64_t id : stream.slice(begin, end)) {
      sizes.push_back(static_cast<double>(tokenizer.decode(std::span(&id, 1)).size()));
      sum += sizes.back();
    }
    Spreader spreader(std::move(parts));
    const double scale = sum > 0 ? spreader.total() / sum : 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i - first;
      const bool is_predicted = n >= 0 && n < std::ssize(losses);
      spreader.add(is_predicted ? std::optional(losses[static_cast<size_t>(n)]) : std::nullopt,
                   scale * sizes[static_cast<size_t>(i - begin)]);
    }
    std::ranges::move(spreader.take(), std::back_inserter(examples));
  }
  return examples;
}

}  // namespace zoo
