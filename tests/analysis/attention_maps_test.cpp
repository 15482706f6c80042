#include "analysis/attention_maps.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/error.h"
#include "generation/generator.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"
#include "tokenizers/char_tokenizer.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Tokenizer> letters(SpecialTokenSet special = SpecialTokenSet::all) {
  return CharTokenizer::train([](const auto& sink) { sink("abcdef ghi."); }, special, /*lowercase=*/false);
}

std::shared_ptr<Model> small_model(Architecture architecture, HeadKind head, const Tokenizer& tokenizer) {
  auto config = testing::small_config(architecture);
  config.n_heads = 3;
  config.max_positions = 16;
  if (architecture == Architecture::encoder_decoder) config.n_decoder_layers = 3;
  return testing::text_model(config, tokenizer, head);
}

std::vector<std::string> kinds_and_layers(const AttentionReport& report) {
  std::vector<std::string> names;
  for (const auto& layer : report.layers)
    names.push_back(std::string(name_of(layer.kind)) + std::to_string(layer.layer));
  return names;
}

void expect_proper_maps(const AttentionReport& report) {
  for (const auto& layer : report.layers) {
    const auto T = static_cast<int64_t>(report.row_tokens(layer.kind).size());
    const auto S = static_cast<int64_t>(report.column_tokens(layer.kind).size());
    ASSERT_EQ(layer.weights.sizes(), (std::vector<int64_t>{3, T, S})) << name_of(layer.kind);
    EXPECT_TRUE(torch::allclose(layer.weights.sum(-1), torch::ones({3, T}), 1e-5, 1e-5))
        << name_of(layer.kind);
    if (layer.kind == AttentionKind::decoder) {
      EXPECT_EQ(layer.weights.triu(1).abs().max().item<float>(), 0.0F);
    } else {
      EXPECT_GT(layer.weights.min().item<float>(), 0.0F);
    }
  }
}

TEST(AttentionReport, OfAnEncoderDecoderHasThreeKindsOfMaps) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder_decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::source_and_target, .text = "abc de", .target = "fi."});
  EXPECT_EQ(report.text, "abc de");
  EXPECT_EQ(report.target, "fi.");
  EXPECT_THAT(report.source_tokens, ElementsAre("a", "b", "c", "▁", "d", "e", "<eos>"));
  EXPECT_THAT(report.target_tokens, ElementsAre("<bos>", "f", "i", "."));
  EXPECT_THAT(report.target_next, ElementsAre("f", "i", ".", "<eos>"));
  EXPECT_THAT(kinds_and_layers(report), ElementsAre("encoder0", "encoder1", "decoder0", "decoder1",
                                                    "decoder2", "cross0", "cross1", "cross2"));
  expect_proper_maps(report);
}

TEST(AttentionReport, OfADecoderThatAnswersHasQuestionAndAnswerInOne) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::question_and_answer, .text = "abc", .target = "fi."});
  EXPECT_EQ(report.target, "fi.");
  EXPECT_TRUE(report.answers());
  EXPECT_THAT(report.source_tokens, ElementsAre("a", "b", "c", "<eos>", "f", "i", "."));
  EXPECT_TRUE(report.target_tokens.empty());
  EXPECT_THAT(kinds_and_layers(report), ElementsAre("decoder0", "decoder1"));
  expect_proper_maps(report);
}

TEST(AttentionReport, ShowsTheWeightsOfTheBatchThatTrainingWouldMake) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder_decoder, HeadKind::language_modeling, *tokenizer);
  auto source = tokenizer->encode("abc de"), target = tokenizer->encode("fi.");
  source.push_back(tokenizer->special().eos);
  target.insert(target.begin(), tokenizer->special().bos);
  Batch batch;
  batch.input.ids = torch::tensor(source).unsqueeze(0);
  batch.decoder.ids = torch::tensor(target).unsqueeze(0);
  model->eval();
  const torch::NoGradGuard no_grad;
  AttentionMaps maps;
  model->attention_maps(batch, maps);

  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::source_and_target, .text = "abc de", .target = "fi."});
  ASSERT_EQ(report.layers.size(), 8U);
  EXPECT_TRUE(torch::equal(report.layers[1].weights, maps.encoder[1][0]));
  EXPECT_TRUE(torch::equal(report.layers[2].weights, maps.decoder[0][0]));
  EXPECT_TRUE(torch::equal(report.layers[7].weights, maps.cross[2][0]));
  EXPECT_FALSE(torch::equal(report.layers[6].weights, report.layers[7].weights));
}

