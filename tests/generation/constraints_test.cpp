// Regular expressions and JSON schemas as automata, and the tokens that they allow.

#include <algorithm>
#include <future>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"
#include "generation/constraints/automaton.h"
#include "generation/constraints/constraint_cache.h"
#include "generation/constraints/json_schema.h"
#include "generation/constraints/regular_expression.h"
#include "generation/constraints/text_constraint.h"
#include "generation/generator.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using zoo::testing::letters;
using zoo::testing::message_of;
using zoo::testing::small_config;
using zoo::testing::text_model;

constexpr int64_t kMuchWork = 1'000'000'000;

bool matches(Automaton& automaton, std::string_view text) {
  auto state = automaton.start();
  for (const char byte : text) state = automaton.next(state, static_cast<uint8_t>(byte));
  return state != Automaton::kDead && automaton.accepts(state);
}

Automaton automaton_of(std::string_view expression, Matches what = Matches::whole_text) {
  return {parse_regular_expression(expression, what), CodePoints::all()};
}

/// Every text of the letters a, b and c up to this length.
std::vector<std::string> short_texts(size_t longest) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size() && texts[i].size() < longest; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

TEST(RegularExpression, MatchesWhatOtherImplementationsMatch) {
  for (const std::string expression :
       {"", "a", "abc", "a*", "a+b?", "(ab|c)*", "(a|b){2,3}c", "a{0}b", "(a*)*b", "(|a)(b|)", "[ab]*c[^a]?",
        "a{2,}", "(a|ab)(c|bcd)?", "((a|b)(b|c)){1,2}", ".{3}", "a|b|", "(?:a?b){2}", "[^c]+",
        "(ab?){0,2}c"}) {
    auto whole = automaton_of(expression), part = automaton_of(expression, Matches::part_of_text);
    const std::regex reference(expression);
    for (const auto& text : short_texts(5)) {
      EXPECT_EQ(matches(whole, text), std::regex_match(text, reference)) << expression << " with " << text;
      EXPECT_EQ(matches(part, text), std::regex_search(text, reference)) << expression << " in " << text;
    }
  }
}

TEST(RegularExpression, AnchorsStandAtEndsOfAlternatives) {
  for (const std::string expression : {"^a", "b$", "^ab$", "^a|b$", "^a|c", "^$"}) {
    auto part = automaton_of(expression, Matches::part_of_text);
    const std::regex reference(expression);
    for (const auto& text : short_texts(4))
      EXPECT_EQ(matches(part, text), std::regex_search(text, reference)) << expression << " in " << text;
  }
  auto whole = automaton_of("^a|b$");
  EXPECT_TRUE(matches(whole, "a"));
  EXPECT_TRUE(matches(whole, "b"));
  EXPECT_FALSE(matches(whole, "ab"));
}

TEST(RegularExpression, ReadsPythonsBounds) {
  auto up_to = automaton_of("a{,2}b{1,}");
  EXPECT_TRUE(matches(up_to, "aab"));
  EXPECT_TRUE(matches(up_to, "bbb"));
  EXPECT_FALSE(matches(up_to, "aaab"));
  EXPECT_FALSE(matches(up_to, "aa"));
}

// Each character of sets with ends at the borders of the lengths of UTF-8, and each that they lack.
TEST(CodePoints, BecomeTheirBytes) {
  const std::vector<std::vector<CodeRange>> sets = {
      {{0, 0x10FFFF}},
      {{0x7F, 0x80}, {0x7FF, 0x800}, {0xFFFF, 0x10000}},
      {{0x41, 0x41}, {0x20AC, 0x20AC}, {0x4E2D, 0x4E8C}, {0x1F600, 0x1F64F}},
      {{0xD700, 0xE0FF}, {0x905, 0x1FFF}},
      {{0xC0, 0xFF}, {0x3040, 0x30FF}, {0x4E00, 0x9FFF}, {0x100005, 0x10FFFE}}};
  for (const auto& ranges : sets) {
    const CodePoints set(ranges);
    Automaton automaton(Expression::one_of(set), CodePoints::all());
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      ASSERT_EQ(matches(automaton, encode_utf8(std::u32string(1, c))), set.contains(c))
          << static_cast<uint32_t>(c);
    }
    EXPECT_FALSE(matches(automaton, "\xED\xA0\x80")) << "a surrogate";
    EXPECT_FALSE(matches(automaton, "\xC1\x81")) << "too long";
  }
}

