#pragma once
// Texts to ids by all threads.

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace zoo {

/// What comes after some of a text's ids.
enum class Follows { more_of_the_text, next_text };
using UseOfIds = std::function<void(TokenIds ids, Follows follows)>;

/// Encodes texts with all threads, a few megabytes at a time. The ids of a long text come in parts, so that
/// they need not be in memory together.
class ParallelEncoder {
 public:
  /// `use` is given the ids of all texts, in their order. `tokenizer` must outlive this object.
  ParallelEncoder(const Tokenizer& tokenizer, UseOfIds use) : tokenizer_(tokenizer), use_(std::move(use)) {}
  ParallelEncoder(const ParallelEncoder&) = delete;
  ParallelEncoder& operator=(const ParallelEncoder&) = delete;

  /// The next text. Throws DataError as Tokenizer::encode does.
  void add(std::string_view text);
  /// Encodes what waits.
  void finish();

 private:
  struct Part {
    std::string_view text;
    bool is_last = false;  // of its text
    TokenIds ids = {};
  };

  void keep(std::string_view text, size_t first);

  const Tokenizer& tokenizer_;
  UseOfIds use_;
  std::vector<Part> parts_;
  std::deque<std::string> kept_;
  size_t n_bytes_ = 0;
};

}  // namespace zoo
