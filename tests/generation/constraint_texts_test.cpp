// Which texts expressions and schemas stand for: no other ones, and all of them.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/text.h"
#include "generation/constraints/automaton.h"
#include "generation/constraints/json_schema.h"
#include "generation/constraints/regular_expression.h"
#include "generation/constraints/text_constraint.h"
#include "tests/support/errors.h"
#include "tokenizers/tokenizer.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMuchWork = 1'000'000'000;

bool has_text(Automaton& automaton, std::string_view text) {
  auto state = automaton.start();
  for (const char byte : text) {
    if (state == Automaton::kDead) return false;
    state = automaton.next(state, static_cast<uint8_t>(byte));
  }
  return state != Automaton::kDead && automaton.accepts(state);
}

/// ASCII, characters of two to four bytes, and those at the borders of these lengths.
std::vector<char32_t> some_characters() {
  std::vector<char32_t> list;
  for (char32_t c = 0; c < 0x80; ++c) list.push_back(c);
  for (const char32_t c :
       {0x80,   0xE4,   0xE9,   0xDF,   0x3A9,  0x416,  0x663,   0x7FF,   0x800,   0x905,   0x2003,
        0x20AC, 0x4E2D, 0xD55C, 0xFEFF, 0xFF21, 0xFFFF, 0x10000, 0x1D400, 0x1F600, 0x10FFFF})
    list.push_back(c);
  return list;
}

using IsIn = std::function<bool(char32_t c)>;
void expect_characters(const std::string& expression, const IsIn& expected) {
  Automaton automaton(parse_regular_expression(expression), CodePoints::all());
  for (const char32_t c : some_characters()) {
    EXPECT_EQ(has_text(automaton, encode_utf8(std::u32string(1, c))), expected(c))
        << expression << " with U+" << std::hex << static_cast<uint32_t>(c);
  }
  EXPECT_FALSE(has_text(automaton, "")) << expression;
}