TEST(Automaton, LeavesOutWhatLeadsNowhere) {
  auto automaton = automaton_of("ab|ac[^\\x00-\\U0010ffff]|d[^\\x00-\\U0010ffff]*");
  auto state = automaton.next(automaton.start(), 'a');
  EXPECT_NE(state, Automaton::kDead);
  EXPECT_EQ(automaton.next(state, 'c'), Automaton::kDead);
  EXPECT_TRUE(matches(automaton, "d"));
  EXPECT_EQ(automaton_of("a[^\\x00-\\U0010ffff]").start(), Automaton::kDead);
  Automaton narrow(parse_regular_expression("[a-z]+"), CodePoints({{U'x', U'x'}}));
  EXPECT_TRUE(matches(narrow, "xx"));
  EXPECT_FALSE(matches(narrow, "xy"));
}

// (a|b)*a(a|b){n} has 2^n deterministic states.
TEST(Automaton, HasALimit) {
  auto automaton = automaton_of("(a|b)*a(a|b){3000}");
  const auto read = [&] {
    auto state = automaton.start();
    for (uint32_t i = 0, random = 1; i < 1'000'000; ++i) {
      random = random * 1664525 + 1013904223;
      state = automaton.next(state, random >> 31 ? 'a' : 'b');
    }
  };
  EXPECT_THAT(message_of<DataError>(read), HasSubstr("the expression is too large"));
  automaton.forget();
  EXPECT_NE(automaton.next(automaton.start(), 'a'), Automaton::kDead);
}

