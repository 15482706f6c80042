#include "statistics/translation_test.h"

#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "comparison/findings/findings.h"

namespace zoo::testing {
namespace {

/// Lines of words, of which a share is another word.
std::vector<std::string> lines_with_errors(size_t n, double share, uint64_t seed) {
  CounterRandom random({seed, 5});
  std::vector<std::string> lines;
  for (size_t i = 0; i < n; ++i) {
    std::string line;
    for (int word = 0; word < 9; ++word)
      line += random.uniform() < share ? " x" : " w" + std::to_string((i * 7 + word * 3) % 23);
    lines.push_back(line);
  }
  return lines;
}

PairedTranslations pair_of(TextMetric metric, const std::vector<std::string>& one,
                           const std::vector<std::string>& other) {
  const ReferenceTexts right = {lines_with_errors(one.size(), 0, 1)};
  return {metric, text_counts(metric, one, right), text_counts(metric, other, right)};
}

TEST(TranslationTest, FindsADifferenceAndItsInterval) {
  for (const auto metric : {TextMetric::bleu, TextMetric::chrf}) {
    const auto good = lines_with_errors(80, 0.1, 2), bad = lines_with_errors(80, 0.3, 3);
    const auto pair = pair_of(metric, good, bad);
    const auto test = test_on_translations(pair);
    EXPECT_EQ(test.n, 80);
    EXPECT_NEAR(test.difference, pair.score() - pair.baseline_score(), 1e-9);
    EXPECT_GT(test.difference, 5);
    EXPECT_GT(*test.low, 0);
    EXPECT_LT(*test.low, test.difference);
    EXPECT_GT(*test.high, test.difference);
    EXPECT_LT(*test.p, 0.001);
    EXPECT_EQ(*test_on_translations(pair_of(metric, good, good)).p, 1);
  }
}

TEST(TranslationTest, ExchangedLabelsAreRarelyADifference) {
  int n_different = 0;
  constexpr uint64_t n_tests = 1000;
  for (uint64_t i = 0; i < n_tests; ++i) {
    auto one = lines_with_errors(20, 0.2, 2 * i + 10), other = lines_with_errors(20, 0.3, 2 * i + 11);
    CounterRandom random({i, 6});
    for (size_t k = 0; k < one.size(); ++k)
      if (random.below(2) == 1) std::swap(one[k], other[k]);
    n_different += *test_on_translations(pair_of(TextMetric::bleu, one, other)).p < kSignificance ? 1 : 0;
  }
  RecordProperty("n_different", n_different);
  EXPECT_LE(n_different, 67) << "of 1,000; the 99th percentile of what 5 % give";
  EXPECT_GE(n_different, 30) << "a test that never finds anything";
}

TEST(TranslationTest, ComparesEachTranslatorWithItsBaselineOnTheSameLines) {
  const auto right = lines_with_errors(40, 0, 1);
  const auto translator = [&](const std::string& name, double share) {
    RunResults run{.name = name};
    run.translations =
        Translations{.sources = right, .outputs = lines_with_errors(40, share, 7), .references = right};
    return run;
  };
  std::vector<RunResults> runs = {translator("base", 0.4),
                                  translator("better", 0.1),
                                  translator("same", 0.4),
                                  translator("elsewhere", 0.1),
                                  {.name = "none"}};
  for (size_t i = 1; i < runs.size(); ++i) runs[i].baseline = "base";
  runs[3].translations->sources[0] = "another line";
  compare_translations(runs);
  auto by_document = runs;
  for (auto& run : by_document) {
    run.translation_scores.clear();
    if (!run.translations) continue;
    run.examples = ExampleValues{};
    for (int64_t i = 0; i < 40; ++i) run.examples->documents.push_back(i / 5);
  }
  compare_translations(by_document);
  EXPECT_EQ(by_document[1].translation_scores[0].test->n, 8);
  EXPECT_EQ(by_document[1].translation_scores[0].value, runs[1].translation_scores[0].value);
  EXPECT_EQ(by_document[1].translation_scores[0].baseline_value,
            runs[1].translation_scores[0].baseline_value);
  // Documents of other lines, or that one run alone knows, are not those of the lines.
  auto of_other_lines = by_document, of_one = by_document;
  for (auto& run : of_other_lines) {
    run.translation_scores.clear();
    if (run.examples) run.examples->documents.pop_back();
  }
  for (auto& run : of_one) run.translation_scores.clear();
  of_one[0].examples->documents[39] = 0;
  compare_translations(of_other_lines);
  compare_translations(of_one);
  EXPECT_EQ(of_other_lines[1].translation_scores[0].test->n, 40);
  EXPECT_FALSE(of_one[1].translation_scores[0].test);
  ASSERT_EQ(runs[0].translation_scores.size(), 2U);
  EXPECT_FALSE(runs[0].translation_scores[0].test);
  EXPECT_EQ(runs[1].translation_scores[0].verdict, Verdict::better);
  EXPECT_EQ(runs[1].translation_scores[1].verdict, Verdict::better);
  EXPECT_EQ(runs[1].translation_scores[0].baseline_value, runs[0].translation_scores[0].value);
  EXPECT_GE(*runs[1].translation_scores[0].p_corrected, 2 * *runs[1].translation_scores[0].test->p);
  EXPECT_EQ(runs[2].translation_scores[0].verdict, Verdict::same);
  // One document is not enough for a test, and equal scores of different outputs do not make them the same.
  auto of_one_document = by_document, of_nothing_right = runs;
  for (auto& run : of_one_document) {
    run.translation_scores.clear();
    if (run.examples) run.examples->documents.assign(40, 0);
  }
  compare_translations(of_one_document);
  EXPECT_FALSE(of_one_document[1].translation_scores[0].test);
  for (auto& run : of_nothing_right) {
    run.translation_scores.clear();
    if (run.translations) run.translations->outputs.assign(40, "?");
  }
  of_nothing_right[1].translations->outputs.assign(40, "!");
  compare_translations(of_nothing_right);
  EXPECT_EQ(of_nothing_right[1].translation_scores[0].value, of_nothing_right[0].translation_scores[0].value);
  EXPECT_EQ(of_nothing_right[1].translation_scores[0].verdict, Verdict::undecided);
  EXPECT_EQ(of_nothing_right[2].translation_scores[0].verdict, Verdict::same);
  EXPECT_FALSE(runs[3].translation_scores[0].test) << "the texts differ";
  EXPECT_TRUE(runs[4].translation_scores.empty());
}

}  // namespace
}  // namespace zoo::testing