bool is_ascii(char32_t c) { return c < 0x80; }
bool is_digit_of_ascii(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_word_of_ascii(char32_t c) {
  return is_digit_of_ascii(c) || (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z') || c == U'_';
}
bool is_blank_of_ascii(char32_t c) {
  return c == U' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
}

// Python's meaning, with re.ASCII and without: characters for which they differ are in neither class.
TEST(RegularExpression, ClassesHaveTheCharactersOfAsciiThatPythonHas) {
  const auto within_ascii = [](const IsIn& expected) {
    return [=](char32_t c) { return is_ascii(c) && expected(c); };
  };
  expect_characters("\\d", within_ascii(is_digit_of_ascii));
  expect_characters("[0-9]", within_ascii(is_digit_of_ascii));
  expect_characters("\\w", within_ascii(is_word_of_ascii));
  expect_characters("[\\w]", within_ascii(is_word_of_ascii));
  for (const auto& [expression, expected] : std::vector<std::pair<std::string, IsIn>>{
           {"\\D", [](char32_t c) { return !is_digit_of_ascii(c); }},
           {"\\W", [](char32_t c) { return !is_word_of_ascii(c); }},
           {"[^\\d]", [](char32_t c) { return !is_digit_of_ascii(c); }},
           {"[^\\w-]", [](char32_t c) { return !is_word_of_ascii(c) && c != U'-'; }}}) {
    Automaton automaton(parse_regular_expression(expression), CodePoints::all());
    for (char32_t c = 0; c < 0x80; ++c)
      EXPECT_EQ(has_text(automaton, std::string(1, static_cast<char>(c))), expected(c))
          << expression << static_cast<int>(c);
    EXPECT_FALSE(has_text(automaton, "٣")) << expression << ": a digit with re.UNICODE alone";
  }
  // re.ASCII has six blanks; without it there are the four separators, too.
  Automaton blanks(parse_regular_expression("\\s"), CodePoints::all()),
      others(parse_regular_expression("\\S"), CodePoints::all());
  for (char32_t c = 0; c < 0x80; ++c) {
    const std::string text(1, static_cast<char>(c));
    const bool is_sure = c == U' ' || (c >= 0x09 && c <= 0x0D);
    EXPECT_EQ(has_text(blanks, text), is_sure) << static_cast<int>(c);
    EXPECT_EQ(has_text(others, text), !is_blank_of_ascii(c)) << static_cast<int>(c);
  }
}

TEST(RegularExpression, SetsAreReadAsPythonReadsThem) {
  const auto one_of = [](std::u32string list) {
    return [list = std::move(list)](char32_t c) { return list.find(c) != list.npos; };
  };
  const auto none_of = [](std::u32string list) {
    return [list = std::move(list)](char32_t c) { return list.find(c) == list.npos; };
  };
  expect_characters("[]a]", one_of(U"]a"));
  expect_characters("[^]a]", none_of(U"]a"));
  expect_characters("[]-a]", one_of(U"]^_`a"));
  expect_characters("[a-]", one_of(U"a-"));
  expect_characters("[-a]", one_of(U"-a"));
  expect_characters("[^-]", none_of(U"-"));
  expect_characters("[+--]", one_of(U"+,-"));
  expect_characters("[a^]", one_of(U"a^"));
  expect_characters("[\\^a]", one_of(U"^a"));
  expect_characters("[\\]\\\\]", one_of(U"]\\"));
  expect_characters("[.*+?$(){|}]", one_of(U".*+?$(){|}"));
  expect_characters("[!-/]", [](char32_t c) { return c >= 0x21 && c <= 0x2F; });
  expect_characters("[ -~]", [](char32_t c) { return c >= 0x20 && c <= 0x7E; });
  expect_characters("[\\d_]", [](char32_t c) { return is_digit_of_ascii(c) || c == U'_'; });
  expect_characters("[ß-é]", [](char32_t c) { return c >= 0xDF && c <= 0xE9; });
  expect_characters(".", none_of(U"\n"));
  expect_characters("[^\\n]", none_of(U"\n"));
  expect_characters("]", one_of(U"]"));
  expect_characters("}", one_of(U"}"));
  expect_characters("[中-中😀]", one_of(U"中😀"));
}

TEST(RegularExpression, EveryCharacterStandsForItself) {
  for (char32_t c = 0; c < 0x80; ++c) {
    const std::string character(1, static_cast<char>(c));
    const bool is_plain = std::string("\\^$.|?*+()[]{}").find(character) == std::string::npos;
    const auto is_it = [=](char32_t other) { return other == c; };
    if (is_plain) expect_characters(character, is_it);
    if (!is_word_of_ascii(c) || c == U'_') expect_characters("\\" + character, is_it);
    const bool is_plain_in_set = std::string("\\]^[-").find(character) == std::string::npos;
    expect_characters("[" + std::string(is_plain_in_set ? "" : "\\") + character + "]", is_it);
    expect_characters(fmt::format("\\x{:02x}", static_cast<uint32_t>(c)), is_it);
    expect_characters(fmt::format("[\\x{:02X}]", static_cast<uint32_t>(c)), is_it);
  }
  for (const char32_t c : some_characters()) {
    const auto is_it = [=](char32_t other) { return other == c; };
    const auto n = static_cast<uint32_t>(c);
    if (n <= 0xFFFF) {
      expect_characters(fmt::format("\\u{:04X}", n), is_it);
      expect_characters(fmt::format("\\u{:04x}", n), is_it);
    }
    expect_characters(fmt::format("\\U{:08X}", n), is_it);
    expect_characters(fmt::format("[\\U{:08x}]", n), is_it);
    if (n >= 0x80) expect_characters(encode_utf8(std::u32string(1, c)), is_it);
  }
  expect_characters("[\\x4A-\\x4F]", [](char32_t c) { return c >= U'J' && c <= U'O'; });
  expect_characters("\\xE9|\\xe4", [](char32_t c) { return c == 0xE9 || c == 0xE4; });
}

bool is_described(std::string_view schema, std::string_view text) {
  Automaton automaton(parse_json_schema(schema), CodePoints::all());
  return has_text(automaton, text);
}

TEST(Automaton, OfNoTextsIsDeadFromTheStart) {
  Automaton none(Expression::alternatives({}), CodePoints::all());
  EXPECT_EQ(none.start(), Automaton::kDead);
  Automaton behind(Expression::sequence({Expression::text("a"), Expression::alternatives({})}),
                   CodePoints::all());
  EXPECT_EQ(behind.start(), Automaton::kDead);
  Automaton empty(Expression::text(""), CodePoints::all());
  EXPECT_TRUE(has_text(empty, ""));
}

// With each set of required members, exactly the objects with all of them, in the order of the schema.
TEST(JsonSchema, ObjectsHaveTheirRequiredMembersAndAnyOfTheOthers) {
  constexpr unsigned n = 4, all = 1U << n;
  const std::string names = "abcd";
  for (unsigned required = 0; required < all; ++required) {
    std::string properties, list;
    for (unsigned i = 0; i < n; ++i) {
      properties += fmt::format(R"({}"{}": {{"const": {}}})", i == 0 ? "" : ", ", names[i], i);
      if (required >> i & 1) list += fmt::format(R"({}"{}")", list.empty() ? "" : ", ", names[i]);
    }
    Automaton automaton(
        parse_json_schema(
            fmt::format(R"({{"type": "object", "properties": {{{}}}, "required": [{}]}})", properties, list)),
        CodePoints::all());
    for (unsigned present = 0; present < all; ++present) {
      std::string text;
      for (unsigned i = 0; i < n; ++i)
        if (present >> i & 1) text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", names[i], i);
      EXPECT_EQ(has_text(automaton, "{" + text + "}"), (required & ~present) == 0) << list << " in " << text;
    }
    EXPECT_FALSE(has_text(automaton, R"({"b": 1, "a": 0, "c": 2, "d": 3})"))
        << "the order is that of the schema";
  }
}

TEST(JsonSchema, ReferencesMayLeadToOnePlaceSeveralTimes) {
  const auto* const schema = R"({"$defs": {"x": {"enum": [1, 2]}, "pair": {"type": "object", "properties":
      {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}}, "required": ["a", "b"]}},
      "type": "array", "items": {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/pair"}, {"$ref": "#/$defs/pair"}]}})";
  for (const char* const text :
       {"[]", "[1, 2]", R"([{"a": 1, "b": 2}])", R"([{"a": 2, "b": 2}, 1, {"a": 1, "b": 1}])"})
    EXPECT_TRUE(is_described(schema, text)) << text;
  for (const char* const text : {"[3]", R"([{"a": 1}])", R"([{"a": 1, "b": 3}])"})
    EXPECT_FALSE(is_described(schema, text)) << text;
}

