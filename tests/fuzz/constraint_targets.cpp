// Regular expressions and JSON schemas of strangers: what they allow is followed for some tokens.

#include <memory>
#include <stdexcept>

#include <torch/types.h>

#include "generation/constraints/json_schema.h"
#include "generation/constraints/regular_expression.h"
#include "generation/constraints/text_constraint.h"
#include "tests/fuzz/targets.h"
#include "tokenizers/tokenizer.h"

namespace zoo::fuzz {
namespace {

std::shared_ptr<const Tokenizer> tokens_of_bytes() {
  TokenizerConfig config;
  config.type = TokenizerKind::byte;
  return make_tokenizer(config, SpecialTokenSet::all, [](const auto&) {});
}

/// Writes a few tokens: the first, the last, or one between them of those that may follow.
void follow(const Expression& expression) {
  static const auto tokenizer = tokens_of_bytes();
  const auto made =
      std::make_shared<const TextConstraint>(expression, *tokenizer, tokenizer->never_generated());
  RequestConstraint constraint(made, OutputText::stands_alone);
  TokenIds ids;
  for (int64_t step = 0; step < 24; ++step) {
    if (constraint.is_complete({}, ids)) return;
    const auto tokens = constraint.allowed({}, ids).nonzero().flatten();
    if (tokens.numel() == 0) throw std::logic_error("no token may follow");
    ids.push_back(tokens[step * 7 % tokens.numel()].item<int64_t>());
    if (ids.back() == tokenizer->special().eos) return;
  }
}

/// What needs many states, or is nested deeply.
Seeds hostile_expressions() {
  return {"(((((a{1,100}){1,100}){1,100}){1,100}){1,100})",
          "(a|aa|aaa|b*)*c" + std::string(500, '?'),
          std::string(5000, '(') + "a" + std::string(5000, ')'),
          "[^a]*a[^b]{5000}",
          "(.*.*.*.*.*.*.*.*.*.*)x",
          "[\\u0000-\\U0010FFFF]{1,10000}",
          "a{10000}{10000}",
          "([a-z ]?){9999}([a-z ]?){9999}([a-z ]?){9999}([a-z ]?){9999}([a-z ]?){9999}",
          "((((){9999}){9999}){9999}){9999}",
          "[a-z]*a[a-z]{9999}"};
}

Seeds hostile_schemas() {
  std::string nested = "{\"type\": \"string\"}";
  for (int i = 0; i < 300; ++i) nested = "{\"type\": \"array\", \"items\": " + nested + "}";
  return {nested, R"({"type": "array", "minItems": 10000, "items": {"type": "array", "minItems": 10000}})",
          R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})",
          R"({"type": "string", "minLength": 100000, "maxLength": 1000000})"};
}

}  // namespace

std::vector<Target> constraint_targets() {
  return {{"expression", "regular expressions of outputs, followed", mutate_text,
           [](const std::string& input) { follow(parse_regular_expression(input)); }, hostile_expressions()},
          {"schema", "JSON schemas of outputs, followed", mutate_text,
           [](const std::string& input) { follow(parse_json_schema(input)); }, hostile_schemas()}};
}

}  // namespace zoo::fuzz
