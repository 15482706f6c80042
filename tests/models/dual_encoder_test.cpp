#include "models/families/pairs/dual_encoder.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "models/families/model_keys.h"
#include "models/inference_scope.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPairSide = 12;

/// `more`: keys of the architecture.
ModelConfig pair_config(const std::string& more) {
  ModelConfig config;
  ConfigFile::parse(
      "{architecture: {type: dual_encoder, width: 10, image: {d_model: 12, n_heads: 3, n_layers: 2, "
      "d_ff: 20, patch_size: 4}, " +
          more +
          "}, d_model: 16, n_heads: 2, n_layers: 2, d_ff: 24, max_positions: 9, dropout: 0, pooler: "
          "false}",
      "test")
      .read(config);
  return config;
}

ModelPurpose pair_purpose() {
  return {.head = HeadKind::none,
          .vocab_size = kVocabulary,
          .pad_token = 1,
          .image = {.channels = 3, .height = kPairSide, .width = kPairSide}};
}

std::shared_ptr<Model> pair_model(const std::string& more) {
  torch::manual_seed(1);
  auto model = initialized_model(pair_config(more), pair_purpose());
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.normal_(0, 0.3);
  model->eval();
  return model;
}

const std::string kLikeSiglip = "scores: sigmoid, text_attention: bidirectional, pad_texts: true";

Batch text_rows_of(const torch::Tensor& ids, const torch::Tensor& lengths = {}) {
  Batch batch;
  batch.input = {.ids = ids, .lengths = lengths};
  return batch;
}

TEST(DualEncoder, TheVectorOfATextDoesNotDependOnOtherTexts) {
  const torch::NoGradGuard no_grad;
  auto ids = tokens(3, 7);
  const auto lengths = torch::tensor({7, 4, 2}, torch::kInt64);
  for (int64_t row = 1; row < 3; ++row) ids[row][6] = kVocabulary - 1;  // the highest id, behind the text
  for (const std::string& keys :
       {std::string("text_pooling: last"), std::string("text_pooling: highest"), kLikeSiglip}) {
    SCOPED_TRACE(keys);
    const auto model = pair_model(keys);
    const auto together = comparing_of(*model)->text_vectors(text_rows_of(ids, lengths));
    EXPECT_EQ(together.sizes(), torch::IntArrayRef({3, 10}));
    for (int64_t row = 0; row < 3; ++row) {
      const auto alone = ids[row].narrow(0, 0, lengths[row].item<int64_t>()).unsqueeze(0);
      EXPECT_TRUE(torch::allclose(comparing_of(*model)->text_vectors(text_rows_of(alone)),
                                  together[row].unsqueeze(0), 1e-4, 1e-5))
          << row;
    }
  }
}

// SigLIP was trained with its padding.
TEST(DualEncoder, PaddingIsReadWhereAModelWasTrainedWithIt) {
  const torch::NoGradGuard no_grad;
  const auto model = pair_model(kLikeSiglip);
  auto ids = torch::full({1, 9}, 1, torch::kInt64);  // the padding
  ids.narrow(1, 0, 4).copy_(tokens(1, 4));
  const auto padded = comparing_of(*model)->text_vectors(text_rows_of(ids));
  EXPECT_TRUE(comparing_of(*model)->text_vectors(text_rows_of(ids.narrow(1, 0, 4))).equal(padded));
  ids[0][8] = 2;
  EXPECT_FALSE(comparing_of(*model)->text_vectors(text_rows_of(ids)).equal(padded));
}

