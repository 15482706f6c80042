#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "kernels/cross_entropy.h"
#include "tasks/evaluation.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<Model> decoder_with_dropout() {
  auto config = small_config(Architecture::decoder);
  config.dropout = 0.1;
  torch::manual_seed(5);
  return initialized_model(config, purpose_of(config.architecture));
}

TEST(Loss, IsThatOfTorch) {
  const auto model = decoder_with_dropout();
  const auto features = torch::randn({9, kWidth});
  const auto targets = torch::randint(kVocabulary, {9});
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    const auto options =
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum).label_smoothing(smoothing);
    const auto expected = torch::nn::functional::cross_entropy(model->logits(features), targets, options);
    EXPECT_TRUE(
        torch::allclose(cross_entropy_sum(model->logits(features), targets, {.label_smoothing = smoothing}),
                        expected, 1e-6, 1e-6));
    // The definition, by hand: (1 - ε)·(-log p[target]) + ε/V·Σ -log p.
    const auto log_p = torch::log_softmax(model->logits(features), -1);
    const auto hard = -log_p.gather(1, targets.unsqueeze(1)).sum(), soft = -log_p.mean(1).sum();
    EXPECT_NEAR(expected.item<double>(), ((1 - smoothing) * hard + smoothing * soft).item<double>(), 1e-3);
  }
}

class FixedBatches final : public BatchSource {
 public:
  explicit FixedBatches(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  int64_t n_batches(int64_t) override { return static_cast<int64_t>(batches_.size()); }
  Batch batch(int64_t, int64_t index) override { return batches_[static_cast<size_t>(index)]; }

 private:
  std::vector<Batch> batches_;
};

Batch random_batch(int64_t rows, int64_t width) {
  Batch batch;
  batch.input.ids = torch::randint(kVocabulary, {rows, width});
  batch.targets = torch::randint(kVocabulary, {rows * width});
  return batch;
}

// 1200 targets in one batch and 6 in another: every target has the same weight.
TEST(Score, WeighsTargetsEqually) {
  const auto model = decoder_with_dropout();
  const auto large = random_batch(100, 12), small = random_batch(2, 3);
  FixedBatches source({large, small});
  int64_t seen = 0;
  const Score both = score(*model, source, {}, [&](const auto& logits, const auto& targets) {
    EXPECT_EQ(logits.size(0), targets.size(0));
    seen += targets.size(0);
  });
  EXPECT_EQ(both.targets, 1206);
  EXPECT_EQ(seen, 1206);
  torch::NoGradGuard no_grad;
  model->eval();
  const double expected = (cross_entropy_sum(model->logits(model->features(large)), large.targets) +
                           cross_entropy_sum(model->logits(model->features(small)), small.targets))
                              .item<double>();
  EXPECT_NEAR(both.nats, expected, 1e-2);
  EXPECT_NEAR(both.loss(), expected / 1206, 1e-5);
  EXPECT_EQ(score(*model, source, {.max_batches = 1}).targets, 1200);
  EXPECT_EQ(score(*model, source, {.max_batches = 3}).targets, 1206) << "there are two";
}

TEST(Score, LeavesTheModelInTraining) {
  const auto model = decoder_with_dropout();
  model->train();
  FixedBatches source({random_batch(2, 4)});
  const double first = score(*model, source, {}).nats;
  EXPECT_EQ(score(*model, source, {}).nats, first);  // no dropout
  EXPECT_TRUE(model->is_training());
  EXPECT_TRUE(torch::GradMode::is_enabled());
}

// sklearn.metrics.f1_score([0,0,0,1,1,2], [0,0,1,1,0,3], average="macro"): classes 0 to 3 have F1 2/3, 1/2,
// 0, 0.
TEST(ConfusionCounts, AccuracyAndMacroF1) {
  ConfusionCounts counts(6);
  counts.add(torch::tensor({0, 0, 1}, torch::kLong), torch::tensor({0, 0, 0}, torch::kLong));
  counts.add(torch::tensor({1, 0, 3}, torch::kLong), torch::tensor({1, 1, 2}, torch::kLong));
  EXPECT_DOUBLE_EQ(counts.accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(counts.macro_f1(), (2.0 / 3 + 0.5) / 4);
  torch::Tensor matrix;
  counts.finish({.confusion = &matrix});
  const auto upper_left = torch::tensor({2, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1}, torch::kLong).view({3, 4});
  EXPECT_TRUE(torch::equal(matrix.slice(0, 0, 3).slice(1, 0, 4), upper_left));
  EXPECT_EQ(matrix.sum().item<int64_t>(), 6);
}

TEST(ConfusionCounts, TooManyClassesHaveNoMatrix) {
  ConfusionCounts counts(ConfusionCounts::kMostClasses + 1);
  counts.add(torch::tensor({0, 1}, torch::kLong), torch::tensor({0, 0}, torch::kLong));
  torch::Tensor matrix;
  counts.finish({.confusion = &matrix});
  EXPECT_FALSE(matrix.defined());
  EXPECT_DOUBLE_EQ(counts.accuracy(), 0.5);
}

// Published tables may lack rows for tokens that were added to the tokenizer later.
TEST(SmallTable, OnlyTokensWithoutARowAreRefused) {
  const torch::NoGradGuard no_grad;
  for (const auto architecture : kArchitectures) {
    auto config = small_config(architecture);
    config.vocab_size = kVocabulary - 1;
    const auto model = random_model(config);
    const auto refusal_of = [&](int64_t read, int64_t predicted) {
      auto batch = small_batch(architecture, {.ids = torch::full({1, 5}, read)});
      if (architecture == Architecture::encoder_decoder) batch.decoder.ids = batch.input.ids;
      batch.targets.fill_(predicted);
      return message_of<DataError>([&] { TokenCrossEntropy().loss(*model, batch); });
    };
    EXPECT_EQ(refusal_of(kVocabulary - 2, kVocabulary - 2), "no error");
    EXPECT_THAT(refusal_of(kVocabulary - 1, 0), HasSubstr("no vector for the token 30"));
    EXPECT_THAT(refusal_of(0, kVocabulary - 1), HasSubstr("cannot predict the token 30"));
  }
}

}  // namespace
}  // namespace zoo::testing