TEST(AttentionReport, LooksAtTheModelsOwnTranslationWithoutATarget) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder_decoder, HeadKind::language_modeling, *tokenizer);
  for (const std::string text : {"abc", "d", "ghi. ab", "fed"}) {
    const Generator generator(*model, *tokenizer);
    const auto written =
        generator.generate(std::vector<std::string>{text}, {.temperature = 0}).front().outputs.front();
    const auto report =
        attention_report(*model, *tokenizer, {.layout = TextLayout::source_and_target, .text = text});
    EXPECT_EQ(report.target, written.text);
    ASSERT_EQ(report.target_next.size(), written.ids.size());
    ASSERT_EQ(report.target_tokens.size(), written.ids.size());
    EXPECT_EQ(report.target_tokens[0], "<bos>");
    for (size_t i = 0; i < written.ids.size(); ++i) {
      EXPECT_EQ(report.target_next[i], tokenizer->label(written.ids[i]));
      if (i > 0) {
        EXPECT_EQ(report.target_tokens[i], report.target_next[i - 1]);
      }
    }
    expect_proper_maps(report);
  }
}

TEST(AttentionReport, OfAnEncoderStandsBetweenClassAndSeparatorToken) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder, HeadKind::masked_language_modeling, *tokenizer);
  const auto report =
      attention_report(*model, *tokenizer, {.layout = TextLayout::cls_tokens_sep, .text = "ab<mask>d"});
  EXPECT_THAT(report.source_tokens, ElementsAre("<cls>", "a", "b", "<mask>", "d", "<sep>"));
  EXPECT_TRUE(report.target_tokens.empty());
  EXPECT_THAT(kinds_and_layers(report), ElementsAre("encoder0", "encoder1"));
  expect_proper_maps(report);
}

TEST(AttentionReport, OfADecoderHasTheTokensOfTheTextAlone) {
  const auto tokenizer = letters(SpecialTokenSet::none);
  const auto model = small_model(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(*model, *tokenizer, {.layout = TextLayout::tokens, .text = "bade"});
  EXPECT_THAT(report.source_tokens, ElementsAre("b", "a", "d", "e"));
  EXPECT_THAT(report.row_tokens(AttentionKind::decoder), ElementsAre("b", "a", "d", "e"));
  EXPECT_THAT(kinds_and_layers(report), ElementsAre("decoder0", "decoder1"));
  expect_proper_maps(report);
}

TEST(AttentionReport, OfAClassifyingDecoderEndsWhereTheClassIsRead) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::decoder, HeadKind::classification, *tokenizer);
  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::tokens_eos, .text = "ba", .head = HeadKind::classification});
  EXPECT_THAT(report.source_tokens, ElementsAre("b", "a", "<eos>"));
  expect_proper_maps(report);
}

TEST(AttentionReport, HasNoDropoutAndLeavesTheModelAsItWas) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder, HeadKind::masked_language_modeling, *tokenizer);
  model->train();
  const AttentionRequest request{.layout = TextLayout::cls_tokens_sep, .text = "abcd"};
  const auto once = attention_report(*model, *tokenizer, request);
  const auto again = attention_report(*model, *tokenizer, request);
  EXPECT_TRUE(torch::equal(once.layers.back().weights, again.layers.back().weights));
  EXPECT_FALSE(once.layers.back().weights.requires_grad());
  EXPECT_TRUE(model->is_training());
}

template <class E>
std::string message_of(Model& model, const Tokenizer& tokenizer, const AttentionRequest& request) {
  return testing::message_of<E>([&] { attention_report(model, tokenizer, request); });
}

TEST(AttentionReport, RefusesWhatCannotBeShown) {
  const auto tokenizer = letters();
  const auto decoder = small_model(Architecture::decoder, HeadKind::language_modeling, *tokenizer);
  EXPECT_THAT(message_of<DataError>(*decoder, *tokenizer, {.layout = TextLayout::tokens, .text = ""}),
              HasSubstr("no tokens"));
  EXPECT_THAT(message_of<UsageError>(*decoder, *tokenizer,
                                     {.layout = TextLayout::tokens, .text = "a", .target = "b"}),
              HasSubstr("AttentionRequest::target"));
  EXPECT_NE(message_of<DataError>(*decoder, *tokenizer,
                                  {.layout = TextLayout::tokens, .text = std::string(17, 'a')}),
            "no such error");
  EXPECT_NE(message_of<DataError>(*decoder, *tokenizer, {.layout = TextLayout::tokens, .text = "\xff"}),
            "no such error");
  const auto bare = letters(SpecialTokenSet::none);
  EXPECT_THAT(message_of<DataError>(*decoder, *bare, {.layout = TextLayout::cls_tokens_sep, .text = "a"}),
              HasSubstr("<cls>"));
}

