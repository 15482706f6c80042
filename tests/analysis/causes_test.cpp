// Which part of a model does what. tests/parity/causes_parity_test.cpp compares with hooks on other models.

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/ablation.h"
#include "analysis/causes/contributions.h"
#include "analysis/causes/head_kinds.h"
#include "analysis/causes/lens.h"
#include "analysis/causes/patching.h"
#include "analysis/causes/standing_ablation.h"
#include "base/error.h"
#include "models/inference_scope.h"
#include "models/mixers/latent_attention.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLength = 7;

Batch one_row(const FamilySelection& architecture) {
  return small_batch(architecture, {.ids = tokens(1, kLength)});
}

Question question_of(const Batch& batch) {
  Question question{.batch = batch};
  question.places.assign(static_cast<size_t>(batch.n_targets()), "x");
  question.source_tokens.assign(kLength, "x");
  question.targets.assign(static_cast<size_t>(batch.n_targets()), -1);
  question.place = batch.n_targets() - 1;
  question.label = [](int64_t id) { return std::to_string(id); };
  return question;
}

TEST(PartsOfModels, HaveNames) {
  for (const auto& [given, name] : std::vector<std::pair<std::string, std::string>>{
           {"3.2", "layers.3.attention.heads.2"},
           {"layers.3.attention.heads.2", "layers.3.attention.heads.2"},
           {"encoder.0.11", "encoder.layers.0.attention.heads.11"},
           {"decoder.1.0", "decoder.layers.1.attention.heads.0"},
           {"cross.1.0", "decoder.layers.1.cross_attention.heads.0"},
           {"layers.3.attention.heads", "layers.3.attention.heads"},
           {"residual.4", "residual.4"},
           {"decoder.layers.0.cross_attention", "decoder.layers.0.cross_attention"}})
    EXPECT_EQ(ablated_part(given).name(), name);
  for (const std::string wrong : {"", "3", "3.", ".2", "3.x", "3.2.1", "layers.3", "layers.3.attention.2",
                                  "cross", "encoder", "-1.2", "layers.3.feed_forward.1"}) {
    EXPECT_THAT(message_of<UsageError>([&] { ablated_part(wrong); }), HasSubstr("names no part of a model"))
        << wrong;
  }
}

TEST(Lens, EndsInTheModelItself) {
  for_each_model(kArchitectures, [](const ModelConfig& config, Model& model) {
    const auto batch = one_row(config.architecture);
    const auto own = model.logits(model.features(batch));
    int64_t n_depths = 0;
    lens_logits(model, batch, [&](int64_t depth, const torch::Tensor& logits) {
      EXPECT_EQ(depth, n_depths++);
      EXPECT_EQ(logits.sizes(), own.sizes());
      EXPECT_EQ(close(logits, own), depth == config.n_layers) << depth;
    });
    EXPECT_EQ(n_depths, config.n_layers + 1);
  });
}

TEST(Lens, ReadsPositionsThatAreChosen) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::decoder));
  auto batch = one_row(Architecture::decoder);
  std::vector<torch::Tensor> all, some;
  lens_logits(*model, batch, [&](int64_t, const torch::Tensor& logits) { all.push_back(logits); });
  batch.positions = torch::tensor({5, 2});
  lens_logits(*model, batch, [&](int64_t, const torch::Tensor& logits) { some.push_back(logits); });
  ASSERT_EQ(all.size(), some.size());
  for (size_t depth = 0; depth < all.size(); ++depth)
    EXPECT_TRUE(close(some[depth], all[depth].index_select(0, batch.positions)));
}