TEST(JsonSchema, ValuesOfEnumAndConstAreThoseOfBoth) {
  const auto* const both = R"({"enum": [1, "1", null, [1]], "const": "1"})";
  EXPECT_TRUE(is_described(both, R"("1")"));
  for (const char* const text : {"1", "null", "[1]"}) EXPECT_FALSE(is_described(both, text)) << text;
  EXPECT_THAT(message_of<DataError>([] { parse_json_schema(R"({"enum": [1, 2], "const": 3})"); }),
              HasSubstr("no value"));
  EXPECT_TRUE(is_described(R"({"const": [1], "enum": [[1], [2]], "type": "array"})", "[1]"));
}

// An integer is a number, and 3.0 is an integer.
TEST(JsonSchema, ValuesOfAnEnumAreOfTheTypesThatItNames) {
  const std::string values = R"("enum": [1, 2.5, 3.0, "a", true, null, -7])";
  const auto of = [&](const std::string& type) { return R"({"type": )" + type + ", " + values + "}"; };
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {R"("number")", {"1", "2.5", "3.0", "-7"}},
      {R"("integer")", {"1", "3.0", "-7"}},
      {R"("string")", {R"("a")"}},
      {R"(["boolean", "null"])", {"true", "null"}},
      {R"(["string", "number"])", {"1", "2.5", "3.0", R"("a")", "-7"}}};
  for (const auto& [type, allowed] : cases) {
    for (const std::string value : {"1", "2.5", "3.0", R"("a")", "true", "null", "-7"})
      EXPECT_EQ(is_described(of(type), value), std::ranges::find(allowed, value) != allowed.end())
          << type << value;
  }
}

