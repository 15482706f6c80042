#include "generation/constraints/regular_expression.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

constexpr int64_t kMostRepeated = 10'000;
constexpr int kMostNested = 100;
constexpr size_t kMostExpressionBytes = size_t{64} << 10;

/// Those that belong to a class in every mode of Python's re, and those that do in one of its modes.
struct ClassBounds {
  CodePoints least, most;

  ClassBounds complement() const { return {most.complement(), least.complement()}; }
};

CodePoints of_table(std::span<const CodeRange> table) { return CodePoints({table.begin(), table.end()}); }

/// \d, \w, \s and their complements; nothing for another letter.
std::optional<ClassBounds> named_class(char32_t letter) {
  switch (letter) {
    case U'd':
      return ClassBounds{CodePoints({{U'0', U'9'}}), of_table(numeric_table())};
    case U'w': {
      const CodePoints ascii({{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}});
      return ClassBounds{ascii, ascii.united(of_table(word_table())).united(of_table(numeric_table()))};
    }
    case U's': {
      const CodePoints ascii({{0x09, 0x0D}, {U' ', U' '}});
      return ClassBounds{ascii,
                         ascii.united(of_table(white_space_table())).united(CodePoints({{0x1C, 0x1F}}))};
    }
    case U'D':
    case U'W':
    case U'S':
      return named_class(letter - U'A' + U'a')->complement();
    default:
      return std::nullopt;
  }
}

bool is_ascii_letter_or_digit(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z');
}

class Parser {
 public:
  explicit Parser(std::string_view expression) : text_(decode_utf8(expression)) {}

  Expression parse(Matches matches) {
    std::vector<Expression> alternatives;
    do {
      const bool begins = take(U'^');
      auto sequence = parse_sequence();
      const bool ends = take(U'$');
      if (ends && !at_end() && text_[at_] != U'|')
        fail("$ stands at the end of an alternative only", at_ - 1);
      if (matches == Matches::part_of_text) {
        const auto anything =
            Expression::repeated(Expression::one_of(CodePoints::all()), 0, Expression::kNoLimit);
        if (!begins) sequence.parts.insert(sequence.parts.begin(), anything);
        if (!ends) sequence.parts.push_back(anything);
      }
      alternatives.push_back(std::move(sequence));
    } while (take(U'|'));
    if (!at_end()) fail("a ) without its (", at_);
    return Expression::alternatives(std::move(alternatives));
  }

 private:
  [[noreturn]] static void fail(const std::string& problem, size_t at) {
    throw DataError(fmt::format("character {}: {}", at + 1, problem));
  }

  bool at_end() const { return at_ == text_.size(); }
  bool sees(char32_t c) const { return !at_end() && text_[at_] == c; }
  bool take(char32_t c) {
    if (!sees(c)) return false;
    ++at_;
    return true;
  }

  /// Up to |, ), a $ or the end.
  Expression parse_sequence() {
    Expression sequence;
    while (!at_end() && text_[at_] != U'|' && text_[at_] != U')' && text_[at_] != U'$')
      sequence.parts.push_back(parse_repetition(parse_atom()));
    return sequence;
  }

  Expression parse_group(size_t begin) {
    if (++depth_ > kMostNested) fail(fmt::format("more than {} groups in each other", kMostNested), begin);
    if (take(U'?') && !take(U':')) fail("of the groups that begin with (?, only (?:…) is supported", begin);
    std::vector<Expression> alternatives;
    do {
      alternatives.push_back(parse_sequence());
      if (sees(U'$')) fail("$ within a group is not supported", at_);
    } while (take(U'|'));
    if (!take(U')')) fail("a ( without its )", begin);
    --depth_;
    return Expression::alternatives(std::move(alternatives));
  }

  Expression parse_atom() {
    const size_t begin = at_;
    const char32_t c = text_[at_++];
    switch (c) {
      case U'(':
        return parse_group(begin);
      case U'[':
        return Expression::one_of(parse_class(begin));
      case U'.':
        return Expression::one_of(CodePoints::one(U'\n').complement());
      case U'\\': {
        const auto escape = parse_escape(begin);
        return Expression::one_of(escape.least);
      }
      case U'*':
      case U'+':
      case U'?':
        fail("nothing stands before it that could be repeated", begin);
      case U'{':
        fail("nothing stands before it that could be repeated; for the character write \\{", begin);
      case U'^':
        fail("^ stands at the beginning of an alternative only", begin);
      default:
        return Expression::one_of(CodePoints::one(c));
    }
  }