TEST(Lens, CellsSayWhatTheirLogitsSay) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::decoder));
  auto question = question_of(one_row(Architecture::decoder));
  question.targets[2] = 4;
  const auto report = lens_report(*model, question, {.n_likeliest = 3});
  const auto final_shares = model->logits(model->features(question.batch)).to(torch::kDouble).softmax(-1);
  EXPECT_EQ(report.question.targets[1], final_shares[1].argmax().item<int64_t>());
  size_t depth = 0;
  lens_logits(*model, question.batch, [&](int64_t, const torch::Tensor& logits) {
    const auto shares = logits.to(torch::kDouble).softmax(-1)[2];
    const auto& cell = report.depths[depth++][2];
    ASSERT_EQ(cell.likeliest.size(), 3U);
    EXPECT_EQ(cell.likeliest.front().id, shares.argmax().item<int64_t>());
    EXPECT_EQ(cell.likeliest.front().label, std::to_string(cell.likeliest.front().id));
    EXPECT_NEAR(cell.likeliest.front().probability, shares.max().item<double>(), 1e-9);
    EXPECT_NEAR(cell.probability, shares[4].item<double>(), 1e-9);
    EXPECT_EQ(cell.rank, 1 + shares.gt(shares[4]).sum().item<int64_t>());
    const auto divergence = (final_shares[2] * (final_shares[2] / shares).log()).sum().item<double>();
    EXPECT_NEAR(cell.divergence, divergence, 1e-6);
  });
  EXPECT_NEAR(report.depths.back()[2].divergence, 0, 1e-6);
  EXPECT_EQ(report.depths.back()[1].rank, 1);
}

/// Two texts of different lengths: together and padded, or each by itself.
struct PaddedTexts {
  PaddedTexts() {
    const auto ids = tokens(2, kLength);
    together = small_batch(Architecture::decoder, {ids, torch::tensor({kLength, int64_t{4}})});
    together.positions = torch::cat({torch::arange(kLength), torch::arange(4) + kLength});
    together.targets = tokens(1, kLength + 4).flatten();
    for (const auto& [row, length, first] : {std::tuple(0, kLength, int64_t{0}), {1, int64_t{4}, kLength}}) {
      Batch batch;
      batch.input.ids = ids.narrow(0, row, 1).narrow(1, 0, length);
      batch.targets = together.targets.narrow(0, first, length);
      alone.push_back(batch);
    }
  }
  Batch together;
  std::vector<Batch> alone;
};

TEST(Ablations, PaddingIsNoPartOfAMeanOrOfAnotherText) {
  const auto model = random_model(small_config(Architecture::decoder));
  const PaddedTexts texts;
  for (const auto by : {AblationBy::zero, AblationBy::mean, AblationBy::resample}) {
    Ablation padded(*model, {texts.together}, by), alone(*model, texts.alone, by);
    EXPECT_NEAR(padded.whole().nats, alone.whole().nats, 1e-3);
    for (const std::string name :
         {"0.1", "layers.1.feed_forward", "residual.1", "layers.0.attention.heads"}) {
      const auto part = ablated_part(name);
      EXPECT_NEAR(padded.without({part}).nats, alone.without({part}).nats, 1e-3)
          << name_of(by) << ", " << name;
      EXPECT_GT(std::abs(padded.without({part}).nats - padded.whole().nats), 1e-2);
    }
  }
}

TEST(Ablations, ScoreAndLeaveTheModelAsItWas) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::decoder));
  auto batch = small_batch(Architecture::decoder, {.ids = tokens(2, kLength)});
  const auto logits = model->logits(model->features(batch));
  batch.targets.narrow(0, 0, 3).copy_(logits.argmax(-1).narrow(0, 0, 3));
  Ablation ablation(*model, {batch, batch}, AblationBy::zero);
  const auto shares = logits.log_softmax(-1);
  EXPECT_NEAR(ablation.whole().loss(), -shares.gather(1, batch.targets.unsqueeze(1)).mean().item<double>(),
              1e-5);
  EXPECT_EQ(ablation.whole().targets, 4 * kLength);
  EXPECT_NEAR(ablation.whole().accuracy(),
              logits.argmax(-1).eq(batch.targets).to(torch::kDouble).mean().item<double>(), 1e-12);
  const auto parts = all_parts(ablation.first_activations());
  EXPECT_EQ(parts.size(), 2U * (4 + 2));
  EXPECT_EQ(parts.front().name(), "layers.0.attention.heads.0");
  EXPECT_EQ(parts.back().name(), "layers.1.feed_forward");
  ablation.without(parts);
  EXPECT_TRUE(torch::equal(model->logits(model->features(batch)), logits));
}