// A pattern is somewhere in the text, unless it has anchors.
TEST(JsonSchema, PatternsWithoutAnchorsAreFoundAnywhere) {
  const auto of = [](const std::string& pattern) {
    return R"({"type": "string", "pattern": ")" + pattern + R"("})";
  };
  for (const std::string inside : {"b", "abc", "ab", "bc", "äb€", "\\nb", "\\\"b\\\\"}) {
    EXPECT_TRUE(is_described(of("b"), "\"" + inside + "\"")) << inside;
    EXPECT_EQ(is_described(of("^b"), "\"" + inside + "\""), inside.starts_with("b")) << inside;
    EXPECT_EQ(is_described(of("b$"), "\"" + inside + "\""), inside.ends_with("b")) << inside;
    EXPECT_EQ(is_described(of("^b$"), "\"" + inside + "\""), inside == "b") << inside;
  }
  EXPECT_FALSE(is_described(of("b"), R"("ac")"));
  EXPECT_FALSE(is_described(of("b"), R"("")"));
  EXPECT_FALSE(is_described(of("b"), "\"b\n\"")) << "a line break is escaped in JSON";
}

Automaton automaton_of_schema(const std::string& schema) {
  return {parse_json_schema(schema), CodePoints::all()};
}

// Each whole number around the bounds, and numbers with a fraction, against their values.
TEST(JsonSchema, NumbersKeepToTheirBounds) {
  struct Case {
    std::string schema;
    std::function<bool(double)> is_in;
  };
  const std::vector<Case> cases = {
      {R"("minimum": 7)", [](double x) { return x >= 7; }},
      {R"("maximum": 7)", [](double x) { return x <= 7; }},
      {R"("minimum": 0, "maximum": 1)", [](double x) { return x >= 0 && x <= 1; }},
      {R"("minimum": -13, "maximum": 105)", [](double x) { return x >= -13 && x <= 105; }},
      {R"("exclusiveMinimum": -13, "exclusiveMaximum": 105)", [](double x) { return x > -13 && x < 105; }},
      {R"("minimum": -105, "exclusiveMaximum": -9)", [](double x) { return x >= -105 && x < -9; }},
      {R"("exclusiveMinimum": 0, "maximum": 100)", [](double x) { return x > 0 && x <= 100; }},
      {R"("exclusiveMinimum": 3, "exclusiveMaximum": 4)", [](double x) { return x > 3 && x < 4; }},
      {R"("minimum": 99, "maximum": 99)", [](double x) { return x == 99; }}};
  for (const auto& [bounds, is_within] : cases) {
    SCOPED_TRACE(bounds);
    auto number = automaton_of_schema("{\"type\": \"number\", " + bounds + "}");
    const bool has_integers = bounds.find("3, \"exclusiveMaximum\": 4") == std::string::npos;
    auto integer =
        automaton_of_schema("{\"type\": \"integer\", " + (has_integers ? bounds : "\"minimum\": 0") + "}");
    for (int whole = -120; whole <= 120; ++whole) {
      const auto text = std::to_string(whole);
      EXPECT_EQ(has_text(number, text), is_within(whole)) << text;
      EXPECT_FALSE(has_text(integer, text + ".5"));
      if (has_integers) {
        EXPECT_EQ(has_text(integer, text), is_within(whole)) << text;
      }
      for (const std::string fraction : {".0", ".5", ".001", ".999"}) {
        const auto longer = text + fraction;
        EXPECT_EQ(has_text(number, longer), is_within(std::stod(longer))) << longer;
      }
    }
  }
  EXPECT_TRUE(is_described(R"({"type": "integer", "minimum": 1.5, "maximum": 2.5})", "2"));
  EXPECT_FALSE(is_described(R"({"type": "integer", "minimum": 1.5, "maximum": 2.5})", "1"));
  EXPECT_TRUE(is_described(R"({"minimum": 12345})", "999999999999999"));
  EXPECT_TRUE(is_described(R"({"type": ["integer", "null"], "minimum": 3})", "null"));
  for (const std::string wrong :
       {R"({"type": "integer", "minimum": 3, "maximum": 2})", R"({"type": "number", "minimum": 0.5})",
        R"({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4})", R"({"minimum": "3"})",
        R"({"type": "integer", "minimum": 1e300})", R"({"format": "date", "minLength": 3})",
        R"({"type": "string", "format": "telephone"})"})
    EXPECT_THROW(parse_json_schema(wrong), DataError) << wrong;
}