// An expression that is too large is refused after few steps, in whatever form it is written.
TEST(Automaton, RefusesWhatWouldTakeLongToBuildOrToRead) {
  const auto refused = [](const std::string& expression) {
    SCOPED_TRACE(expression.substr(0, 60));
    EXPECT_THAT(message_of<DataError>([&] { automaton_of(expression).start(); }),
                HasSubstr("the expression is too large"));
  };
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += "([a-z ]?){9999}";
  refused(nine);
  refused("((((){9999}){9999}){9999}){9999}");
  EXPECT_THAT(message_of<DataError>([&] { parse_regular_expression(std::string(70'000, 'a')); }),
              HasSubstr("more than 65536 bytes"));
  // Each character of a set is looked at once.
  std::u32string many = U"[";
  for (char32_t c = 0x4E00; c < 0x4E00 + 20'000; ++c) many += c;
  auto automaton = automaton_of(encode_utf8(many + U"]"));
  EXPECT_TRUE(matches(automaton, "中"));
  EXPECT_FALSE(matches(automaton, "a"));
}

TEST(RegularExpression, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string, std::string>> problems = {
      {"a(b", "character 2: a ( without its )"},
      {"ab)c", "character 3: a ) without its ("},
      {"*a", "character 1: nothing stands before it"},
      {"a**", "character 3: a repetition of a repetition"},
      {"a+?", "character 3: a lazy repetition"},
      {"a++", "character 3: possessive"},
      {"ä[b", "character 2: a [ without its ]"},
      {"[b-a]", "ends before it begins"},
      {"[a-\\d]", "a range goes from one character to another"},
      {"a{3,1}", "character 2: it ends before it begins"},
      {"a{x}", "character 2: write {m}"},
      {"a{20000}", "more than 10000 repetitions"},
      {"{a", "character 1: nothing stands before it"},
      {"(?=a)b", "character 1: of the groups that begin with (?"},
      {"(?P<n>a)", "only (?:…) is supported"},
      {"a\\b", "character 2: \\b is not supported"},
      {"(a)\\1", "character 4: \\1 is not supported"},
      {"a\\", "a \\ at the end"},
      {"\\x4", "2 hexadecimal digits must follow"},
      {"\\ud800", "this is not a character"},
      {"a^", "character 2: ^ stands at the beginning"},
      {"a$b", "character 2: $ stands at the end"},
      {"(a$)", "character 3: $ within a group"}};
  for (const auto& [expression, problem] : problems) {
    EXPECT_THAT(message_of<DataError>([&] { parse_regular_expression(expression); }), HasSubstr(problem))
        << expression;
  }
  EXPECT_THAT(message_of<DataError>([] { parse_regular_expression(std::string(200, '(')); }),
              HasSubstr("more than 100 groups"));
  EXPECT_THAT(message_of<DataError>([] { automaton_of("((.{1000}){1000}){1000}"); }),
              HasSubstr("more than 200000 states"));
}

/// Whether a text is one of those that a schema describes.
bool described(std::string_view schema, std::string_view text) {
  Automaton automaton(parse_json_schema(schema), CodePoints::all());
  return matches(automaton, text);
}

TEST(JsonSchema, DescribesTexts) {
  const auto* const object = R"({"type": "object", "properties": {"a": {"type": "integer"},
      "b": {"type": "null"}, "c": {"type": "boolean"}}, "required": ["b"]})";
  for (const std::string text : {R"({"b": null})", R"({"a": -12, "b": null})", R"({"b": null, "c": true})",
                                 R"({"a": 0, "b": null, "c": false})"})
    EXPECT_TRUE(described(object, text)) << text;
  for (const std::string text : {"{}", R"({"a": 1})", R"({"c": true, "b": null})", R"({"b": null,"c": true})",
                                 R"({"a": 01, "b": null})", R"({"b": null, })"})
    EXPECT_FALSE(described(object, text)) << text;
  const auto* const optional = R"({"properties": {"a": {"const": 1}, "b": {"const": 2}}})";
  for (const std::string text : {"{}", R"({"a": 1})", R"({"b": 2})", R"({"a": 1, "b": 2})"})
    EXPECT_TRUE(described(optional, text)) << text;
  EXPECT_FALSE(described(optional, R"({, "b": 2})"));

  const auto* const array = R"({"type": "array", "items": {"const": "x"}, "minItems": 1, "maxItems": 3})";
  EXPECT_FALSE(described(array, "[]"));
  EXPECT_TRUE(described(array, R"(["x"])"));
  EXPECT_TRUE(described(array, R"(["x", "x", "x"])"));
  EXPECT_FALSE(described(array, R"(["x", "x", "x", "x"])"));
  EXPECT_TRUE(described(R"({"items": {"type": "null"}})", "[]"));

  const auto* const text = R"({"type": "string", "minLength": 1, "maxLength": 2})";
  for (const std::string value : {R"("a")", R"("ä€")", R"("\n\"")", R"("\u001f")"})
    EXPECT_TRUE(described(text, value)) << value;
  for (const std::string value : {R"("")", R"("abc")", "\"\n\"", R"("\x")", "\"\"\""})
    EXPECT_FALSE(described(text, value)) << value;
  const auto* const pattern = R"({"type": "string", "pattern": "^a\\.\"$"})";
  EXPECT_TRUE(described(pattern, R"("a.\"")"));
  EXPECT_FALSE(described(pattern, R"("ab\"")"));
  EXPECT_TRUE(described(R"({"type": "number"})", "-0.5e-3"));
  EXPECT_FALSE(described(R"({"type": "number"})", ".5"));
  EXPECT_FALSE(described(R"({"type": "integer", "enum": [1.5, 7, "a"]})", "1.5"));
  EXPECT_TRUE(described(R"({"type": "integer", "enum": [1.5, 7, "a"]})", "7"));
}

// RFC 6901: "~1" is "/", "~0" is "~"; a reference is the fragment of a URI.
TEST(JsonSchema, ReferencesLeadToAnyPlace) {
  EXPECT_TRUE(described(R"({"$defs": {"a/b": {"const": 1}}, "$ref": "#/$defs/a~1b"})", "1"));
  EXPECT_TRUE(described(R"({"$defs": {"~1": {"const": 2}}, "$ref": "#/$defs/~01"})", "2"));
  EXPECT_TRUE(described(R"({"$defs": {"a b": {"const": 3}}, "$ref": "#/%24defs/a%20b"})", "3"));
  const auto* const twins =
      R"({"properties": {"a": {"anyOf": [{"const": 1}, {"const": 2}]}, "b": {"$ref": "#/properties/a"},
"c": {"$ref": "#/properties/a/anyOf/1"}}, "required": ["a", "b", "c"]})";
  EXPECT_TRUE(described(twins, R"({"a": 1, "b": 2, "c": 2})"));
  EXPECT_FALSE(described(twins, R"({"a": 1, "b": 2, "c": 1})"));
  for (const char* const place :
       {"#/properties/b", "#/properties/a/anyOf/2", "#properties", "other#/a", "#/%2"}) {
    const auto schema =
        std::string(R"({"properties": {"a": {"anyOf": [{"const": 1}]}, "c": {"$ref": ")") + place + R"("}}})";
    EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(schema); }), HasSubstr("leads nowhere"))
        << place;
  }
  EXPECT_THAT(message_of<DataError>([] { parse_json_schema(R"({"items": {"$ref": "#"}})"); }),
              HasSubstr("contains itself"));
}

TEST(JsonSchema, MapsAreFilled) {
  const auto* const map = R"({"type": "object", "additionalProperties": {"type": "integer"}})";
  for (const char* const value : {"{}", R"({"a": 1})", R"({"": 0, "b\"c": -2, "ä": 30})"})
    EXPECT_TRUE(described(map, value)) << value;
  for (const char* const value : {R"({"a": "1"})", R"({"a": 1, })", R"({a: 1})"})
    EXPECT_FALSE(described(map, value)) << value;
  EXPECT_TRUE(described(R"({"additionalProperties": {"type": "null"}})", R"({"x": null})"));
  // Members beside the properties follow them and have other names.
  const auto* const both =
      R"({"properties": {"ab": {"type": "string"}, "a": {"type": "string"}}, "required": ["a"],
"additionalProperties": {"type": "integer"}})";
  for (const char* const value : {R"({"a": "x"})", R"({"a": "x", "b": 1})",
                                  R"({"ab": "", "a": "x", "abc": 1, "": 2, "\n": 3, "aa": 4})"})
    EXPECT_TRUE(described(both, value)) << value;
  for (const char* const value :
       {R"({"b": 1})", R"({"a": "x", "a": 1})", R"({"a": "x", "ab": 1})", R"({"b": 1, "a": "x"})"})
    EXPECT_FALSE(described(both, value)) << value;
  for (const char* const closed : {"false", "true", "{}"})
    EXPECT_FALSE(described(std::string(R"({"type": "object", "additionalProperties": )") + closed + "}",
                           R"({"a": 1})"));
  EXPECT_TRUE(described(R"({"anyOf": [{"const": 1}], "additionalProperties": false})", "1"));
}

// Counted while they are read, not afterwards.
TEST(JsonSchema, LimitsTheValuesAndTheLengthOfASchema) {
  std::string many = "{\"enum\": [0";
  for (int i = 1; i < 1'000'000; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(many + "]}"); }),
              HasSubstr("more than 262144 bytes"));
  const auto long_value = "{\"enum\": [\"" + std::string(210'000, 'a') + "\"]}";
  EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(long_value); }), HasSubstr("too many values"));
  std::string names = "{\"properties\": {\"a\": {\"type\": \"null\"}}, \"required\": [\"a\"";
  for (int i = 0; i < 1000; ++i) names += ", \"a\"";
  EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(names + "]}"); }), HasSubstr("too many names"));
  const auto name = "{\"properties\": {\"" + std::string(200'000, 'a') +
                    "\": {\"type\": \"null\"}}, \"additionalProperties\": {\"type\": \"null\"}}";
  EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(name); }), HasSubstr("name of more than"));
  std::string ways = "{\"oneOf\": [{\"const\": 0}";
  for (int i = 1; i < 700; ++i) ways += ", {\"const\": " + std::to_string(i) + "}";
  EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(ways + "]}"); }), HasSubstr("too many values"));
}

