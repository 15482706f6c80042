#include "io/json_document.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

std::string repeated(const std::string& text, size_t n) {
  std::string many;
  for (size_t i = 0; i < n; ++i) many += text;
  return many;
}

std::string json_problem(const std::string& text) {
  const auto message = message_of<DataError>([&] { parse_json(text); });
  EXPECT_EQ(message_of<DataError>([&] { parse_ordered_json(text); }), message);
  EXPECT_TRUE(ordered_json_or_null(text).is_null() || message == "no error");
  return message;
}

TEST(JsonDocument, ReadsEveryKindOfValue) {
  const std::string text = R"({"z": [1, -2, 1.5, true, null, "ä", {}], "a": {"b": []}})";
  EXPECT_EQ(parse_json(text), nlohmann::json::parse(text));
  EXPECT_EQ(parse_ordered_json(text).dump(), nlohmann::ordered_json::parse(text).dump());
  EXPECT_EQ(parse_json(repeated("[", 64) + repeated("]", 64)).size(), 1u);
}

TEST(JsonDocument, SaysWhereItIsNoJson) {
  EXPECT_THAT(json_problem(""), HasSubstr("not valid JSON at byte 1"));
  EXPECT_THAT(json_problem("{\"a\": 1"), HasSubstr("not valid JSON at byte 8"));
  EXPECT_THAT(json_problem("\"\xFF\""), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(json_problem("{}\0{}"s), HasSubstr("not valid JSON at byte 3"));
  EXPECT_THAT(json_problem("[1e999]"), HasSubstr("out of range"));
}

// Without limits 4 MB of "[{[{…" take 1.1 GB, and an object of n keys takes n² comparisons.
TEST(JsonDocument, HasLimits) {
  EXPECT_THAT(json_problem(repeated("[{\"\":", 1 << 20)), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(json_problem(repeated("[", 65)), HasSubstr("nested deeper than 64 levels"));
  std::string members = "{";
  for (int i = 0; i < 1001; ++i) members += fmt::format("\"{}\":0,", i);
  members.back() = '}';
  EXPECT_THAT(message_of<DataError>([&] { parse_ordered_json(members); }),
              HasSubstr("more than 1000 members"));
  EXPECT_EQ(parse_json(members).size(), 1001u);
  // Members of objects beside each other do not add up.
  EXPECT_EQ(json_problem("[" + repeated("{\"a\":0,\"b\":0},", 600) + "{}]"), "no error");
  EXPECT_THAT(json_problem("[" + repeated("{},", 3'000'000) + "{}]"), HasSubstr("more than 256 MiB"));
}

TEST(JsonDocument, AFileThatIsTooLargeIsNotRead) {
  const TempDir dir;
  const auto path = dir.write("large.json", "{}");
  EXPECT_EQ(read_json_text(path), "{}");
  std::filesystem::resize_file(path, (256 << 20) + 1);  // without taking room on the disk
  EXPECT_THAT(message_of<DataError>([&] { read_json_text(path); }),
              HasSubstr("large.json: larger than 256 MiB"));
}

}  // namespace
}  // namespace zoo::testing
