#include "generation/constraints/json_strings.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

/// A character that a JSON string cannot have as it is, and how it is written.
std::vector<std::pair<char32_t, std::string>> escapes() {
  std::vector<std::pair<char32_t, std::string>> result = {{U'"', "\\\""}, {U'\\', "\\\\"}, {U'\b', "\\b"},
                                                          {U'\f', "\\f"}, {U'\n', "\\n"},  {U'\r', "\\r"},
                                                          {U'\t', "\\t"}};
  for (char32_t c = 0; c < 0x20; ++c) {
    const auto is_c = [&](const auto& escape) { return escape.first == c; };
    if (std::ranges::none_of(result, is_c))
      result.emplace_back(c, fmt::format("\\u{:04x}", static_cast<unsigned>(c)));
  }
  return result;
}

CodePoints plain_characters() { return CodePoints({{0, 0x1F}, {U'"', U'"'}, {U'\\', U'\\'}}).complement(); }

/// The characters `wanted` within a JSON string.
Expression within_json_string(const CodePoints& wanted) {
  std::vector<Expression> ways = {Expression::one_of(wanted.shared(plain_characters()))};
  for (const auto& [c, text] : escapes()) {
    if (wanted.contains(c)) ways.push_back(Expression::text(text));
  }
  return Expression::alternatives(std::move(ways));
}

/// The inside of every JSON string but these, which are sorted, from their character `begin` on.
Expression other_names(std::span<const std::u32string> names, size_t begin) {
  const auto any = Expression::repeated(within_json_string(CodePoints::all()), 0, Expression::kNoLimit);
  if (names.empty()) return any;
  const bool may_end = names.front().size() > begin;
  std::vector<Expression> ways;
  std::vector<CodeRange> used;
  for (auto first = names.begin() + (may_end ? 0 : 1); first != names.end();) {
    const char32_t c = (*first)[begin];
    const auto last = std::find_if(first, names.end(), [&](const auto& name) { return name[begin] != c; });
    used.push_back({c, c});
    ways.push_back(Expression::sequence(
        {within_json_string(CodePoints({{c, c}})), other_names(std::span(first, last), begin + 1)}));
    first = last;
  }
  ways.push_back(Expression::sequence({within_json_string(CodePoints(used).complement()), any}));
  auto result = Expression::alternatives(std::move(ways));
  return may_end ? Expression::optional(std::move(result)) : result;
}

}  // namespace

Expression within_json_string(const Expression& expression) {
  if (expression.kind == Expression::Kind::characters) return within_json_string(expression.characters);
  Expression result = expression;
  for (auto& part : result.parts) part = within_json_string(part);
  return result;
}

Expression other_json_names(const std::vector<std::string>& names) {
  std::set<std::u32string> sorted;
  for (const auto& name : names) {
    std::u32string characters;
    for (size_t at = 0; at < name.size();) characters += next_code_point(name, at);
    sorted.insert(std::move(characters));
  }
  const std::vector<std::u32string> list(sorted.begin(), sorted.end());
  return other_names(std::span(list), 0);
}

}  // namespace zoo