TEST(JsonSchema, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string, std::string>> problems = {
      {R"({"type": "strin"})", "/type: must be one of object, array"},
      {R"({"properties": {"a": {"type": "integer", "multipleOf": 3}}})",
       "/properties/a: the keyword 'multipleOf'"},
      {R"({"items": {"anyOf": [{"type": "null"}, true]}})", "/items/anyOf/1: a schema is an object"},
      {R"({})", "/: any value is not supported"},
      {R"({"type": "array"})", "/: an array of any values"},
      {R"({"properties": {}, "required": ["a"]})", "/required: 'a' is not one of the properties"},
      {R"text({"type": "string", "pattern": "a(?=b)"})text", "/pattern: character 2: of the groups"},
      {R"({"type": "string", "pattern": "a", "maxLength": 3})", "a pattern beside minLength or maxLength"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "minLength is more than maxLength"},
      {R"({"type": "string", "minLength": -1})", "/minLength: must be a whole number"},
      {R"({"$ref": "#/$defs/a"})", "/$ref: '#/$defs/a' leads nowhere"},
      {R"({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"})", "contains itself"},
      {R"({"anyOf": [{"type": "null"}], "type": "null"})", "'type' beside 'anyOf'"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
       "/oneOf: a value may be one of both 0 and 1"},
      {R"({"oneOf": [{"properties": {"a": {"type": "null"}}}, {"type": "object"}]})", "use anyOf"},
      {R"({"oneOf": [{"const": 1}, {"enum": [1, 2]}]})", "use anyOf"},
      {R"({"enum": [1], "type": "string"})", "no value is of the type"},
      {"[", "JSON"}};
  for (const auto& [schema, problem] : problems)
    EXPECT_THAT(message_of<DataError>([&] { parse_json_schema(schema); }), HasSubstr(problem)) << schema;
}

