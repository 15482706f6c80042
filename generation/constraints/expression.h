#pragma once
// A set of texts, as the tree of a regular expression.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "generation/constraints/code_points.h"

namespace zoo {

/// The texts that match a part of an expression.
struct Expression {
  enum class Kind { characters, sequence, alternatives, repetition };
  static constexpr int64_t kNoLimit = -1;

  Kind kind = Kind::sequence;          // an empty sequence: the empty text
  CodePoints characters = {};          // one of these; none: no text matches
  std::vector<Expression> parts = {};  // of a sequence, of alternatives; the repeated one
  int64_t least = 1, most = 1;         // of a repetition

  static Expression one_of(CodePoints characters) {
    return {.kind = Kind::characters, .characters = std::move(characters)};
  }
  /// `text` itself, which is UTF-8.
  static Expression text(std::string_view text);
  static Expression sequence(std::vector<Expression> parts) { return {.parts = std::move(parts)}; }
  static Expression alternatives(std::vector<Expression> parts) {
    return {.kind = Kind::alternatives, .parts = std::move(parts)};
  }
  static Expression repeated(Expression part, int64_t least, int64_t most) {
    Expression result{.kind = Kind::repetition, .least = least, .most = most};
    result.parts.push_back(std::move(part));
    return result;
  }
  static Expression optional(Expression part) { return repeated(std::move(part), 0, 1); }
};

}  // namespace zoo
