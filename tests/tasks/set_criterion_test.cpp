// The loss of a set of objects: who is matched, and what does not change it.

#include "tasks/images/set_criterion.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo::testing {
namespace {

constexpr int64_t kClasses = 3;

/// Random objects: counts[b] of them in row b, padded to `width`.
Batch random_objects(const std::vector<int64_t>& counts, int64_t width) {
  const auto B = std::ssize(counts);
  auto boxes = torch::zeros({B, width, 4});
  auto classes = torch::full({B, width}, -1, torch::kInt64);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t n = counts[static_cast<size_t>(b)];
    boxes[b].narrow(0, 0, n).copy_(torch::rand({n, 4}) * 0.4 + 0.1);
    classes[b].narrow(0, 0, n).copy_(torch::randint(kClasses, {n}, torch::kInt64));
  }
  Batch batch;
  batch.fields = {{"boxes", boxes},
                  {"box_classes", classes},
                  {"batch_counts", torch::tensor(counts, torch::kInt64).unsqueeze(0).repeat({B, 1})}};
  return batch;
}

struct Outputs {
  torch::Tensor logits, boxes;
};
Outputs random_outputs(int64_t B, int64_t Q) {
  return {.logits = torch::randn({B, Q, kClasses + 1}), .boxes = torch::rand({B, Q, 4}) * 0.4 + 0.1};
}

double sum_of(const SetLosses& losses) { return losses.total({}).item<double>(); }

TEST(SetCriterion, QueriesThatAreRightAreMatched) {
  const auto batch = random_objects({3, 1}, 3);
  auto [logits, boxes] = random_outputs(2, 5);
  // Query 4 - i of the first picture says object i, and query 2 of the second picture says its only object.
  for (const auto& [row, query, object] :
       {std::array<int64_t, 3>{0, 4, 0}, {0, 3, 1}, {0, 2, 2}, {1, 2, 0}}) {
    boxes[row][query].copy_(batch.field("boxes")[row][object]);
    logits[row][query].zero_();
    logits[row][query][batch.field("box_classes")[row][object].item<int64_t>()] = 20;
  }
  const auto matched = match_objects(logits, boxes, batch, {.classes = 1, .boxes = 5, .overlap = 2});
  EXPECT_TRUE(torch::equal(matched, torch::tensor({{-1, -1, 2, 1, 0}, {-1, -1, 0, -1, -1}}, torch::kInt64)));
  const auto losses = set_losses(logits, boxes, batch, {});
  EXPECT_NEAR(losses.boxes.item<double>(), 0, 1e-6);
  EXPECT_NEAR(losses.overlap.item<double>(), 0, 1e-5);
}

TEST(SetCriterion, PicturesWithoutObjectsTeachQueriesToSayNothing) {
  const auto batch = random_objects({0, 0}, 1);
  const auto [logits, boxes] = random_outputs(2, 4);
  const auto losses = set_losses(logits, boxes, batch, {});
  const auto nothing = logits.log_softmax(-1).select(-1, kClasses);
  EXPECT_NEAR(losses.classes.item<double>(), -nothing.mean().item<double>(), 1e-6);
  EXPECT_EQ(losses.boxes.item<double>(), 0);
  EXPECT_EQ(losses.overlap.item<double>(), 0);
}

TEST(SetCriterion, MoreObjectsThanQueriesMatchEveryQuery) {
  const auto batch = random_objects({7}, 7);
  const auto [logits, boxes] = random_outputs(1, 4);
  const auto matched = match_objects(logits, boxes, batch, {});
  EXPECT_EQ(std::get<0>(at::_unique2(matched)).numel(), 4);
  EXPECT_GE(matched.min().item<int64_t>(), 0);
  EXPECT_TRUE(std::isfinite(sum_of(set_losses(logits, boxes, batch, {}))));
}

TEST(SetCriterion, PartsOfABatchSumToTheBatch) {
  const auto batch = random_objects({2, 0, 5, 1}, 5);
  const auto [logits, boxes] = random_outputs(4, 4);
  const double whole = sum_of(set_losses(logits, boxes, batch, {}));
  double parts = 0;
  for (int64_t b = 0; b < 4; ++b)
    parts += sum_of(set_losses(logits.narrow(0, b, 1), boxes.narrow(0, b, 1), take_rows(batch, b, 1), {}));
  EXPECT_NEAR(parts, whole, 1e-5);
}

TEST(SetCriterion, TheOrderOfObjectsAndQueriesDoesNotMatter) {
  const auto batch = random_objects({5}, 5);
  const auto [logits, boxes] = random_outputs(1, 6);
  const double loss = sum_of(set_losses(logits, boxes, batch, {}));
  const auto objects = torch::tensor({3, 1, 4, 0, 2}), queries = torch::tensor({5, 2, 0, 1, 4, 3});
  auto other = batch;
  for (const auto* name : {"boxes", "box_classes"})
    other.fields[name] = batch.field(name).index_select(1, objects);
  EXPECT_NEAR(sum_of(set_losses(logits.index_select(1, queries), boxes.index_select(1, queries), other, {})),
              loss, 1e-5);
}

TEST(SetCriterion, OutputsThatAreNoNumbersGiveALossThatIsNone) {
  const auto batch = random_objects({2}, 2);
  auto [logits, boxes] = random_outputs(1, 3);
  logits.fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(sum_of(set_losses(logits, boxes, batch, {}))));
}

TEST(SetCriterion, GeneralizedIouOfKnownBoxes) {
  const auto box = [](float left, float top, float right, float bottom) {
    return torch::tensor({left, top, right, bottom});
  };
  const auto value = [](const torch::Tensor& a, const torch::Tensor& b) {
    return generalized_iou(a, b).item<double>();
  };
  EXPECT_NEAR(value(box(0, 0, 2, 2), box(0, 0, 2, 2)), 1, 1e-6);
  EXPECT_NEAR(value(box(0, 0, 2, 2), box(1, 0, 3, 2)), 1.0 / 3, 1e-6);  // the hull is the union
  EXPECT_NEAR(value(box(0, 0, 1, 1), box(2, 2, 3, 3)), -7.0 / 9, 1e-6);
}

}  // namespace
}  // namespace zoo::testing