std::vector<std::shared_ptr<const Tokenizer>> vocabularies() {
  std::vector<std::shared_ptr<const Tokenizer>> result;
  const auto add = [&](TokenizerConfig config) {
    result.push_back(make_tokenizer(config, SpecialTokenSet::all, [](const auto& sink) {
      for (int i = 0; i < 10; ++i) sink("the cat sat on the mat, äöü €\nand  the dog ran.");
    }));
  };
  TokenizerConfig config;
  config.vocab_size = 330;
  for (const auto kind : {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::bpe,
                          TokenizerKind::sentencepiece, TokenizerKind::wordpiece}) {
    config.type = kind;
    add(config);
  }
  config.byte_fallback = false;
  config.type = TokenizerKind::sentencepiece;
  add(config);
  config.normalization = TextNormalization::nfkc;
  add(config);
  return result;
}

TEST(TokenText, IsTheTextOfTheTokensOneAfterTheOther) {
  for (const auto& tokenizer : vocabularies()) {
    for (const std::string text : {"the cat\nand the rat", "a", "\nthe", "dog  ran.", "€ä on"}) {
      const auto ids = tokenizer->encode(text);
      std::string joined;
      bool begins = true;
      for (const int64_t id : ids) {
        const auto own = tokenizer->token_text(id);
        joined += begins ? own.first : own.later;
        if (!own.later.empty()) begins = tokenizer->begins_text_after(id);
      }
      EXPECT_EQ(joined, tokenizer->decode(ids)) << text;
    }
  }
}

