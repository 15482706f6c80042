// Expressions, from the loosest operator to the tightest.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "templates/parser.h"

namespace zoo::templates {
namespace {

std::string shown(const Token& token) {
  const auto kind = token.kind;
  return kind == TokenKind::end            ? "the end of the template"
         : kind == TokenKind::block_end    ? "'%}'"
         : kind == TokenKind::variable_end ? "'}}'"
         : kind == TokenKind::string       ? "a text"
                                           : fmt::format("'{}'", excerpt(token.text, 30));
}

}  // namespace

Token ExpressionParser::take() {
  auto token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::skip(std::string_view sign) {
  if (!current().is(sign)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void ExpressionParser::expect(std::string_view sign) {
  if (!skip(sign)) fail_unexpected(fmt::format("'{}'", sign));
}

std::string ExpressionParser::expect_name() {
  if (current().kind != TokenKind::name) fail_unexpected("a name");
  return take().text;
}

void ExpressionParser::fail_unexpected(std::string_view expected) const {
  fail(fmt::format("expected {}, found {}", expected, shown(current())));
}

Operand ExpressionParser::expression(Inline conditions) {
  const Deeper deeper(*this);
  auto result = either();
  if (conditions == Inline::refused) return result;
  while (current().is_name("if")) {
    const int line = take().line;
    const auto condition = either();
    const auto otherwise = skip_name("else") ? expression() : nullptr;
    result = make(line, Conditional{condition, result, otherwise});
  }
  return result;
}

Operand ExpressionParser::either() {
  auto left = both();
  while (current().is_name("or")) {
    const int line = take().line;
    left = make(line, Junctor{Junction::either, left, both()});
  }
  return left;
}

Operand ExpressionParser::both() {
  auto left = negation();
  while (current().is_name("and")) {
    const int line = take().line;
    left = make(line, Junctor{Junction::both, left, negation()});
  }
  return left;
}

Operand ExpressionParser::negation() {
  if (!current().is_name("not")) return comparison();
  const Deeper deeper(*this);
  const int line = take().line;
  return make(line, Signed{Sign::negation, negation()});
}

std::optional<Comparator> ExpressionParser::comparator() {
  static constexpr std::pair<std::string_view, Comparator> signs[] = {
      {"==", Comparator::equal},      {"!=", Comparator::unequal}, {"<", Comparator::less},
      {"<=", Comparator::less_equal}, {">", Comparator::greater},  {">=", Comparator::greater_equal}};
  for (const auto& [sign, kind] : signs) {
    if (skip(sign)) return kind;
  }
  if (skip_name("in")) return Comparator::within;
  if (!current().is_name("not") || !next().is_name("in")) return std::nullopt;
  take();
  take();
  return Comparator::not_within;
}

Operand ExpressionParser::comparison() {
  const int line = current().line;
  const auto first = sum();
  std::vector<std::pair<Comparator, Operand>> rest;
  while (const auto kind = comparator()) rest.emplace_back(*kind, sum());
  return rest.empty() ? first : make(line, Comparison{first, std::move(rest)});
}

Operand ExpressionParser::sum() {
  auto left = concatenation();
  while (current().is("+") || current().is("-")) {
    const auto token = take();
    const auto op = token.text == "+" ? Operator::add : Operator::subtract;
    left = make(token.line, Arithmetic{op, left, concatenation()});
  }
  return left;
}

Operand ExpressionParser::concatenation() {
  const int line = current().line;
  std::vector<Operand> parts = {product()};
  while (skip("~")) parts.push_back(product());
  return parts.size() == 1 ? parts[0] : make(line, Concatenation{std::move(parts)});
}

Operand ExpressionParser::product() {
  static constexpr std::pair<std::string_view, Operator> signs[] = {{"*", Operator::multiply},
                                                                    {"/", Operator::divide},
                                                                    {"//", Operator::floor_divide},
                                                                    {"%", Operator::modulo}};
  auto left = power();
  for (;;) {
    const auto* const found =
        std::ranges::find_if(signs, [&](const auto& sign) { return current().is(sign.first); });
    if (found == std::end(signs)) return left;
    const int line = take().line;
    left = make(line, Arithmetic{found->second, left, power()});
  }
}

Operand ExpressionParser::power() {
  auto left = signed_operand(true);
  while (current().is("**")) {
    const int line = take().line;
    left = make(line, Arithmetic{Operator::power, left, signed_operand(true)});
  }
  return left;
}

Operand ExpressionParser::signed_operand(bool with_filters) {
  const Deeper deeper(*this);
  Operand result = nullptr;
  if (current().is("-") || current().is("+")) {
    const auto token = take();
    result = make(token.line, Signed{token.text == "-" ? Sign::minus : Sign::plus, signed_operand(false)});
  } else {
    result = primary();
  }
  result = postfix(result);
  return with_filters ? filters_and_tests(result) : result;
}

Operand ExpressionParser::primary() {
  const Deeper deeper(*this);
  const int line = current().line;
  switch (current().kind) {
    case TokenKind::name: {
      const auto name = take().text;
      if (name == "true" || name == "True") return make(line, Literal{true});
      if (name == "false" || name == "False") return make(line, Literal{false});
      if (name == "none" || name == "None") return make(line, Literal{});
      for (auto* macro : macros_) {
        macro->uses_varargs = macro->uses_varargs || name == "varargs";
        macro->uses_kwargs = macro->uses_kwargs || name == "kwargs";
        macro->uses_caller = macro->uses_caller || name == "caller";
      }
      return make(line, Name{syntax_.symbol(name)});
    }
    case TokenKind::string: {
      std::string text;
      while (current().kind == TokenKind::string) text += take().text;
      return make(line, Literal{std::make_shared<const Text>(Text{.bytes = std::move(text)})});
    }
    case TokenKind::integer:
      return make(line, Literal{take().integer});
    case TokenKind::real:
      return make(line, Literal{take().real});
    default:
      break;
  }
  if (skip("(")) {
    const auto result = current().is(")") ? make(line, ListForm{Kind::tuple, {}}) : tuple();
    expect(")");
    return result;
  }
  if (current().is("[")) return list_form();
  if (current().is("{")) return dict_form();
  fail_unexpected("an expression");
}

Operand ExpressionParser::tuple(Inline conditions, std::string_view end) {
  const int line = current().line;
  const auto ends = [&] {
    return current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end ||
           current().is(")") || (!end.empty() && current().is_name(end));
  };
  std::vector<Operand> items;
  bool is_tuple = false;
  while (!ends()) {
    items.push_back(expression(conditions));
    if (!skip(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return make(line, ListForm{Kind::tuple, std::move(items)});
  if (items.empty()) fail_unexpected("an expression");
  return items[0];
}

Operand ExpressionParser::list_form() {
  const int line = take().line;
  std::vector<Operand> items;
  while (!current().is("]")) {
    if (!items.empty()) expect(",");
    if (current().is("]")) break;
    items.push_back(expression());
  }
  expect("]");
  return make(line, ListForm{Kind::list, std::move(items)});
}

Operand ExpressionParser::dict_form() {
  const int line = take().line;
  std::vector<std::pair<Operand, Operand>> members;
  while (!current().is("}")) {
    if (!members.empty()) expect(",");
    if (current().is("}")) break;
    const auto key = expression();
    expect(":");
    members.emplace_back(key, expression());
  }
  expect("}");
  return make(line, DictForm{std::move(members)});
}

Operand ExpressionParser::postfix(Operand operand) {
  for (;;) {
    const int line = current().line;
    if (current().is(".") || current().is("[")) {
      operand = subscript(operand);
    } else if (current().is("(")) {
      operand = make(line, Call{operand, call_arguments()});
    } else {
      return operand;
    }
  }
}

Operand ExpressionParser::filters_and_tests(Operand operand) {
  for (;;) {
    const int line = current().line;
    if (current().is("|")) {
      operand = filters(operand);
    } else if (current().is_name("is")) {
      operand = test(operand);
    } else if (current().is("(")) {
      operand = make(line, Call{operand, call_arguments()});
    } else {
      return operand;
    }
  }
}

Operand ExpressionParser::subscript(Operand operand) {
  const int line = current().line;
  if (skip(".")) {
    if (current().kind == TokenKind::name) return make(line, Member{operand, take().text});
    if (current().kind != TokenKind::integer) fail_unexpected("a name or a number");
    return make(line, Item{operand, make(line, Literal{take().integer})});
  }
  expect("[");
  const auto is_end = [&] { return current().is("]") || current().is(","); };
  std::vector<Operand> keys;
  do {
    const Operand begin = current().is(":") ? nullptr : expression();
    if (!skip(":")) {
      keys.push_back(begin);
      continue;
    }
    const Operand end = current().is(":") || is_end() ? nullptr : expression();
    const Operand step = skip(":") && !is_end() ? expression() : nullptr;
    if (!current().is("]")) fail("several slices in brackets are not supported");
    if (!keys.empty()) fail("a slice after a comma is not supported");
    take();
    return make(line, Slice{operand, begin, end, step});
  } while (skip(",") && !current().is("]"));
  expect("]");
  const auto key = keys.size() == 1 ? keys[0] : make(line, ListForm{Kind::tuple, std::move(keys)});
  return make(line, Item{operand, key});
}

CallArguments ExpressionParser::call_arguments() {
  const Deeper deeper(*this);
  expect("(");
  CallArguments arguments;
  bool is_first = true;
  while (!current().is(")")) {
    if (!std::exchange(is_first, false)) {
      expect(",");
      if (current().is(")")) break;
    }
    const auto refuse = [&](bool wrong) {
      if (wrong) fail("arguments in the wrong order");
    };
    if (skip("*")) {
      refuse(arguments.more_positional || arguments.more_named);
      arguments.more_positional = expression();
    } else if (skip("**")) {
      refuse(arguments.more_named);
      arguments.more_named = expression();
    } else if (current().kind == TokenKind::name && next().is("=")) {
      refuse(arguments.more_named);
      auto name = take().text;
      take();
      const auto value = expression();
      for (const auto& named : arguments.named) {
        if (named.first == name) fail(fmt::format("the argument '{}' is given twice", name));
      }
      arguments.named.emplace_back(std::move(name), value);
    } else {
      refuse(arguments.more_positional || arguments.more_named || !arguments.named.empty());
      arguments.positional.push_back(expression());
    }
  }
  expect(")");
  return arguments;
}

Operand ExpressionParser::filter_after_bar(Operand operand) {
  const int line = current().line;
  auto name = expect_name();
  while (skip(".")) name += "." + expect_name();
  auto arguments = current().is("(") ? call_arguments() : CallArguments{};
  return make(line, Filter{operand, std::move(name), std::move(arguments)});
}

Operand ExpressionParser::filters(Operand operand) {
  while (skip("|")) operand = filter_after_bar(operand);
  return operand;
}

Operand ExpressionParser::test(Operand operand) {
  const int line = take().line;
  const bool is_negated = skip_name("not");
  auto name = expect_name();
  while (skip(".")) name += "." + expect_name();
  CallArguments arguments;
  const auto& token = current();
  const bool begins_value = token.kind == TokenKind::name || token.kind == TokenKind::string ||
                            token.kind == TokenKind::integer || token.kind == TokenKind::real ||
                            token.is("[") || token.is("{");
  if (token.is("(")) {
    arguments = call_arguments();
  } else if (begins_value && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) fail("tests cannot be chained with 'is'");
    arguments.positional.push_back(postfix(primary()));
  }
  const auto result = make(line, Test{operand, std::move(name), std::move(arguments)});
  return is_negated ? make(line, Signed{Sign::negation, result}) : result;
}

}  // namespace zoo::templates
