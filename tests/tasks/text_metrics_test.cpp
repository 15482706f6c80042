#include "tasks/metrics/text_metrics.h"

#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;

double bleu(const std::string& output, const std::vector<std::string>& references) {
  ReferenceTexts lines;
  for (const auto& reference : references) lines.push_back({reference});
  return corpus_bleu({output}, lines);
}

double chrf(const std::string& output, const std::string& reference) {
  return corpus_chrf({output}, {{reference}});
}

TEST(Tokenize13a, TakesSymbolsApartButNotNumbersAndWords) {
  EXPECT_EQ(tokenize_13a("  A man, (aged 20-30)\tpays $1,000.50 for it. "),
            "A man , ( aged 20 - 30 ) pays $ 1,000.50 for it .");
  EXPECT_EQ(tokenize_13a("The dog's T-shirt isn't \"new\"; é."), "The dog's T-shirt isn't \" new \" ; é .");
  EXPECT_EQ(tokenize_13a("x &lt;b&gt; &quot;R&amp;D&quot; &amp;lt; <skipped>y"), "x < b > \" R & D \" < y");
  EXPECT_EQ(tokenize_13a("山\u3000路\u00a0。"), "山 路 。");
  EXPECT_EQ(tokenize_13a(" \n"), "");
}

TEST(Bleu, OfWhatCanBeReckonedByHand) {
  EXPECT_DOUBLE_EQ(bleu("a b c d", {"a b c d"}), 100);
  EXPECT_DOUBLE_EQ(bleu("a b c d", {"A B C D"}), 0) << "cased";
  EXPECT_NEAR(bleu("a b c d", {"a b c d e"}), 100 * std::exp(1 - 5.0 / 4), 1e-12);
  EXPECT_NEAR(bleu("a b c d e", {"a b c d"}), 100 * std::pow(4.0 / 5 * 3 / 4 * 2 / 3 * 1 / 2, 0.25), 1e-12);
  // No match of three or four words: 1/2 and 1/4 of one.
  EXPECT_NEAR(bleu("a b x c d", {"a b y c d"}), 100 * std::pow(4.0 / 5 * 2 / 4 * 0.5 / 3 * 0.25 / 2, 0.25),
              1e-12);
  EXPECT_DOUBLE_EQ(bleu("a b c", {"a b c"}), 0) << "without an n-gram of four words";
  EXPECT_DOUBLE_EQ(bleu("", {"a b c d"}), 0);
  // A word matches at most as often as the reference has it.
  EXPECT_NEAR(bleu("a a a a", {"a b c a"}), 100 * std::pow(2.0 / 4 * (0.5 / 3) * (0.25 / 2) * 0.125, 0.25),
              1e-12);
}

TEST(Bleu, OfSeveralReferences) {
  EXPECT_DOUBLE_EQ(bleu("a b c d e f", {"a b c d x y z", "x x c d e f", "b c d e"}), 100);
  // If two lengths are equally near, the shorter one counts: no penalty.
  EXPECT_DOUBLE_EQ(bleu("a b c d", {"a b c d e", "a b c"}), 100);
  EXPECT_NEAR(bleu("a b c d", {"a b c d e", "a"}), 100 * std::exp(1 - 5.0 / 4), 1e-12);
}

TEST(Bleu, CountsOverTheWholeCorpus) {
  // 5 of 8 words, 3 of 6 pairs, 2 of 4 triples, 1 of 2 quadruples.
  EXPECT_NEAR(corpus_bleu({"a b c d", "x y z v"}, {{"a b c d", "x 1 2 3"}}),
              100 * std::pow(5.0 / 8 * 3 / 6 * 2 / 4 * 1 / 2, 0.25), 1e-12);
  EXPECT_DOUBLE_EQ(corpus_bleu({}, {{}}), 0);
}

TEST(Chrf, OfWhatCanBeReckonedByHand) {
  EXPECT_DOUBLE_EQ(chrf("a man rides", "a man rides"), 100);
  EXPECT_DOUBLE_EQ(chrf("a man rides", "aman  rides"), 100) << "white space does not count";
  EXPECT_DOUBLE_EQ(chrf("ab", "cd"), 0);
  EXPECT_DOUBLE_EQ(chrf("", "cd"), 0);
  // Characters, not bytes: precision (1/2 + 0)/2, recall (1/3 + 0)/2. Orders that only one text has do not
  // count.
  const double precision = 1.0 / 4, recall = 1.0 / 6;
  EXPECT_NEAR(chrf("éa", "éüb"), 100 * 5 * precision * recall / (4 * precision + recall), 1e-12);
  EXPECT_GT(chrf("abcdefgh", "abcdef"), chrf("abcdef", "abcdefgh")) << "recall weighs more";
}

TEST(Chrf, TakesTheNearestReferenceOfEachLine) {
  EXPECT_DOUBLE_EQ(corpus_chrf({"one", "two"}, {{"one", "zzz"}, {"yyyy", "two"}}), 100);
  EXPECT_DOUBLE_EQ(corpus_chrf({}, {{}}), 0);
}

TEST(TextMetrics, RefuseWhatDoesNotCorrespond) {
  for (const auto metric : {corpus_bleu, corpus_chrf}) {
    EXPECT_THROW(metric({"a"}, {}), std::invalid_argument);
    EXPECT_THROW(metric({"a"}, {{"a"}, {"a", "b"}}), std::invalid_argument);
    EXPECT_THAT(testing::message_of<DataError>([&] { metric({"a"}, {{"b\xFF"}}); }), HasSubstr("byte 1"));
  }
}

}  // namespace
}  // namespace zoo
