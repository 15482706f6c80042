// What tokens and pixels add to an answer. tests/parity/causes_parity_test.cpp compares with transformers.

#include "analysis/causes/attribution.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/gauss_legendre.h"
#include "base/error.h"
#include "models/families/vit.h"
#include "models/observation_scope.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 7;

Question asked(const FamilySelection& architecture, const Batch& batch) {
  Question question{.batch = batch};
  const auto n = static_cast<size_t>(batch.n_targets());
  question.places.assign(n, "x");
  question.source_tokens.assign(kTokens, "x");
  if (architecture == Architecture::encoder_decoder) question.target_tokens.assign(n, "y");
  question.targets.assign(n, -1);
  question.place = batch.n_targets() - 1;
  question.label = [](int64_t id) { return std::to_string(id); };
  return question;
}

Question asked(const FamilySelection& architecture) {
  return asked(architecture, small_batch(architecture, {.ids = tokens(1, kTokens)}));
}

TEST(GaussLegendre, IsExactForPolynomials) {
  for (const int64_t n : {1, 2, 5, 50}) {
    const auto points = gauss_legendre(n);
    ASSERT_EQ(std::ssize(points), n);
    for (int64_t degree = 0; degree < 2 * n; ++degree) {
      double sum = 0;
      for (const auto& [at, weight] : points) sum += weight * std::pow(at, static_cast<double>(degree));
      EXPECT_NEAR(sum, 1 / static_cast<double>(degree + 1), 1e-12) << n << ", " << degree;
    }
    for (size_t i = 1; i < points.size(); ++i) EXPECT_LT(points[i - 1].at, points[i].at);
  }
}

TEST(Attributions, AddUpToTheDifferenceInEveryArchitecture) {
  for (const Architecture architecture : kArchitectures) {
    const auto model = random_model(small_config(architecture, Position::rotary));
    const auto question = asked(architecture);
    const auto logits = [&] {
      const torch::NoGradGuard no_grad;
      return model->logits(model->features(question.batch))[question.place].to(torch::kDouble);
    }();
    for (const auto baseline :
         {AttributionBaseline::zero, AttributionBaseline::mean, AttributionBaseline::pad}) {
      const auto report = attribution_report(
          *model, question, {.baseline = baseline, .baseline_token = 3, .steps = 200, .against = 2});
      EXPECT_EQ(report.answer, logits.argmax().item<int64_t>());
      EXPECT_NEAR(report.score, (logits[report.answer] - logits[2]).item<double>(), 1e-5);
      EXPECT_NEAR(report.completeness_error(), 0, 0.02 * std::abs(report.score - report.baseline_score))
          << name_of(baseline);
      EXPECT_EQ(report.source.size(), static_cast<size_t>(kTokens));
      EXPECT_EQ(report.target.size(), architecture == Architecture::encoder_decoder ? 5U : 0U);
    }
  }
}

TEST(Attributions, GrowMoreExactWithSteps) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto question = asked(Architecture::decoder);
  const auto error = [&](int64_t steps) {
    return std::abs(attribution_report(*model, question, {.steps = steps}).completeness_error());
  };
  EXPECT_LT(error(100), 0.1 * error(2));
}

// A decoder's place sees nothing behind it.
TEST(Attributions, OfWhatIsNotSeenAreZero) {
  const auto model = random_model(small_config(Architecture::decoder));
  for (const auto by : {AttributionBy::integrated_gradients, AttributionBy::gradient_input}) {
    const auto report =
        attribution_report(*model, asked(Architecture::decoder), {.by = by, .steps = 5, .place = 3});
    for (size_t t = 0; t < report.source.size(); ++t) EXPECT_EQ(report.source[t] == 0, t > 3) << t;
  }
}

TEST(Attributions, LeaveTheModelAsItWas) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto question = asked(Architecture::decoder);
  const auto logits = [&] {
    const torch::NoGradGuard no_grad;
    return model->logits(model->features(question.batch));
  };
  const auto before = logits();
  model->train();
  const auto frozen = model->parameters().front().requires_grad_(false);
  attribution_report(*model, question, {.steps = 3});
  EXPECT_TRUE(model->is_training());
  EXPECT_FALSE(frozen.requires_grad());
  for (const auto& parameter : model->parameters()) {
    EXPECT_EQ(parameter.requires_grad(), !parameter.is_same(frozen));
    EXPECT_FALSE(parameter.grad().defined());
  }
  model->eval();
  EXPECT_TRUE(torch::equal(logits(), before));
}

TEST(Attributions, ReachASecondSideThatReadsTheSourceAgain) {
  const ModelPurpose classes{.head = HeadKind::classification,
                             .vocab_size = kVocabulary,
                             .n_classes = 3,
                             .start_token = kStartToken};
  const auto model = random_model(small_bart(), classes);
  Batch batch{.input = {.ids = tokens(1, kTokens)}};
  Question question{.batch = batch, .source_tokens = {"a", "b", "c", "d", "e", "f", "g"}};
  question.places = {"the whole text"};
  question.targets = {-1};
  const auto report = attribution_report(*model, question, {.steps = 100});
  EXPECT_EQ(report.target_names, std::vector<std::string>({"start", "a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(report.target.size(), 7U);
  EXPECT_NEAR(report.completeness_error(), 0, 0.02 * std::abs(report.score - report.baseline_score));
}

TEST(Attributions, OfAPictureAreSumsOverPatches) {
  auto config = small_config(Architecture::encoder);
  config.architecture = Selection("vit", VitConfig{.patch_size = 4});
  const ModelPurpose purpose{
      .head = HeadKind::classification, .n_classes = 3, .image = {.channels = 2, .height = 10, .width = 13}};
  const auto model = random_model(config, purpose);
  Question question{.batch = {}, .shown = Box{.x = 1, .y = 2, .width = 26, .height = 20}};
  question.batch.fields.emplace(fields::kImages, torch::randn({1, 2, 10, 13}));
  question.places = {"the whole picture"};
  question.targets = {-1};
  const auto report = attribution_report(*model, question, {.steps = 100});
  ASSERT_TRUE(report.picture);
  EXPECT_EQ(report.picture->rows, 2);
  EXPECT_EQ(report.picture->columns, 3);
  EXPECT_EQ(report.source.size(), 6U);
  // The patches cover 8 × 12 of 10 × 13 pixels.
  EXPECT_NEAR(report.picture->covered->width, 24, 1e-9);
  EXPECT_NEAR(report.picture->covered->height, 16, 1e-9);
  EXPECT_NEAR(report.completeness_error(), 0, 0.02 * std::abs(report.score - report.baseline_score));
  EXPECT_THAT(message_of<UsageError>(
                  [&] { attribution_report(*model, question, {.baseline = AttributionBaseline::mask}); }),
              HasSubstr("a picture has no tokens, so the baseline cannot be mask"));
}

TEST(Attributions, RefuseInOneLine) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto question = asked(Architecture::decoder);
  const auto problem = [&](const AttributionOptions& options) {
    return message_of<UsageError>([&] { attribution_report(*model, question, options); });
  };
  EXPECT_THAT(problem({.place = 7}), HasSubstr("it has the places 0 to 6"));
  EXPECT_THAT(problem({.answer = 4, .against = 4}), HasSubstr("name two outputs"));
  struct : TokenVectorObserver {
    torch::Tensor on(StackSide, const torch::Tensor& vectors) override { return vectors; }
  } observer;
  const TokenVectorScope scope(*model, observer);
  EXPECT_THAT(problem({}), HasSubstr("observed already"));
}

}  // namespace
}  // namespace zoo::testing
