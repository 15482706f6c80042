#pragma once
// The text of an output while it grows.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generation/constraints/text_constraint.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Cuts a text, which arrives in pieces, before the first of some stop texts: the one that is complete first,
/// and the longest of those that are complete at the same byte. How the text is divided does not matter.
class StopTexts {
 public:
  /// None of `texts` may be empty.
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  /// The next part of the text that stands before any stop text. An end that may be the beginning of one is
  /// held back.
  std::string push(std::string_view piece);
  /// The text that was held back; none after a stop text.
  std::string finish();
  /// Whether a stop text was found.
  bool found() const { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

/// Decodes generated ids into text that continues a prompt. The text includes a blank after the prompt if the
/// vocabulary marks one, and a character whose first bytes belong to the prompt. It ends before the first of
/// the stop texts; a stop text does not begin within the prompt. Can be copied in the middle of a text.
class ContinuationDecoder {
 public:
  ContinuationDecoder(const Tokenizer& tokenizer, std::span<const int64_t> prompt,
                      std::vector<std::string> stop = {}, ShownTokens shown = {});
  /// The text that `id` adds; it may be empty. A shown token adds its text here.
  std::string push(int64_t id);
  /// The text that was held back.
  std::string finish();
  /// Whether a stop text has ended the text.
  bool stopped() const { return stop_.found(); }

 private:
  StreamDecoder decoder_;
  StopTexts stop_;
  ShownTokens shown_;
};

}  // namespace zoo