TEST(Ablations, PositionsAreThoseOfEachRow) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batch = small_batch(Architecture::decoder, {.ids = tokens(2, kLength)});
  Ablation ablation(*model, {batch}, AblationBy::zero);
  const auto part = ablated_part("layers.0.feed_forward");
  const auto view = [&](const torch::Tensor& x) { return x.view({2, kLength, -1}); };
  const auto whole = view(ablation.logits(0, {})), some = view(ablation.logits(0, {part}, {3, 99})),
             all = view(ablation.logits(0, {part}));
  // A decoder's earlier positions do not see the change.
  EXPECT_TRUE(torch::equal(some.narrow(1, 0, 3), whole.narrow(1, 0, 3)));
  EXPECT_FALSE(close(some.select(1, 3), whole.select(1, 3)));
  EXPECT_FALSE(close(some, all));
}

TEST(Ablations, TakeReferencesFromOtherTexts) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batch = one_row(Architecture::decoder), other = one_row(Architecture::decoder);
  Ablation of_itself(*model, {batch}, AblationBy::mean), of_other(*model, {batch}, AblationBy::mean, {other}),
      resampled(*model, {batch}, AblationBy::resample, {other});
  const auto part = ablated_part("residual.1");
  EXPECT_FALSE(close(of_itself.logits(0, {part}), of_other.logits(0, {part})));
  // The whole stream of the other text makes the answers of the other text.
  EXPECT_TRUE(close(resampled.logits(0, {part}), Ablation(*model, {other}, AblationBy::zero).logits(0, {})));
}

// Whatever evaluates the model meets what Ablation puts in the place of the parts.
TEST(Ablations, StandWhileAModelIsUsed) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batch_of = [](int64_t n_rows) {
    return small_batch(Architecture::decoder, {.ids = tokens(n_rows, kLength)});
  };
  const std::vector<Batch> batches = {batch_of(2), batch_of(3), batch_of(2)};
  const std::vector<AblatedPart> parts = {ablated_part("1.2"), ablated_part("0.1"),
                                          ablated_part("layers.0.feed_forward")};
  const auto plain = model->logits(model->features(batches[0]));
  for (const auto by : {AblationBy::zero, AblationBy::mean, AblationBy::resample}) {
    for (const std::vector<int64_t>& positions : {std::vector<int64_t>(), {2, 5}}) {
      Ablation ablation(*model, batches, by);
      std::vector<torch::Tensor> expected;
      for (size_t i = 0; i < batches.size(); ++i) expected.push_back(ablation.logits(i, parts, positions));
      const StandingAblation standing(*model, parts, by, positions, batches);
      for (size_t i = 0; i < batches.size(); ++i)
        EXPECT_TRUE(torch::equal(model->logits(model->features(batches[i])), expected[i]))
            << name_of(by) << i;
      EXPECT_FALSE(close(expected[0], plain));
    }
  }
  EXPECT_TRUE(torch::equal(model->logits(model->features(batches[0])), plain));
  EXPECT_THAT(message_of<UsageError>(
                  [&] { StandingAblation(*model, {ablated_part("7.0")}, AblationBy::zero, {}, batches); }),
              HasSubstr("the model has no layers.7"));
  EXPECT_THAT(message_of<UsageError>(
                  [&] { StandingAblation(*model, parts, AblationBy::resample, {}, {batch_of(1)}); }),
              HasSubstr("there is one text: choose mean"));
}

