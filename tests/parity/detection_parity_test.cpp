// Average precision against pycocotools, and assignments against scipy.

#include <span>

#include "tasks/images/assignment.h"
#include "tasks/metrics/detection_metrics.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class DetectionParity : public ReferenceTest {
 protected:
  DetectionParity() : ReferenceTest("reference_detection.py") {}
};

Box box_of(const double* row) { return {.x = row[0], .y = row[1], .width = row[2], .height = row[3]}; }

TEST_F(DetectionParity, AveragePrecisionIsThatOfPycocotools) {
  const ReferenceCase reference(file("average_precision"));
  const auto sets = reference.names("marked/");
  ASSERT_EQ(sets.size(), 200U);
  for (const auto& set : sets) {
    const auto marked_rows = reference.get("marked/" + set), detected_rows = reference.get("detected/" + set),
               expected = reference.get("expected/" + set);
    std::vector<AnnotatedObject> marked;
    for (int64_t i = 0; i < marked_rows.size(0); ++i) {
      const double* const row = marked_rows.const_data_ptr<double>() + 8 * i;
      marked.push_back({.image = std::llround(row[0]),
                        .category = std::llround(row[1]),
                        .box = box_of(row + 2),
                        .area = row[6],
                        .is_crowd = row[7] != 0});
    }
    std::vector<DetectedObject> detected;
    for (int64_t i = 0; i < detected_rows.size(0); ++i) {
      const double* const row = detected_rows.const_data_ptr<double>() + 7 * i;
      detected.push_back({.image = std::llround(row[0]),
                          .category = std::llround(row[1]),
                          .box = box_of(row + 2),
                          .score = row[6]});
    }
    const auto m = detection_metrics(marked, detected);
    const std::vector<double> found{m.precision,        m.precision_50,    m.precision_75,  m.precision_small,
                                    m.precision_medium, m.precision_large, m.recall_1,      m.recall_10,
                                    m.recall_100,       m.recall_small,    m.recall_medium, m.recall_large};
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[static_cast<int64_t>(i)].item<double>(), 1e-9)
          << set << ", number " << i;
    auto of_categories = torch::full({5, 6}, -1, torch::kDouble);
    for (const auto& of : m.categories) {
      of_categories[of.category - 1] =
          torch::tensor({of.precision, of.precision_50, of.precision_75, of.precision_small,
                         of.precision_medium, of.precision_large},
                        torch::kDouble);
    }
    EXPECT_LT((of_categories - reference.get("categories/" + set)).abs().max().item<double>(), 1e-9) << set;
  }
}

// Where several assignments are equally cheap, only the cost must agree.
TEST_F(DetectionParity, AssignmentsAreThoseOfScipy) {
  const ReferenceCase reference(file("assignments"));
  const auto names = reference.names("costs/");
  ASSERT_EQ(names.size(), 1000U);
  for (const auto& name : names) {
    const auto costs = reference.get("costs/" + name), expected = reference.get("pairs/" + name);
    const auto pairs =
        cheapest_assignment(std::span(costs.const_data_ptr<double>(), static_cast<size_t>(costs.numel())),
                            costs.size(0), costs.size(1));
    ASSERT_EQ(std::ssize(pairs), expected.size(0));
    double found_cost = 0, expected_cost = 0;
    bool same = true;
    for (int64_t i = 0; i < expected.size(0); ++i) {
      const auto& [row, column] = pairs[static_cast<size_t>(i)];
      const int64_t other_row = expected[i][0].item<int64_t>(), other = expected[i][1].item<int64_t>();
      found_cost += costs[row][column].item<double>();
      expected_cost += costs[other_row][other].item<double>();
      same = same && row == other_row && column == other;
    }
    EXPECT_NEAR(found_cost, expected_cost, 1e-9) << name;
    const bool has_ties = std::stoi(name) % 2 == 0;
    EXPECT_TRUE(same || has_ties) << name;
  }
}

}  // namespace
}  // namespace zoo::testing