// Found by a walk over sorted texts, and here token by token.
TEST(TextConstraint, AllowsTheTokensThatKeepTheAutomatonAlive) {
  for (const auto& tokenizer : vocabularies()) {
    const auto unused = tokenizer->never_generated();
    for (const std::string expression :
         {"(the|cat|[a-z]{2}) ?[a-z]*", "[^a]+", "\\w+(\\s\\w+)*", "t.{0,3}[n-z]"}) {
      const auto parsed = parse_regular_expression(expression);
      const TextConstraint constraint(parsed, *tokenizer, unused);
      Automaton automaton(parsed, CodePoints::all());
      WorkLimit work(kMuchWork);
      TokenIds ids;
      for (int step = 0; step < 6; ++step) {
        const auto allowed = constraint.allowed({}, ids, work);
        ASSERT_EQ(allowed.size(0), tokenizer->vocab_size());
        std::vector<int64_t> possible;
        for (int64_t id = 0; id < tokenizer->vocab_size(); ++id) {
          const bool is_unused = std::ranges::find(unused, id) != unused.end();
          const auto own = tokenizer->token_text(id);
          std::string text;
          bool begins = true;
          for (const int64_t earlier : ids) {
            const auto its = tokenizer->token_text(earlier);
            text += begins ? its.first : its.later;
            begins = tokenizer->begins_text_after(earlier);
          }
          const auto added = begins ? own.first : own.later;
          auto state = automaton.start();
          for (const char byte : text + added) state = automaton.next(state, static_cast<uint8_t>(byte));
          const bool is_end = id == tokenizer->special().eos;
          const bool expected =
              is_end ? matches(automaton, text) : !is_unused && !added.empty() && state != Automaton::kDead;
          const bool is_allowed = allowed[id].item<bool>();
          // Without a token for each byte, texts of other characters do not count.
          EXPECT_LE(is_allowed, expected) << expression << ", " << tokenizer->label(id);
          if (tokenizer->vocab_size() > 256) {
            EXPECT_EQ(is_allowed, expected) << expression << ", " << tokenizer->label(id);
          }
          if (is_allowed && !is_end) possible.push_back(id);
        }
        if (possible.empty()) break;
        ids.push_back(possible[static_cast<size_t>(step * 7919) % possible.size()]);
      }
    }
  }
}

TEST(TextConstraint, NeedsATextThatTheVocabularyCanWrite) {
  const auto message = [](const std::string& regex) {
    return message_of<UsageError>([&] {
      const auto tokenizer = letters();
      Generator(*text_model(small_config(Architecture::decoder), *tokenizer), *tokenizer)
          .generate(std::vector<std::string>{"a"}, {.regex = regex});
    });
  };
  EXPECT_THAT(message("[a-p]{3}z"), StartsWith("regex: no text matches that this vocabulary can write"));
  EXPECT_THAT(message("a(b"), StartsWith("regex: character 2: "));
  EXPECT_EQ(message("abc"), "no error");
}

GenerationConfig drawn(const std::string& regex) {
  GenerationConfig options;
  options.max_new_tokens = 40;
  options.num_samples = 40;
  options.regex = regex;
  return options;
}

/// The texts of outputs, which must have ended in this way, unless they have the greatest length.
std::vector<std::string> ended(const Generator& generator, const GenerationConfig& options, OutputEnd end) {
  std::vector<std::string> texts;
  for (const auto& generation : generator.generate(std::vector<std::string>{"", "abc"}, options)) {
    for (const auto& output : generation.outputs) {
      if (output.end == OutputEnd::length) {
        EXPECT_EQ(std::ssize(output.ids), options.max_new_tokens);
        continue;
      }
      EXPECT_EQ(output.end, end);
      texts.push_back(output.text);
    }
  }
  return texts;
}

TEST(ConstrainedOutput, EndsByItselfWithoutAnEndToken) {
  const auto tokenizer = letters(SpecialTokenSet::none);
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  for (const int64_t beams : {1, 3}) {
    auto options = drawn("(ab|ca){2}p?d");
    options.beam = beams;
    if (beams > 1) options.num_samples = beams;
    const auto texts = ended(generator, options, OutputEnd::complete);
    EXPECT_GE(texts.size(), 4U);
    for (const auto& text : texts) EXPECT_TRUE(std::regex_match(text, std::regex(options.regex))) << text;
  }
}

TEST(ConstrainedOutput, WinsOverOtherRules) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  auto options = drawn("(ab){3}");
  options.min_new_tokens = 20;
  options.no_repeat_ngram_size = 2;
  options.forced_first_token = tokenizer->encode("p").front();
  options.bad_words = {"b"};
  const auto texts = ended(generator, options, OutputEnd::end_token);
  EXPECT_EQ(texts, std::vector<std::string>(80, "ababab"));
}

TEST(ConstrainedOutput, IsTheSameWithProposedTokens) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  auto options = drawn("((ab|cd)e?){4,12}");
  const auto texts = ended(generator, options, OutputEnd::end_token);
  options.prompt_lookup = 4;
  EXPECT_EQ(ended(generator, options, OutputEnd::end_token), texts);
  for (const auto& text : texts) EXPECT_TRUE(std::regex_match(text, std::regex(options.regex))) << text;
}