TEST(HeadKinds, TheStrongestOfARoleAreParts) {
  const auto head = [](int64_t layer, int64_t number, double previous, double induction) {
    return HeadKinds{.kind = AttentionKind::decoder,
                     .layer = layer,
                     .head = number,
                     .previous = previous,
                     .duplicate = 0,
                     .induction = induction};
  };
  const std::vector<HeadKinds> heads = {head(0, 0, 0.9, 0.1), head(0, 1, 0.2, 0.7), head(1, 0, 0.3, 0.7),
                                        head(1, 1, 0.8, 0.8)};
  const auto names = [&](HeadRole role, int64_t most) {
    std::vector<std::string> list;
    for (const auto& part : strongest_heads(heads, role, most)) list.push_back(part.name());
    return list;
  };
  EXPECT_THAT(names(HeadRole::induction, 2),
              ::testing::ElementsAre("layers.1.attention.heads.1", "layers.0.attention.heads.1"));
  EXPECT_THAT(names(HeadRole::previous_token, 1), ::testing::ElementsAre("layers.0.attention.heads.0"));
  EXPECT_EQ(names(HeadRole::duplicate_token, 9).size(), 4U);
}

TEST(Ablations, RefuseInOneLine) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batch = one_row(Architecture::decoder);
  EXPECT_THAT(message_of<UsageError>([&] { Ablation(*model, {batch}, AblationBy::resample); }),
              HasSubstr("there is one text: give two, or choose mean"));
  Ablation ablation(*model, {batch}, AblationBy::zero);
  const auto problem = [&](Ablation& of, const std::string& name) {
    return message_of<UsageError>([&] { of.without({ablated_part(name)}); });
  };
  EXPECT_THAT(problem(ablation, "2.0"),
              HasSubstr("no layers.2.attention.heads.0: see its layers with `zoo inspect`"));
  EXPECT_THAT(problem(ablation, "1.4"), HasSubstr("layers.1.attention.heads has the heads 0 to 3"));
  EXPECT_THAT(problem(ablation, "encoder.1.0"), HasSubstr("it has one side"));
  EXPECT_THAT(problem(ablation, "memory"), HasSubstr("no memory"));
  const auto two = random_model(small_config(Architecture::encoder_decoder));
  Ablation of_two(*two, {one_row(Architecture::encoder_decoder)}, AblationBy::zero);
  EXPECT_THAT(problem(of_two, "1.0"), HasSubstr("it has two sides"));
  auto unlabelled = batch;
  unlabelled.targets = torch::Tensor();
  EXPECT_THAT(message_of<UsageError>([&] { Ablation(*model, {unlabelled}, AblationBy::zero); }),
              HasSubstr("without targets"));
}

TEST(Contributions, AddUpInEveryModel) {
  for_each_model(kArchitectures, [](const ModelConfig& config, Model& model) {
    const auto batch = one_row(config.architecture);
    const auto logits = model.logits(model.features(batch));
    const auto found = logit_contributions(model, batch, 3, 11);
    EXPECT_NEAR(found.logit, logits[3][11].item<double>(), 1e-5);
    double sum = 0;
    for (const auto& part : found.parts) sum += part.logit;
    EXPECT_NEAR(sum, found.logit, 1e-3 * std::max(1.0, std::abs(found.logit)));
    EXPECT_GE(found.parts.size(), static_cast<size_t>(1 + config.n_layers * (config.n_heads + 1)));
  });
}

