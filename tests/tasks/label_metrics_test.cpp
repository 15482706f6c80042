// Metrics of several labels and of numbers, on cases that are computed by hand
// (tests/parity/classifier_heads_test.py has the definitions of scikit-learn), and what follows from a
// problem.

#include "tasks/metrics/label_metrics.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/label_loss.h"
#include "tasks/labels.h"
#include "tasks/prediction.h"
#include "tasks/problem.h"

namespace zoo::testing {
namespace {

torch::Tensor doubles(std::initializer_list<double> values) {
  return torch::tensor(std::vector<double>(values), torch::kDouble);
}

TEST(LabelMetrics, AveragePrecisionTakesEqualScoresTogether) {
  EXPECT_DOUBLE_EQ(average_precision(doubles({0.9, 0.8, 0.7}), doubles({1, 0, 1})), (1.0 + 2.0 / 3) / 2);
  EXPECT_DOUBLE_EQ(average_precision(doubles({0.5, 0.5}), doubles({1, 0})), 0.5);
  EXPECT_DOUBLE_EQ(average_precision(doubles({0.5, 0.4}), doubles({0, 0})), 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_GT(average_precision(doubles({nan, nan}), doubles({1, 0})), 0) << "it ends";
}

TEST(LabelMetrics, LabelsThatNeverOccurCountAsZero) {
  const auto logits = torch::tensor({{1.0, -1.0, -1.0}, {1.0, 1.0, -1.0}}, torch::kDouble);
  const auto targets = torch::tensor({{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}, torch::kDouble);
  const auto metrics = label_metrics(logits, targets);
  EXPECT_DOUBLE_EQ(metrics.micro_f1, 4.0 / 5);
  EXPECT_DOUBLE_EQ(metrics.macro_f1, (2.0 / 3 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(metrics.exact, 0.5);
  EXPECT_DOUBLE_EQ(metrics.mean_average_precision, (0.5 + 1 + 0) / 3);
}

TEST(LabelMetrics, RanksShareTheirMean) {
  EXPECT_NEAR(pearson_correlation(doubles({1, 2, 3}), doubles({2, 4, 6})), 1, 1e-12);
  EXPECT_EQ(pearson_correlation(doubles({1, 1, 1}), doubles({2, 4, 6})), 0);
  EXPECT_NEAR(spearman_correlation(doubles({1, 2, 30}), doubles({-1, 0, 1})), 1, 1e-12);
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  EXPECT_NEAR(spearman_correlation(doubles({1, 2, 2, 3}), doubles({1, 2, 3, 4})), 4.5 / std::sqrt(4.5 * 5),
              1e-12);
}

TEST(LabelLoss, IsTheMeanOverTheLabelsOfEachRow) {
  const auto logits = torch::randn({4, 3}), targets = (torch::rand({4, 3}) > 0.5).to(torch::kFloat);
  const auto p = logits.sigmoid();
  const auto bce = -(targets * p.log() + (1 - targets) * (1 - p).log());
  EXPECT_NEAR(label_loss(Problem::multi_label, logits, targets).item<double>(),
              bce.mean(1).sum().item<double>(), 1e-5);
  EXPECT_NEAR(label_loss(Problem::regression, logits, targets).item<double>(),
              (logits - targets).square().mean(1).sum().item<double>(), 1e-5);
  const auto smoothed = targets * 0.8 + 0.1;
  EXPECT_NEAR(label_loss(Problem::multi_label, logits, targets, 0.2).item<double>(),
              label_loss(Problem::multi_label, logits, smoothed).item<double>(), 1e-5);
}

TEST(Answers, HaveAScoreWhereThereIsNoDistribution) {
  const Prediction one{"a", answer_from(doubles({0.25}), Problem::multi_label, {"good"})},
      several{"b", answer_from(doubles({0.5, 0.75}), Problem::multi_label, {"x", "y"})},
      numbers{"c", answer_from(doubles({3, -1}), Problem::regression, {"x", "y"})},
      nothing{"", answer_from({}, Problem::regression, {"x"})};
  EXPECT_EQ(to_json({one, several, numbers, nothing}),
            R"({"results":[{"input":"a","score":0.25},)"
            R"({"input":"b","labels":[{"label":"y","probability":0.75},{"label":"x","probability":0.5}]},)"
            R"({"input":"c","labels":[{"label":"x","score":3.0},{"label":"y","score":-1.0}]},)"
            R"({"input":"","score":null}]})");
  EXPECT_EQ(to_text({one, several, nothing}), "0.25\ny\t0.7500\tx\t0.5000\n\n");
}

/// A field may be the share of the only label there is. Of several labels a number is a name.
TEST(Labels, NumbersAreSharesOfASingleLabelOnly) {
  const auto targets = [](const char* field, const std::vector<std::string>& labels) {
    return targets_of({field}, labels, Problem::multi_label, {});
  };
  EXPECT_TRUE(torch::equal(targets("1", {"0", "1"}), torch::tensor({{0.0F, 1.0F}})));
  EXPECT_TRUE(torch::equal(targets("0.25", {"x"}), torch::tensor({{0.25F}})));
}

}  // namespace
}  // namespace zoo::testing