TEST(JsonSchema, BoundsMayBeAroundNothingAndNearEachOther) {
  const auto* const around = R"({"type": "integer", "minimum": -5, "maximum": 3})";
  for (const char* const text : {"-5", "-1", "0", "3"}) EXPECT_TRUE(is_described(around, text)) << text;
  for (const char* const text : {"-6", "-0", "4"}) EXPECT_FALSE(is_described(around, text)) << text;
  const auto* const near = R"({"type": "number", "minimum": 1, "maximum": 3})";
  for (const char* const text : {"1", "1.5", "2", "2.5", "3"}) EXPECT_TRUE(is_described(near, text)) << text;
  for (const char* const text : {"0.9", "3.1", "4"}) EXPECT_FALSE(is_described(near, text)) << text;
}

TEST(JsonSchema, TextsHaveTheirFormats) {
  struct Case {
    std::string format;
    std::vector<std::string> good, bad;
  };
  const std::vector<Case> cases = {
      {"date",
       {"2024-02-28", "0001-12-31", "2023-11-30"},
       {"2024-13-01", "2023-02-30", "2023-11-31", "0000-01-01"}},
      {"time", {"23:59:59Z", "00:00:00.123+02:00"}, {"24:00:00Z", "12:00:00", "12:60:00Z"}},
      {"date-time", {"2024-01-31T10:20:30Z"}, {"2024-01-31 10:20:30Z", "2024-01-31"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000"}},
      {"email", {"a.b+c@example.org", "x@y.de"}, {"a@b", "@example.org", "a b@c.de"}},
      {"hostname", {"www.example.org"}, {"-a.org", "a..b"}},
      {"ipv4", {"127.0.0.1", "255.255.255.255"}, {"256.1.1.1", "1.2.3", "01.2.3.4"}},
      {"uri", {"https://example.org/a/b-c", "http://a.de"}, {"example.org", "ftp://a.de"}}};
  for (const auto& [format, good, bad] : cases) {
    const auto schema = R"({"type": "string", "format": ")" + format + "\"}";
    for (const auto& text : good)
      EXPECT_TRUE(is_described(schema, "\"" + text + "\"")) << format << " " << text;
    for (const auto& text : bad)
      EXPECT_FALSE(is_described(schema, "\"" + text + "\"")) << format << " " << text;
  }
}

TEST(JsonSchema, NumbersHaveAnyUsualForm) {
  for (const char* const text : {"0", "-0", "7", "-12", "123456789012345", "0.5", "-0.25", "1e5", "1E5",
                                 "1e+05", "2.5e-3", "0.123456789012345", "1e0"})
    EXPECT_TRUE(is_described(R"({"type": "number"})", text)) << text;
  for (const char* const text :
       {"", "-", "01", "+1", "1.", ".5", "1e", "1e+", "0x1", "NaN", "1234567890123456", "1e123", "- 1"})
    EXPECT_FALSE(is_described(R"({"type": "number"})", text)) << text;
  for (const char* const text : {"0", "-1", "999999999999999"})
    EXPECT_TRUE(is_described(R"({"type": "integer"})", text)) << text;
  for (const char* const text : {"1.0", "1e3", "00", "-01"})
    EXPECT_FALSE(is_described(R"({"type": "integer"})", text)) << text;
}

/// Vocabularies that have learnt texts like those that are written.
std::vector<std::shared_ptr<const Tokenizer>> vocabularies_of(const std::vector<std::string>& texts) {
  std::vector<std::shared_ptr<const Tokenizer>> result;
  TokenizerConfig config;
  config.vocab_size = 340;
  for (const auto kind :
       {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::bpe, TokenizerKind::sentencepiece}) {
    config.type = kind;
    result.push_back(make_tokenizer(config, SpecialTokenSet::all, [&](const auto& sink) {
      for (int i = 0; i < 4; ++i)
        for (const auto& text : texts) sink(text);
    }));
  }
  return result;
}

/// Writes `text` with the longest of the allowed tokens that go on with it. Returns the tokens, as far as
/// there are any.
TokenIds written_with(const TextConstraint& constraint, const Tokenizer& tokenizer, std::string_view text) {
  WorkLimit work(kMuchWork);
  TokenIds ids;
  bool begins = true;
  while (!text.empty()) {
    const auto allowed = constraint.allowed({}, ids, work);
    int64_t best = -1;
    std::string added;
    for (int64_t id = 0; id < allowed.size(0); ++id) {
      if (!allowed[id].item<bool>()) continue;
      const auto own = tokenizer.token_text(id);
      const auto& more = begins ? own.first : own.later;
      if (more.size() > added.size() && text.starts_with(more)) best = id, added = more;
    }
    if (best < 0) break;
    ids.push_back(best);
    text.remove_prefix(added.size());
    begins = tokenizer.begins_text_after(best);
  }
  return ids;
}

TEST(TextConstraint, LetsEveryTextOfItsExpressionBeWritten) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> schemas = {
      {R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
           "tags": {"type": "array", "items": {"enum": ["red", "blue"]}}}, "required": ["name", "tags"]})",
       {R"({"name": "Zoë \"the\" cat", "age": -12, "tags": ["red", "blue", "red"]})",
        R"({"name": "", "tags": []})", R"({"name": "\\ \n €", "age": 0, "tags": ["blue"]})"}},
      {R"({"type": "object", "additionalProperties": {"type": "number"}})",
       {R"({"a": 1.5, "b c": -2e-3})", "{}"}},
      {R"({"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 5}, {"type": "boolean"}]})",
       {"null", "true", R"("abcde")", R"("ä€😀")"}},
      {R"({"type": "array", "items": {"type": "string", "pattern": "[a-c]{2}"}, "minItems": 2, "maxItems": 3})",
       {R"(["xab", "bc"])", R"(["aa", "zbbz", "cc."])"}}};
  std::vector<std::string> all;
  for (const auto& [schema, texts] : schemas) all.insert(all.end(), texts.begin(), texts.end());
  for (const auto& tokenizer : vocabularies_of(all)) {
    const int64_t eos = tokenizer->special().eos;
    for (const auto& [schema, texts] : schemas) {
      const TextConstraint constraint(parse_json_schema(schema), *tokenizer, tokenizer->never_generated());
      WorkLimit work(kMuchWork);
      for (const auto& text : texts) {
        const auto ids = written_with(constraint, *tokenizer, text);
        ASSERT_EQ(tokenizer->decode(ids), text);
        EXPECT_TRUE(constraint.allowed({}, ids, work)[eos].item<bool>()) << text;
        // It does not end before.
        const auto shorter = std::span(ids).first(ids.size() - 1);
        EXPECT_EQ(constraint.allowed({}, shorter, work)[eos].item<bool>(),
                  is_described(schema, tokenizer->decode(shorter)))
            << text;
      }
    }
  }
}

}  // namespace
}  // namespace zoo::testing