TEST(Contributions, KnowLayerScalesPoolersExpertsAndNarrowEmbeddings) {
  const torch::NoGradGuard no_grad;
  const auto check = [](const ModelConfig& config, const ModelPurpose& purpose, int64_t place) {
    const auto model = random_model(config, purpose);
    auto batch = one_row(config.architecture);
    batch.targets = torch::Tensor();
    const auto found = logit_contributions(*model, batch, place, 1);
    double sum = 0;
    for (const auto& part : found.parts) sum += part.logit;
    EXPECT_NEAR(found.logit, model->logits(model->features(batch))[place][1].item<double>(), 1e-5);
    EXPECT_NEAR(sum, found.logit, 1e-3);
  };
  auto scaled = small_config(Architecture::decoder);
  scaled.layer_scale = 0.1;
  check(scaled, purpose_of(scaled.architecture), 3);
  auto mixture = small_config(Architecture::decoder);
  mixture.experts = ExpertsConfig{.count = 3, .active = 2};
  check(mixture, purpose_of(mixture.architecture), 3);
  auto narrow = small_config(Architecture::decoder);  // its head maps to the width of the embeddings
  narrow.embedding_width = 8;
  check(narrow, purpose_of(narrow.architecture), 3);
  const ModelPurpose classes{.head = HeadKind::classification,
                             .vocab_size = kVocabulary,
                             .n_classes = 3,
                             .start_token = kStartToken};
  auto pooled = small_config(Architecture::encoder);
  pooled.pooler = true;
  check(pooled, classes, 0);
  check(small_bart(), classes, 0);
}

TEST(Contributions, HaveTheHeadsOfLatentAttention) {
  const torch::NoGradGuard no_grad;
  auto config = small_config(Architecture::decoder, Position::rotary);
  config.rotary.fraction = 2.0 / 3;  // 4 of 6
  config.attention = {Selection("latent", LatentKeys{.kv_rank = 8})};
  const auto model = random_model(config);
  const auto found = logit_contributions(*model, one_row(config.architecture), 3, 11);
  double sum = 0;
  int64_t heads = 0;
  for (const auto& part : found.parts) {
    sum += part.logit;
    heads += part.name.find("attention.heads") != std::string::npos ? 1 : 0;
  }
  EXPECT_NEAR(sum, found.logit, 1e-3);
  EXPECT_EQ(heads, config.n_layers * config.n_heads);
}

TEST(Contributions, AreLeftOutOfALensWhereTheyCannotBeTold) {
  auto config = small_config(Architecture::encoder);
  config.text_vector = TextVector::mean;
  const auto model = random_model(config, {.head = HeadKind::classification,
                                           .vocab_size = kVocabulary,
                                           .n_classes = 3,
                                           .start_token = kStartToken});
  auto batch = one_row(config.architecture);
  batch.targets = torch::Tensor();
  Question question{.batch = batch, .places = {"the whole text"}, .targets = {-1}};
  question.label = [](int64_t id) { return std::to_string(id); };
  const auto report = lens_report(*model, question);
  EXPECT_EQ(report.n_layers(), config.n_layers);
  EXPECT_NEAR(report.depths.back()[0].divergence, 0, 1e-6);
  const auto parts = lens_contributions(*model, report.question, 0);
  EXPECT_THAT(parts.reason, HasSubstr("their parts cannot be told"));
  EXPECT_TRUE(parts.contributions.parts.empty());
}

TEST(Patches, OfTheWholeStreamBringTheWholeAnswerBack) {
  for_each_model(
      std::array{Architecture::decoder, Architecture::encoder}, [](const ModelConfig& config, Model& model) {
        const auto clean = one_row(config.architecture), corrupt = one_row(config.architecture);
        const auto expected = model.logits(model.features(clean)).to(torch::kDouble);
        const AblatedPart stream{.place = {.kind = ActivationKind::residual, .layer = 1}};
        // Several patches in one pass do not touch each other.
        const auto found =
            patched_logits(model, clean, corrupt, 4, {{.part = stream}, {.part = stream, .position = 0}});
        EXPECT_TRUE(close(found[0], expected[4]));
        EXPECT_FALSE(close(found[1], expected[4]));
        const auto alone = patched_logits(model, clean, corrupt, 4, {{.part = stream, .position = 0}});
        EXPECT_TRUE(close(found[1], alone[0]));
      });
}

TEST(Patches, AreReadAtPositionsThatAreChosen) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto clean = one_row(Architecture::decoder);
  auto corrupt = one_row(Architecture::decoder);
  const std::vector<Patch> patches{{.part = ablated_part("0.1")}, {.part = ablated_part("1.2")}};
  const auto expected = patched_logits(*model, clean, corrupt, 5, patches);
  corrupt.positions = torch::tensor({5});
  EXPECT_TRUE(close(patched_logits(*model, clean, corrupt, 0, patches), expected));
}

