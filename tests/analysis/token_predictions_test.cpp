#include "analysis/token_predictions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/attention_maps.h"
#include "base/error.h"
#include "tests/support/text_models.h"

namespace zoo {
namespace {

std::shared_ptr<Model> model_of(Architecture architecture, HeadKind head, const Tokenizer& tokenizer) {
  return testing::text_model(testing::small_config(architecture), tokenizer, head);
}

/// The probabilities of all outputs from logits, with plain arithmetic.
std::vector<double> softmax(const torch::Tensor& logits) {
  std::vector<double> values;
  for (int64_t v = 0; v < logits.size(0); ++v) values.push_back(std::exp(logits[v].item<double>()));
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  for (auto& value : values) value /= sum;
  return values;
}

/// Expects the five likeliest tokens of each row of `logits`, (T, V), found by sorting.
void expect_likeliest(const TokenPredictions& predictions, const torch::Tensor& logits,
                      const Tokenizer& tokenizer) {
  ASSERT_EQ(static_cast<int64_t>(predictions.size()), logits.size(0));
  for (size_t t = 0; t < predictions.size(); ++t) {
    auto probabilities = softmax(logits[static_cast<int64_t>(t)]);
    probabilities.resize(static_cast<size_t>(tokenizer.vocab_size()));
    std::vector<int64_t> ids(probabilities.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::sort(ids, std::greater<>(),
                      [&](int64_t id) { return probabilities[static_cast<size_t>(id)]; });
    ASSERT_EQ(predictions[t].size(), 5U);
    double sum = 0;
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(predictions[t][i].token, tokenizer.label(ids[i])) << "position " << t << ", rank " << i;
      EXPECT_NEAR(predictions[t][i].probability, probabilities[static_cast<size_t>(ids[i])], 1e-5);
      EXPECT_TRUE(i == 0 || predictions[t][i - 1].probability >= predictions[t][i].probability);
      sum += predictions[t][i].probability;
    }
    EXPECT_LE(sum, 1);
    EXPECT_GT(sum, 0);
  }
}

torch::Tensor row(const TokenIds& ids) { return torch::tensor(ids, torch::kInt64).unsqueeze(0); }

TEST(TokenPredictions, OfADecoderAreTheNextTokens) {
  const auto tokenizer = testing::letters();
  const auto model = model_of(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(*model, *tokenizer, {.layout = TextLayout::tokens, .text = "badge"});
  model->eval();
  const torch::NoGradGuard no_grad;
  // Each prefix read for itself: a prediction depends on nothing that comes later.
  std::vector<torch::Tensor> logits;
  const auto ids = tokenizer->encode("badge");
  for (size_t n = 1; n <= ids.size(); ++n) {
    const TokenBatch prefix{.ids = row({ids.begin(), ids.begin() + static_cast<int64_t>(n)})};
    DecodingState state(1, torch::kCPU);
    logits.push_back(model->generative()->prefill({.input = prefix}, state)[0]);
  }
  expect_likeliest(report.predictions, torch::stack(logits), *tokenizer);
}

TEST(TokenPredictions, OfAnEncoderDecoderAreThoseOfItsTarget) {
  const auto tokenizer = testing::letters();
  const auto model = model_of(Architecture::encoder_decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::source_and_target, .text = "abc", .target = "fed"});
  ASSERT_EQ(report.target_tokens.size(), 4U);
  model->eval();
  const torch::NoGradGuard no_grad;
  auto source = tokenizer->encode("abc"), target = tokenizer->encode("fed");
  source.push_back(tokenizer->special().eos);
  target.insert(target.begin(), tokenizer->special().bos);
  DecodingState state = model->generative()->begin({.input = {.ids = row(source)}});
  const auto logits = model->generative()->forward({.ids = row(target)}, state, LogitsAt::every_token());
  expect_likeliest(report.predictions, logits, *tokenizer);
}

TEST(TokenPredictions, OfAMaskedLanguageModelAreForThePositionItself) {
  const auto tokenizer = testing::letters();
  const auto model = model_of(Architecture::encoder, HeadKind::masked_language_modeling, *tokenizer);
  const auto report = attention_report(*model, *tokenizer,
                                       {.layout = TextLayout::cls_tokens_sep,
                                        .text = "ab<mask>d",
                                        .head = HeadKind::masked_language_modeling});
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto& special = tokenizer->special();
  const auto a = tokenizer->encode("a")[0], b = tokenizer->encode("b")[0], d = tokenizer->encode("d")[0];
  Batch batch;
  batch.input.ids = row({special.cls, a, b, special.mask, d, special.sep});
  batch.positions = torch::arange(6);
  expect_likeliest(report.predictions, model->logits(model->features(batch)), *tokenizer);
}

TEST(TokenPredictions, AreMissingWhereTheHeadPredictsNoTokens) {
  const auto tokenizer = testing::letters();
  for (const auto head : {HeadKind::classification, HeadKind::regression}) {
    const auto config = testing::small_config(Architecture::decoder);
    const auto model =
        initialized_model(config, {.head = head, .vocab_size = tokenizer->vocab_size(), .n_classes = 3});
    const auto report = attention_report(*model, *tokenizer,
                                         {.layout = TextLayout::tokens_eos, .text = "badge", .head = head});
    EXPECT_TRUE(report.predictions.empty());
    EXPECT_EQ(nlohmann::json::parse(to_json(report))["predictions"], nlohmann::json::array());
  }
}

TEST(TokenPredictions, NameNoOutputThatTheVocabularyLacks) {
  const auto tokenizer = testing::letters();
  auto config = testing::small_config(Architecture::decoder);
  config.vocab_size = tokenizer->vocab_size() + 300;  // most outputs are padding
  config.max_positions = 600;                         // more positions than are predicted at once
  const auto model = testing::text_model(config, *tokenizer);
  Batch batch;
  batch.input.ids = torch::randint(tokenizer->vocab_size(), {1, 600});
  const auto predictions = token_predictions(*model, *tokenizer, batch, 5);
  model->eval();
  const torch::NoGradGuard no_grad;
  expect_likeliest(predictions, model->logits(model->features(batch)), *tokenizer);
}

TEST(TokenPredictions, AreAllTokensOfASmallVocabulary) {
  const auto tokenizer = testing::letters();
  const auto model = model_of(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  Batch batch;
  batch.input.ids = row({3});
  const auto predictions = token_predictions(*model, *tokenizer, batch, 1000);
  ASSERT_EQ(predictions.size(), 1U);
  ASSERT_EQ(static_cast<int64_t>(predictions[0].size()), tokenizer->vocab_size());
  double sum = 0;
  for (const auto& prediction : predictions[0]) sum += prediction.probability;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(TokenPredictions, RefuseLogitsThatAreNotNumbers) {
  const auto tokenizer = testing::letters();
  const auto model = model_of(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.fill_(NAN);
  }
  Batch batch;
  batch.input.ids = row({3, 4});
  EXPECT_THROW(token_predictions(*model, *tokenizer, batch, 5), CheckpointError);
}

TEST(TokenPredictions, AsJsonAreListsOfTokensWithProbabilities) {
  const auto json = predictions_json({{{"a", 2.0 / 3}, {"b", 0.25}}, {}});
  EXPECT_EQ(json.dump(), R"([[{"token":"a","probability":0.666667},{"token":"b","probability":0.25}],[]])");
}

TEST(TokenPredictions, AreInTheDocumentOfTheReport) {
  const auto tokenizer = testing::letters();
  const auto model = model_of(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(*model, *tokenizer, {.layout = TextLayout::tokens, .text = "bad"});
  ASSERT_EQ(report.predictions.size(), 3U);
  EXPECT_EQ(nlohmann::ordered_json::parse(to_json(report))["predictions"],
            predictions_json(report.predictions));
}

}  // namespace
}  // namespace zoo
