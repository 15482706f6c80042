#pragma once
// Which tokens may follow, so that a text becomes one of an expression.

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "generation/constraints/automaton.h"
#include "generation/constraints/expression.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Allows the tokens whose bytes keep an automaton alive, and end tokens where a text of the expression is
/// complete. The tokens of a state are found when it is reached, and kept: at most 64 MiB of them.
///
/// There is always a token that may follow. If the vocabulary has no token for each byte, the texts are those
/// of the characters for which it has a token. Threads may share an object.
class TextConstraint {
 public:
  /// `unused` are tokens that are never allowed. Throws DataError if no text of the expression can be written
  /// with the vocabulary, if the expression is too large, and as Tokenizer::token_text().
  TextConstraint(const Expression& expression, const Tokenizer& tokenizer, const TokenIds& unused);

  /// (V) bool on the CPU, V of the tokenizer: the tokens that may follow the output `ids`, whose first token
  /// stands after `prompt` (empty for an output that is a text of its own). All tokens, if no text of the
  /// expression begins with the output, or if it is complete and the vocabulary has no end token. Throws
  /// DataError if none may follow.
  torch::Tensor allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids) const;
  /// Whether the output is a text of the expression that no other token than an end token may follow.
  bool is_complete(std::span<const int64_t> prompt, std::span<const int64_t> ids) const;

 private:
  enum class Place { begins_text, within_text };
  /// Tokens with text, in the order of their bytes.
  struct Texts {
    std::vector<std::pair<std::string, int64_t>> sorted;
    std::vector<size_t> n_shared;  // first bytes that a text shares with the one before it
  };
  struct Allowed {
    torch::Tensor tokens;  // (V) bool
    bool has_text;         // whether one of them has a text
    bool accepts;
  };
  /// An output's end.
  struct Point {
    Automaton::State state;
    Place place;
  };

  Automaton make_automaton(const Expression& expression, const TokenIds& unused);
  void read_texts(const TokenIds& unused);
  bool leads_on(const Allowed& allowed) const;
  CodePoints alphabet() const;
  Place place_after(int64_t token) const;
  Point point(std::span<const int64_t> prompt, std::span<const int64_t> ids) const;
  const Allowed& allowed_at(const Point& point) const;

  const Tokenizer& tokenizer_;
  std::vector<TokenText> texts_;  // by id; empty: never allowed
  Texts first_, later_;
  TokenIds ends_;
  mutable std::mutex mutex_;  // guards what follows
  mutable Automaton automaton_;
  mutable std::map<std::pair<Automaton::State, Place>, Allowed> known_;
};

}  // namespace zoo