TEST(ConstrainedOutput, AnswersOfAnEncoderDecoderMatch) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::encoder_decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  const auto options = drawn("[a-d]{2,5}(e|f)");
  for (const auto& generation : generator.generate(std::vector<std::string>{"abc"}, options)) {
    for (const auto& output : generation.outputs)
      EXPECT_TRUE(std::regex_match(output.text, std::regex(options.regex))) << output.text;
  }
}

TEST(RequestConstraint, TakesABoundedAmountOfWork) {
  const auto tokenizer = vocabularies().front();
  const auto constraint = std::make_shared<const TextConstraint>(
      parse_regular_expression("[a-z]*e[a-z]{3000}"), *tokenizer, tokenizer->never_generated());
  // From here on, each token leads to a state that has thousands of places.
  TokenIds ids = tokenizer->encode("e");
  const auto follow = [&](auto& work) {
    while (ids.size() < 100'000) {
      const auto tokens = constraint->allowed({}, ids, work).nonzero().flatten();
      ids.push_back(
          tokens[static_cast<int64_t>(ids.size() * 7919) % tokens.numel()].template item<int64_t>());
    }
  };
  WorkLimit little(100'000);
  EXPECT_THAT(message_of<DataError>([&] { follow(little); }), HasSubstr("takes too much time"));
  EXPECT_LT(ids.size(), 1000u);
  // A request gets work for each of its tokens, and other requests do not lose theirs.
  RequestConstraint one(constraint, OutputText::stands_alone), other(constraint, OutputText::stands_alone);
  EXPECT_TRUE(one.allowed({}, {}).any().item<bool>());
  EXPECT_TRUE(other.allowed({}, ids).any().item<bool>());
}

TEST(ConstraintCache, KeepsTheConstraintsThatWereAskedForLast) {
  const auto tokenizer = vocabularies().front();
  ConstraintCache cache(2);
  int n_made = 0;
  const auto get = [&](const std::string& text) {
    return cache.get({.text = text}, [&] {
      ++n_made;
      return std::make_shared<TextConstraint>(parse_regular_expression(text), *tokenizer, TokenIds());
    });
  };
  const auto first = get("a+");
  EXPECT_EQ(get("a+"), first);
  get("d+");
  EXPECT_EQ(get("a+"), first);
  EXPECT_EQ(n_made, 2);
  get("c+");  // takes the place of d+, which was asked for before a+
  EXPECT_EQ(get("a+"), first);
  EXPECT_EQ(n_made, 3);
  get("d+");
  EXPECT_EQ(n_made, 4);
  EXPECT_THROW(get("("), DataError);
  EXPECT_THROW(get("("), DataError);
  EXPECT_EQ(n_made, 6);
}

TEST(ConstraintCache, OneIsMadeAtATimeAndFewWait) {
  const auto tokenizer = vocabularies().front();
  const auto made = std::make_shared<TextConstraint>(parse_regular_expression("a"), *tokenizer, TokenIds());
  ConstraintCache cache(2);
  std::promise<void> has_begun, may_end;
  const auto first = std::async(std::launch::async, [&] {
    return cache.get({.text = "a"}, [&] {
      has_begun.set_value();
      may_end.get_future().wait();
      return made;
    });
  });
  has_begun.get_future().wait();
  // Of two that come now, one waits for the first, which it needs too, and one is refused.
  std::vector<std::future<bool>> others;
  for (int i = 0; i < 2; ++i) {
    others.push_back(std::async(std::launch::async, [&] {
      try {
        return cache.get({.text = "a"}, [&]() -> std::shared_ptr<const TextConstraint> {
          throw DataError("made twice");
        }) == made;
      } catch (const BusyError&) {
        may_end.set_value();
        return false;
      }
    }));
  }
  const bool one = others[0].get(), other = others[1].get();
  EXPECT_NE(one, other);
  EXPECT_EQ(cache.get({.text = "a"}, nullptr), made);
  EXPECT_EQ(cache.get({.text = "b"}, [&] { return made; }), made) << "places are given back";
}

}  // namespace
}  // namespace zoo
