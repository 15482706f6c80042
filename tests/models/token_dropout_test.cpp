// ESM's token dropout and its regression from attention to contacts (tests/parity compares whole models).

#include <gtest/gtest.h>
#include <torch/types.h>

#include "models/contact_regression.h"
#include "models/embedder.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

TEST(TokenDropout, ScalesByTheShareOfMasks) {
  constexpr int64_t mask = 7;
  const auto ids = torch::tensor({{7, 1, 2, 3, 4}, {1, 2, 9, 9, 9}}, torch::kInt64);
  const auto factors =
      token_dropout_factors({.ids = ids, .lengths = torch::tensor({5, 2}, torch::kInt64)}, mask);
  ASSERT_EQ(factors.sizes(), torch::IntArrayRef({2, 5, 1}));
  const auto row = torch::tensor({0.0, 1.1, 1.1, 1.1, 1.1});  // 0.88 / (1 - 1/5)
  EXPECT_TRUE(torch::allclose(factors[0].flatten().to(torch::kDouble), row.to(torch::kDouble)));
  EXPECT_TRUE(torch::allclose(factors[1].to(torch::kDouble), torch::full({5, 1}, 0.88, torch::kDouble)));
  // A text of masks alone gives numbers.
  EXPECT_TRUE(token_dropout_factors({.ids = torch::full({1, 3}, mask)}, mask).eq(0).all().item<bool>());
}

TEST(TokenDropout, PaddingDoesNotCount) {
  torch::manual_seed(1);
  auto config = small_config(Architecture::encoder, Position::rotary);
  config.token_dropout = 2;
  const auto model =
      initialized_model(config, {.head = HeadKind::masked_language_modeling, .vocab_size = kVocabulary});
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto ids = torch::tensor({{3, 2, 5, 6}}, torch::kInt64);
  Batch alone, padded;
  alone.input.ids = ids;
  padded.input = {.ids = torch::cat({ids, torch::zeros({1, 3}, torch::kInt64)}, 1),
                  .lengths = torch::tensor({4}, torch::kInt64)};
  EXPECT_TRUE(
      torch::allclose(model->hidden_states(padded).narrow(1, 0, 4), model->hidden_states(alone), 1e-4, 1e-5));
}

TEST(ContactRegression, CorrectedMapsAreSymmetricAndHaveNoBackground) {
  torch::manual_seed(2);
  const auto corrected = corrected_maps(torch::rand({3, 6, 6}, torch::kDouble));
  EXPECT_TRUE(torch::allclose(corrected, corrected.transpose(1, 2)));
  EXPECT_LT(corrected.sum(2).abs().max().item<double>(), 1e-12);
  // A map that is the product of two vectors is all background.
  const auto side = torch::rand({6}, torch::kDouble);
  EXPECT_LT(corrected_maps(torch::outer(side, side).unsqueeze(0)).abs().max().item<double>(), 1e-12);
}

TEST(ContactRegression, WeighsEachMap) {
  torch::manual_seed(3);
  ContactRegression regression(2);
  regression->weight.copy_(torch::tensor({{2.0, -1.0}}));
  regression->bias.fill_(0.5);
  const auto maps = torch::rand({2, 4, 4}), corrected = corrected_maps(maps);
  const auto expected = (2 * corrected[0] - corrected[1] + 0.5).sigmoid();
  EXPECT_TRUE(torch::allclose(regression->forward(maps), expected, 1e-5, 1e-6));
  const auto copy = copy_of(regression.ptr());
  EXPECT_TRUE(copy->weight.equal(regression->weight));
  EXPECT_TRUE(regression->parameters().empty());
}

}  // namespace
}  // namespace zoo::testing
