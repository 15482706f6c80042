#pragma once
// The losses of a stream's tokens as those of its documents, or of the parts of its texts.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tasks/examples.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// What the texts of a stream are: examples, or long texts. Those are cut behind lines, into parts of about a
/// thousand bytes, which are the same for every tokenizer, and whose document is the number of the text.
enum class StreamTexts { examples, long_texts };

/// A token of a text.
struct SpreadToken {
  std::optional<double> loss;  // in nats; none: it is not predicted
  double bytes = 0;            // of the text
  size_t position = 0;         // the slice of its place in the window
};

/// The examples of a short text: its parts of at least 60 bytes, cut behind white space, without
/// ExampleScore::bytes. tokens: those of the text, whose bytes are scaled to its size. Words are counted in
/// the text itself.
std::vector<ExampleScore> examples_of_short_text(const std::string& text, std::vector<SpreadToken> tokens);

/// The windows in which a stream is predicted (text/batches/text_batches.h).
struct StreamWindows {
  int64_t prefix = 1;  // the tokens of a window that are only read
  int64_t length = 0;  // and all of them
};

/// The examples of `stream`, whose rows are `texts` as tokens. losses: of the tokens from number
/// `windows.prefix` on, one after the other; earlier ones cost nothing. The loss of a token in two parts, or
/// in bytes of several slices, is divided by its bytes. Slices do not have what the end of a document costs.
std::vector<ExampleScore> examples_of_stream(const TokenStore& stream, const std::vector<std::string>& texts,
                                             StreamTexts kind, const Tokenizer& tokenizer,
                                             const std::vector<double>& losses, const StreamWindows& windows);

}  // namespace zoo
