// Fields of labels: several in one, and numbers.

#include "data/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/batches/tagged_texts.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Labels, StandBetweenSeparatorsOrInAList) {
  EXPECT_THAT(labels_in("comedy|drama", "|"), ElementsAre("comedy", "drama"));
  EXPECT_THAT(labels_in(" comedy , drama,, comedy ", ","), ElementsAre("comedy", "drama"));
  EXPECT_THAT(labels_in("science fiction", ","), ElementsAre("science fiction"));
  EXPECT_THAT(labels_in(R"(["a, b", 3, " c "])", ","), ElementsAre("a, b", "3", "c"));
  EXPECT_THAT(labels_in("  ", ","), IsEmpty());
  EXPECT_THAT(labels_in("[]", ","), IsEmpty());
  for (const char* const wrong : {"['a', 'b']", "[a]", R"([["a"]])", "[null]", "[true]"}) {
    EXPECT_THAT(message_of<DataError>([&] { labels_in(wrong, ","); }), HasSubstr("no list of texts in JSON"))
        << wrong;
  }
}

TEST(Labels, AreNoMarks) {
  EXPECT_THAT(labels_in("[1, 0]", ","), ElementsAre("1", "0"));
  for (const char* const marks : {"[1, 0, 1]", "[0.0, 0.0]", R"(["0", "0"])"})
    EXPECT_THAT(message_of<DataError>([&] { labels_in(marks, ","); }),
                HasSubstr("marks labels by their places"));
  EXPECT_THAT(message_of<DataError>([] { refuse_marks({"[1, 0]", "[0, 1]"}); }),
              HasSubstr("[1, 0] marks labels"));
  refuse_marks({"[1, 0]", "[0, 1, 2]"});
  refuse_marks({"[1, 0]", "[0]"});
  refuse_marks({"a", "b"});
  refuse_marks({});
}

TEST(Labels, AreNumbersOfARegression) {
  EXPECT_EQ(number_of(" -2.5e1 "), -25);
  for (const char* const wrong : {"", "3 stars", "nan", "inf", "1,5", "0x10", "+", "+-1", "1e999"})
    EXPECT_THAT(message_of<DataError>([&] { number_of(wrong); }), HasSubstr("is not a number")) << wrong;
  EXPECT_THAT(message_of<DataError>([] { check_labels(" ", Problem::single_label, ","); }), "no label");
  EXPECT_THAT(message_of<DataError>([] { check_labels("", Problem::regression, ","); }), "no label");
  EXPECT_EQ(number_of("+4"), 4);
  for (const char* const large : {"1e30", "-1e300"})
    EXPECT_THAT(message_of<DataError>([&] { number_of(large); }), HasSubstr("is too large")) << large;
  check_labels("", Problem::multi_label, ",");
}

TEST(Labels, OfAWordAreSeveral) {
  EXPECT_THAT(labels_of_unit("B-PER|short", "|"), ElementsAre("B-PER", "short"));
  EXPECT_THAT(labels_of_unit("O", "|"), IsEmpty());
  const TempDir dir;
  DataConfig config;
  config.train = config.valid = {ConfigPath(
      dir.write("words.jsonl", "{\"text\": \"ada sails\", \"label\": [[\"name\", \"short\"], []]}\n")
          .string())};
  const auto rows = read_tagged(config, Split::train, {}, Problem::multi_label);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].labels, "name,short O");
  EXPECT_THAT(classes_of(rows, Problem::multi_label, ","), ElementsAre("name", "short"));
  EXPECT_THAT(message_of<DataError>([&] { read_tagged(config, Split::train, {}); }),
              HasSubstr("words.jsonl:1: a word has a list of labels"));
  EXPECT_THAT(
      message_of<DataError>([&] { read_tagged(config, Split::train, {"name"}, Problem::multi_label); }),
      HasSubstr("the label 'short' does not occur in the training data"));
}

}  // namespace
}  // namespace zoo::testing