TEST(AttentionReport, AsJsonHasEveryWeight) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder_decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::source_and_target, .text = "abc", .target = "d"});
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["text"], "abc");
  EXPECT_EQ(json["target"], "d");
  EXPECT_EQ(json["source_tokens"], nlohmann::json(report.source_tokens));
  EXPECT_EQ(json["target_tokens"], nlohmann::json(report.target_tokens));
  EXPECT_EQ(json["target_next"], nlohmann::json(report.target_next));
  ASSERT_EQ(json["layers"].size(), report.layers.size());
  for (size_t i = 0; i < report.layers.size(); ++i) {
    const auto& [kind, layer, weights] = report.layers[i];
    EXPECT_EQ(json["layers"][i]["kind"], name_of(kind));
    EXPECT_EQ(json["layers"][i]["layer"], layer);
    const auto& heads = json["layers"][i]["heads"];
    ASSERT_EQ(heads.size(), static_cast<size_t>(weights.size(0)));
    for (int64_t h = 0; h < weights.size(0); ++h) {
      ASSERT_EQ(heads[h].size(), static_cast<size_t>(weights.size(1)));
      for (int64_t t = 0; t < weights.size(1); ++t) {
        ASSERT_EQ(heads[h][t].size(), static_cast<size_t>(weights.size(2)));
        for (int64_t s = 0; s < weights.size(2); ++s)
          EXPECT_NEAR(heads[h][t][s].get<double>(), weights[h][t][s].item<double>(), 5.1e-7);
      }
    }
  }
}

TEST(AttentionReport, AsJsonSaysWhatHeadsDoAndWhereTokensComeFrom) {
  const auto tokenizer = letters();
  const auto model = small_model(Architecture::encoder_decoder, HeadKind::language_modeling, *tokenizer);
  const auto report = attention_report(
      *model, *tokenizer, {.layout = TextLayout::source_and_target, .text = "abc", .target = "d"});
  const auto json = nlohmann::json::parse(to_json(report));
  const auto heads = head_statistics(report);
  ASSERT_EQ(heads.size(), 8U * 3U);
  EXPECT_EQ(json["heads"], nlohmann::json::parse(to_json(heads)));

  const auto rollouts = attention_rollout(report);
  ASSERT_EQ(rollouts.size(), 2U + 3U + 1U);
  ASSERT_EQ(json["rollout"].size(), rollouts.size());
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const auto& [kind, layer, weights] = rollouts[i];
    EXPECT_EQ(json["rollout"][i]["kind"], name_of(kind));
    EXPECT_EQ(json["rollout"][i]["layer"], layer);
    const auto& rows = json["rollout"][i]["rows"];
    ASSERT_EQ(rows.size(), static_cast<size_t>(weights.size(0)));
    for (int64_t t = 0; t < weights.size(0); ++t) {
      ASSERT_EQ(rows[t].size(), static_cast<size_t>(weights.size(1)));
      for (int64_t s = 0; s < weights.size(1); ++s)
        EXPECT_NEAR(rows[t][s].get<double>(), weights[t][s].item<double>(), 5.1e-7);
    }
  }
}

TEST(AttentionReport, AsJsonSaysThatThereIsNoTarget) {
  const AttentionReport report{.text = "a\xff", .source_tokens = {"a"}};
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["target"].is_null());
  EXPECT_EQ(json["text"], "a\xEF\xBF\xBD");
  EXPECT_TRUE(json["layers"].is_array());
}

TEST(TextLayout, FollowsArchitectureAndTask) {
  const auto layout = [](Architecture architecture, const char* task) {
    Experiment experiment;
    experiment.model.architecture = architecture;
    experiment.task = task_types().select(task);
    return task_type(experiment).layout(experiment);
  };
  EXPECT_EQ(layout(Architecture::decoder, "language_modeling"), TextLayout::tokens);
  EXPECT_EQ(layout(Architecture::decoder, "text_classification"), TextLayout::tokens_eos);
  EXPECT_EQ(layout(Architecture::encoder, "masked_language_modeling"), TextLayout::cls_tokens_sep);
  EXPECT_EQ(layout(Architecture::encoder, "text_classification"), TextLayout::cls_tokens_sep);
  EXPECT_EQ(layout(Architecture::encoder_decoder, "text_to_text"), TextLayout::source_and_target);
  EXPECT_EQ(layout(Architecture::encoder_decoder, "text_classification"), TextLayout::source_and_target);
}

}  // namespace
}  // namespace zoo