TEST(Patches, AreReportedAsSharesOfTheDifference) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::decoder));
  const auto clean = question_of(one_row(Architecture::decoder)),
             corrupt = question_of(one_row(Architecture::decoder));
  const auto report = patch_report(*model, clean, corrupt, {.answer = 3, .against = 9, .place = 5});
  const auto difference = [&](const Question& question) {
    const auto logits = model->logits(model->features(question.batch))[5];
    return (logits[3] - logits[9]).item<double>();
  };
  EXPECT_NEAR(report.clean_difference, difference(clean), 1e-5);
  EXPECT_NEAR(report.corrupt_difference, difference(corrupt), 1e-5);
  EXPECT_EQ(report.heads.size(), 8U);
  EXPECT_EQ(report.positions.size(), static_cast<size_t>((3 + 2 + 2) * kLength));
  for (const auto& [patch, found, recovered] : report.positions) {
    EXPECT_NEAR(recovered,
                (found - report.corrupt_difference) / (report.clean_difference - report.corrupt_difference),
                1e-9);
    // What stands behind the answer cannot change it; the last stream at its place is the answer.
    if (*patch.position > 5) {
      EXPECT_NEAR(recovered, 0, 1e-4) << patch.part.name();
    }
    if (patch.part.name() == "residual.2") {
      EXPECT_NEAR(recovered, *patch.position == 5 ? 1 : 0, 1e-4);
    }
  }
  EXPECT_THAT(
      message_of<UsageError>([&] { patch_report(*model, clean, corrupt, {.answer = 3, .against = 3}); }),
      HasSubstr("with answer and against"));
  EXPECT_THAT(
      message_of<UsageError>([&] { patch_report(*model, clean, clean, {.answer = 3, .against = 4}); }),
      HasSubstr("does not tell the texts apart"));
  EXPECT_THAT(message_of<UsageError>([&] { patch_report(*model, clean, corrupt, {.place = kLength}); }),
              HasSubstr("it has the places 0 to 6"));
  auto longer = corrupt;
  longer.source_tokens.emplace_back("y");
  EXPECT_THAT(message_of<UsageError>([&] { patch_report(*model, clean, longer); }),
              HasSubstr("has 7 tokens and the corrupted one 8"));
}

TEST(HeadKinds, AreMeansOfWeights) {
  constexpr int64_t before = 1, L = 4, T = before + 2 * L;
  // Three heads that look at one place each, and one that looks everywhere.
  auto maps = torch::zeros({1, 4, T, T});
  for (int64_t t = 1; t < T; ++t) maps[0][0][t][t - 1] = 1;
  for (int64_t t = before + L; t < T; ++t) {
    maps[0][1][t][t - L] = 1;
    maps[0][2][t][t - L + 1] = 1;
  }
  maps[0][3].fill_(1.0 / T);
  const auto heads = kinds_of_heads(AttentionKind::decoder, {maps, maps.flip({1})}, before, L);
  ASSERT_EQ(heads.size(), 8U);
  const auto expect = [&](size_t i, double previous, double duplicate, double induction) {
    EXPECT_NEAR(heads[i].previous, previous, 1e-6) << i;
    EXPECT_NEAR(heads[i].duplicate, duplicate, 1e-6) << i;
    EXPECT_NEAR(heads[i].induction, induction, 1e-6) << i;
  };
  expect(0, 1, 0, 0);
  expect(1, 0, 1, 0);
  expect(2, 0, 0, 1);
  expect(3, 1.0 / T, 1.0 / T, 1.0 / T);
  expect(5, 0, 0, 1);
  EXPECT_EQ(heads[5].layer, 1);
  EXPECT_EQ(heads[5].head, 1);
}

}  // namespace
}  // namespace zoo::testing