TEST(DualEncoder, TheFirstEndTokenStandsForACausalText) {
  const torch::NoGradGuard no_grad;
  auto ids = tokens(1, 8) % 5;
  ids[0][3] = 9;
  ids[0][6] = 9;
  ids[0][7] = 7;
  const auto beginning = text_rows_of(ids.narrow(1, 0, 4));
  for (const std::string keys : {"text_pooling: end, end_token: 9", "text_pooling: highest"}) {
    const auto model = pair_model(keys);
    EXPECT_TRUE(torch::allclose(comparing_of(*model)->text_vectors(text_rows_of(ids)),
                                comparing_of(*model)->text_vectors(beginning), 1e-4, 1e-5))
        << keys;
  }
  const auto model = pair_model("text_pooling: last");
  EXPECT_FALSE(torch::allclose(comparing_of(*model)->text_vectors(text_rows_of(ids)),
                               comparing_of(*model)->text_vectors(beginning), 1e-2, 1e-3));
}

TEST(DualEncoder, ScoresAreScaledCosines) {
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({3, 10}), words = torch::randn({2, 10});
  for (const std::string& keys : {std::string("scores: softmax"), kLikeSiglip}) {
    const auto model = pair_model(keys);
    auto& comparing = *comparing_of(*model);
    const auto scores = comparing.scores(images, words);
    EXPECT_TRUE(torch::allclose(comparing.scores(5 * images, words / 3), scores, 1e-4, 1e-5));
    const auto named = model->named_parameters();
    const auto factor = named["log_scale"].exp();
    const auto* const bias = named.find("bias");
    const auto cosine = torch::cosine_similarity(images[1].unsqueeze(0), words[0].unsqueeze(0));
    EXPECT_TRUE(
        torch::allclose(scores[1][0], (factor * cosine + (bias ? *bias : torch::zeros({1})))[0], 1e-4, 1e-5));
    EXPECT_EQ(bias != nullptr, comparing.pair_scores() == PairScores::sigmoid);
  }
}

TEST(DualEncoder, BeginsAsThePapersSay) {
  const auto model = initialized_model(pair_config("scores: sigmoid"), pair_purpose());
  const auto named = model->named_parameters();
  EXPECT_NEAR(named["log_scale"].exp().item<double>(), 10, 1e-4);
  EXPECT_EQ(named["bias"].item<double>(), -10);
  const auto other = initialized_model(pair_config("scores: softmax"), pair_purpose());
  EXPECT_NEAR(other->named_parameters()["log_scale"].exp().item<double>(), 1 / 0.07, 1e-4);
  EXPECT_FALSE(other->named_parameters().contains("bias"));
}

TEST(DualEncoder, ACopyComputesTheSame) {
  const torch::NoGradGuard no_grad;
  const auto model = pair_model(kLikeSiglip);
  const auto copy = copy_of(model);
  copy->eval();
  Batch batch = text_rows_of(tokens(2, 5));
  batch.fields = {{fields::kImages, torch::randn({2, 3, kPairSide, kPairSide})}};
  EXPECT_TRUE(comparing_of(*copy)->text_vectors(batch).equal(comparing_of(*model)->text_vectors(batch)));
  EXPECT_TRUE(comparing_of(*copy)->image_vectors(batch).equal(comparing_of(*model)->image_vectors(batch)));
}

TEST(DualEncoder, MistakesAreOneLine) {
  const auto problem = [](const std::string& keys) {
    return message_of<ConfigError>([&] { check_model(pair_config(keys), pair_purpose()); });
  };
  EXPECT_THAT(problem("text_pooling: end"), HasSubstr("end_token: belongs to `text_pooling: end`"));
  EXPECT_THAT(problem("end_token: 3"), HasSubstr("end_token: belongs to `text_pooling: end`"));
  EXPECT_THAT(problem("image_projection: false"),
              HasSubstr("architecture.width: is 10, but pictures have vectors of 12"));
  EXPECT_EQ(problem(kLikeSiglip), "no error");
  auto nobody = pair_purpose();
  nobody.vocab_size = 0;
  EXPECT_THAT(message_of<ConfigError>([&] { check_model(pair_config(kLikeSiglip), nobody); }),
              HasSubstr("model.vocab_size: not given"));
}

}  // namespace
}  // namespace zoo::testing
