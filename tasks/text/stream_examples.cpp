#include "tasks/text/stream_examples.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tasks/text/text_slices.h"
#include "tasks/text/text_tasks.h"

namespace zoo {
namespace {

/// How a text is cut into parts.
struct PartSizes {
  size_t least, most;  // bytes; the latter of a text without places to cut behind
  std::string_view ends;
};
constexpr PartSizes kPartsOfLongTexts{1000, 4000, "\n"}, kPartsOfShortTexts{60, 240, " \n\t"};

std::vector<std::string_view> parts_of(std::string_view text, const PartSizes& sizes) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find_first_of(sizes.ends, std::min(sizes.least, text.size()) - 1);
    size_t n = std::min({text.size(), sizes.most, end == text.npos ? text.size() : end + 1});
    while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;  // a whole character
    parts.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return parts;
}

/// Spreads the losses of the tokens of one text over its parts, and over the slices of their bytes.
class Spreader {
 public:
  /// examples: of the parts, one after the other.
  Spreader(std::vector<ExampleScore> examples, const WordCounts& counts)
      : examples_(std::move(examples)), slicer_(counts) {
    for (auto& example : examples_) {
      ends_.push_back(total() + static_cast<double>(example.input.size()));
      example.slices.resize(kTextSlices.size());
    }
  }

  double total() const { return ends_.empty() ? 0 : ends_.back(); }

  /// The next token.
  void add(const SpreadToken& token) {
    const double begin = at_;
    at_ += token.bytes;
    while (part_ + 1 < examples_.size() && begin >= ends_[part_]) ++part_;
    if (token.loss) ++examples_[part_].targets;
    double from = begin;
    for (size_t i = part_; i < examples_.size(); ++i) {
      const bool is_last = i + 1 == examples_.size() || at_ <= ends_[i];
      const double to = is_last ? at_ : ends_[i];
      examples_[i].loss += token.loss.value_or(0) * (token.bytes > 0 ? (to - from) / token.bytes : 1);
      if (token.loss && token.bytes > 0) add_to_slices(i, from, to, token);
      if (is_last) return;
      from = to;
    }
  }

  std::vector<ExampleScore> take() {
    if (!examples_.empty()) slices_of(examples_.size() - 1);  // also of what no token stands for
    return std::move(examples_);
  }

 private:
  /// The bytes [from, to) of the text, within part `i`, belong to a token.
  void add_to_slices(size_t i, double from, double to, const SpreadToken& token) {
    auto& sums = examples_[i].slices;
    const double density = *token.loss / token.bytes;
    sums[token.position].nats += density * (to - from);
    sums[token.position].bytes += to - from;
    const auto& slices = slices_of(i);
    const double origin = ends_[i] - static_cast<double>(slices.size());
    const auto first = static_cast<size_t>(std::max(0.0, std::floor(from - origin)));
    for (size_t byte = first; byte < slices.size() && origin + static_cast<double>(byte) < to; ++byte) {
      const double begin = origin + static_cast<double>(byte);
      const double covered = std::min(to, begin + 1) - std::max(from, begin);
      for (const uint8_t slice : slices[byte])
        if (slice != kNoSlice) sums[slice].nats += density * covered;
    }
  }

  /// The slices of a part, whose bytes are counted when they are first asked for.
  const std::vector<ByteSlices>& slices_of(size_t part) {
    while (std::ssize(slices_) <= static_cast<std::ptrdiff_t>(part)) {
      auto& example = examples_[slices_.size()];
      if (slices_.size() > 1) slices_[slices_.size() - 2].clear();  // no token goes back so far
      slices_.push_back(slicer_.next(example.input));
      for (const auto& byte : slices_.back())
        for (const uint8_t slice : byte)
          if (slice != kNoSlice) example.slices[slice].bytes += 1;
    }
    return slices_[part];
  }

  std::vector<ExampleScore> examples_;
  std::vector<double> ends_;  // of the parts, in bytes of the text
  TextSlicer slicer_;
  std::vector<std::vector<ByteSlices>> slices_;  // of the parts so far; only the newest ones are kept
  size_t part_ = 0;                              // in which the next token begins
  double at_ = 0;                                // where it begins
};

/// The examples `parts` of one text, with what its tokens cost. The bytes of the tokens are scaled to those
/// of the text: what single tokens decode to may differ from it, such as by a blank at its beginning.
std::vector<ExampleScore> with_losses(std::vector<ExampleScore> parts, std::vector<SpreadToken> tokens,
                                      const WordCounts& counts) {
  double sum = 0;
  for (const auto& token : tokens) sum += token.bytes;
  Spreader spreader(std::move(parts), counts);
  const double scale = sum > 0 ? spreader.total() / sum : 0;
  for (auto& token : tokens) {
    token.bytes *= scale;
    spreader.add(token);
  }
  return spreader.take();
}

}  // namespace

std::vector<ExampleScore> examples_of_short_text(const std::string& text, std::vector<SpreadToken> tokens) {
  WordCounts counts;
  counts.add(text);
  std::vector<ExampleScore> parts;
  for (const auto part : parts_of(text, kPartsOfShortTexts)) parts.push_back({.input = std::string(part)});
  return with_losses(std::move(parts), std::move(tokens), counts);
}

std::vector<ExampleScore> examples_of_stream(const TokenStore& stream, const std::vector<std::string>& texts,
                                             StreamTexts kind, const Tokenizer& tokenizer,
                                             const std::vector<double>& losses,
                                             const StreamWindows& windows) {
  WordCounts counts;
  for (const auto& text : texts) counts.add(text);
  // As the batches have them: each but the first begins with what the one before has predicted.
  const int64_t length = std::max<int64_t>(1, std::min(windows.length, stream.n_tokens() - 1));
  const int64_t stride = std::max<int64_t>(1, length - windows.prefix + 1);
  std::vector<ExampleScore> examples;
  for (int64_t row = 0; row < stream.n_rows(); ++row) {
    const auto& text = texts.at(static_cast<size_t>(row));
    const int64_t begin = stream.row_begin(row), end = begin + stream.row_length(row);
    if (begin == end) continue;
    std::vector<ExampleScore> parts;
    if (kind == StreamTexts::examples) parts.push_back({.input = text});
    for (const auto part :
         kind == StreamTexts::examples ? std::vector<std::string_view>() : parts_of(text, kPartsOfLongTexts))
      parts.push_back({.input = std::string(part), .document = std::to_string(row)});
    const double bytes = static_cast<double>(predicted_bytes(tokenizer, stream, begin, end, text.size()));
    for (auto& part : parts) {
      const double share =
          text.empty() ? 1 : static_cast<double>(part.input.size()) / static_cast<double>(text.size());
      part.bytes = std::llround(bytes * share);
    }
    std::vector<SpreadToken> tokens;
    int64_t n = begin - windows.prefix;  // of the token among the losses
    for (const int64_t id : stream.slice(begin, end)) {
      const bool is_predicted = n >= 0 && n < std::ssize(losses);
      tokens.push_back(
          {.loss = is_predicted ? std::optional(losses[static_cast<size_t>(n)]) : std::nullopt,
           .bytes = static_cast<double>(tokenizer.decode(std::span(&id, 1)).size()),
           .position = slice_of_position(windows.prefix + std::max<int64_t>(n, 0) % stride, length)});
      ++n;
    }
    std::ranges::move(with_losses(std::move(parts), std::move(tokens), counts), std::back_inserter(examples));
  }
  return examples;
}

}  // namespace zoo