  Expression parse_repetition(Expression part) {
    if (at_end()) return part;
    const size_t begin = at_;
    int64_t least = 0, most = Expression::kNoLimit;
    if (take(U'*')) {
    } else if (take(U'+')) {
      least = 1;
    } else if (take(U'?')) {
      most = 1;
    } else if (take(U'{')) {
      const auto first = parse_number(begin);
      least = first.value_or(0);
      if (take(U',')) {
        const auto second = parse_number(begin);
        most = second.value_or(Expression::kNoLimit);
        if (!first && !second) fail("write {m}, {m,}, {,n} or {m,n}, or \\{ for the character", begin);
      } else {
        if (!first) fail("write {m}, {m,}, {,n} or {m,n}, or \\{ for the character", begin);
        most = least;
      }
      if (!take(U'}')) fail("write {m}, {m,}, {,n} or {m,n}, or \\{ for the character", begin);
      if (most != Expression::kNoLimit && most < least) fail("it ends before it begins", begin);
    } else {
      return part;
    }
    if (sees(U'?')) fail("a lazy repetition matches the same texts as one without ?: leave it out", at_);
    if (sees(U'+')) fail("possessive repetitions are not supported", at_);
    if (sees(U'*') || sees(U'{')) fail("a repetition of a repetition: put the inner one into a group", at_);
    return Expression::repeated(std::move(part), least, most);
  }

  std::optional<int64_t> parse_number(size_t begin) {
    std::optional<int64_t> number;
    for (; !at_end() && text_[at_] >= U'0' && text_[at_] <= U'9'; ++at_) {
      number = number.value_or(0) * 10 + static_cast<int64_t>(text_[at_] - U'0');
      if (*number > kMostRepeated) fail(fmt::format("more than {} repetitions", kMostRepeated), begin);
    }
    return number;
  }

  char32_t parse_hex(int n_digits, size_t begin) {
    char32_t value = 0;
    for (int i = 0; i < n_digits; ++i) {
      const char32_t c = at_end() ? 0 : text_[at_++];
      const bool digit = c >= U'0' && c <= U'9', lower = c >= U'a' && c <= U'f',
                 upper = c >= U'A' && c <= U'F';
      if (!digit && !lower && !upper) fail(fmt::format("{} hexadecimal digits must follow", n_digits), begin);
      value = value * 16 + (digit ? c - U'0' : (lower ? c - U'a' : c - U'A') + 10);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) fail("this is not a character", begin);
    return value;
  }

  /// What follows a backslash.
  ClassBounds parse_escape(size_t begin) {
    if (at_end()) fail("a \\ at the end", begin);
    const char32_t c = text_[at_++];
    if (auto named = named_class(c)) return *named;
    const auto single = [](char32_t character) {
      return ClassBounds{CodePoints::one(character), CodePoints::one(character)};
    };
    switch (c) {
      case U'n':
        return single(U'\n');
      case U't':
        return single(U'\t');
      case U'r':
        return single(U'\r');
      case U'f':
        return single(U'\f');
      case U'v':
        return single(U'\v');
      case U'x':
        return single(parse_hex(2, begin));
      case U'u':
        return single(parse_hex(4, begin));
      case U'U':
        return single(parse_hex(8, begin));
      default:
        if (is_ascii_letter_or_digit(c))
          fail(fmt::format("\\{} is not supported", static_cast<char>(c)), begin);
        return single(c);
    }
  }

  /// One character of a class or a named class.
  ClassBounds parse_member(size_t begin) {
    if (at_end()) fail("a [ without its ]", begin);
    const size_t at = at_;
    const char32_t c = text_[at_++];
    if (c == U'\\') return parse_escape(at);
    return {CodePoints::one(c), CodePoints::one(c)};
  }

  /// Behind its [.
  CodePoints parse_class(size_t begin) {
    const bool negated = take(U'^');
    std::vector<CodeRange> least, most;
    bool is_first = true;
    while (is_first || !sees(U']')) {
      is_first = false;
      const size_t at = at_;
      auto member = parse_member(begin);
      const bool is_range = sees(U'-') && at_ + 1 < text_.size() && text_[at_ + 1] != U']';
      if (is_range) {
        ++at_;
        const auto last = parse_member(begin);
        member.least = member.most = range_between(member, last, at);
      }
      least.insert(least.end(), member.least.ranges().begin(), member.least.ranges().end());
      most.insert(most.end(), member.most.ranges().begin(), member.most.ranges().end());
    }
    ++at_;
    return negated ? CodePoints(std::move(most)).complement() : CodePoints(std::move(least));
  }

  static CodePoints range_between(const ClassBounds& first, const ClassBounds& last, size_t at) {
    const auto is_single = [](const ClassBounds& bounds) {
      const auto& ranges = bounds.most.ranges();
      return ranges.size() == 1 && ranges.front().first == ranges.front().last;
    };
    if (!is_single(first) || !is_single(last)) fail("a range goes from one character to another", at);
    const auto from = first.most.ranges().front().first, to = last.most.ranges().front().first;
    if (from > to) fail("this range ends before it begins", at);
    return CodePoints({{from, to}});
  }

  std::u32string text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression parse_regular_expression(std::string_view expression, Matches matches) {
  if (expression.size() > kMostExpressionBytes)
    throw DataError(fmt::format("the expression has more than {} bytes: shorten it", kMostExpressionBytes));
  return Parser(expression).parse(matches);
}

}  // namespace zoo
