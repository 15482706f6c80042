#pragma once
// Which tokens may follow, so that a text becomes one of an expression.

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "generation/constraints/automaton.h"
#include "generation/constraints/expression.h"
#include "generation/constraints/work_limit.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// A token that has a text in an output though the vocabulary gives it none: a special one that a reader of
/// the output wants to see.
struct ShownToken {
  int64_t id;
  std::string text;
};
using ShownTokens = std::vector<ShownToken>;

/// Allows the tokens whose bytes keep an automaton alive, and end tokens where a text of the expression is
/// complete. The tokens of a state are found when it is reached, and kept: at most 32 MiB of them.
///
/// There is always a token that may follow. If the vocabulary has no token for each byte, the texts are those
/// of the characters for which it has a token. Threads may share an object.
class TextConstraint {
 public:
  /// `unused` are tokens that are never allowed. Throws DataError if no text of the expression can be written
  /// with the vocabulary, if the expression is too large or takes too long, and as Tokenizer::token_text().
  TextConstraint(const Expression& expression, const Tokenizer& tokenizer, const TokenIds& unused,
                 const ShownTokens& shown = {});

  /// (V) bool on the CPU, V of the tokenizer: the tokens that may follow the output `ids`, whose first token
  /// stands after `prompt` (empty for an output that is a text of its own). All tokens, if no text of the
  /// expression begins with the output, or if it is complete and the vocabulary has no end token. Throws
  /// DataError if none may follow, or if `work` ends before.
  torch::Tensor allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids, WorkLimit& work) const;
  /// Whether the output is a text of the expression that no other token than an end token may follow. Throws
  /// DataError if `work` ends before.
  bool is_complete(std::span<const int64_t> prompt, std::span<const int64_t> ids, WorkLimit& work) const;

  // For texts that begin within an output.

  enum class End { none, open, text };
  /// What a text leads to.
  struct Reached {
    End end;  // none: no text of the expression begins so; text: it is one itself
    size_t n_to_end =
        std::string::npos;  // the bytes of the shortest text with which it begins, if there is one
  };
  Reached reached(std::string_view text, WorkLimit& work) const;
  /// As allowed(), if the last bytes of the output are `begun` and a text began there.
  torch::Tensor allowed_after(std::string_view begun, std::span<const int64_t> prompt,
                              std::span<const int64_t> ids, WorkLimit& work) const;
  /// The bytes of an output. Tokens that are never allowed, and end tokens, have none.
  std::string text(std::span<const int64_t> prompt, std::span<const int64_t> ids) const;
  /// Calls `visit` with each token that may follow others, and its bytes.
  void for_each_text(const std::function<void(int64_t id, std::string_view text)>& visit) const {
    for (const auto& [text, id] : later_.sorted) visit(id, text);
  }
  int64_t vocab_size() const { return std::ssize(texts_); }

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

  Automaton make_automaton(const Expression& expression, const TokenIds& unused, const ShownTokens& shown);
  void read_texts(const TokenIds& unused, const ShownTokens& shown);
  bool leads_on(const Allowed& allowed) const;
  CodePoints alphabet() const;
  Place place_after(int64_t token) const;
  Place place_behind(std::span<const int64_t> prompt) const;
  void forget_much() const;
  torch::Tensor allowed_from(const Point& at, WorkLimit& work) const;
  Automaton::State next(Automaton::State state, char byte, WorkLimit& work) const;
  Point point(std::span<const int64_t> prompt, std::span<const int64_t> ids, WorkLimit& work) const;
  const Allowed& allowed_at(const Point& point, WorkLimit& work) const;

  const Tokenizer& tokenizer_;
  std::vector<TokenText> texts_;  // by id; empty: never allowed
  Texts first_, later_;
  TokenIds ends_;
  mutable std::mutex mutex_;  // guards what follows
  mutable Automaton automaton_;
  mutable std::map<std::pair<Automaton::State, Place>, Allowed> known_;
};

/// What an output of a constrained search belongs to.
enum class OutputText { continues_prompt, stands_alone };

/// What restricts the tokens of one request. Other requests share the constraints behind it, but each has its
/// own limit of work: some 0.1 s at once, and then 0.01 s for each token. Only one thread at a time may use
/// it.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  /// (V) bool on the CPU: the tokens that may follow an output; undefined: all.
  virtual torch::Tensor allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids) = 0;

 protected:
  explicit TokenConstraint(OutputText text) : text_(text) {}
  std::span<const int64_t> before(std::span<const int64_t> prompt) const {
    return text_ == OutputText::continues_prompt ? prompt : std::span<const int64_t>();
  }
  WorkLimit& work() { return work_; }
  /// With the steps of one token more.
  WorkLimit& next_work() {
    work_.grant(kStepsOfToken);
    return work_;
  }

 private:
  static constexpr int64_t kStepsAtOnce = 20'000'000, kStepsOfToken = 2'000'000;

  OutputText text_;
  WorkLimit work_{kStepsAtOnce};
};

/// A TextConstraint in one request.
class RequestConstraint final : public TokenConstraint {
 public:
  RequestConstraint(std::shared_ptr<const TextConstraint> constraint, OutputText text)
      : TokenConstraint(text), constraint_(std::move(constraint)) {}

  torch::Tensor allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids) override {
    return constraint_->allowed(before(prompt), ids, next_work());
  }
  bool is_complete(std::span<const int64_t> prompt, std::span<const int64_t> ids) {
    return constraint_->is_complete(before(prompt), ids, work());
  }

 private:
  std::shared_ptr<const TextConstraint> constraint_;
};

}  // namespace zoo
