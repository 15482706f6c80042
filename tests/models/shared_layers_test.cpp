// Layers with the same weights, and tables that are narrower than the layers.

#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "models/families/model_cost.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

const ModelPurpose kMaskedPurpose{.head = HeadKind::masked_language_modeling, .vocab_size = kVocabulary};

ModelConfig with_groups(std::optional<int64_t> layer_groups) {
  auto config = small_config(Architecture::encoder);
  config.n_layers = 5;
  config.layer_groups = layer_groups;
  return config;
}

/// The name of the tensor that a layer has in a model whose layers 0, 1, 2 and 3, 4 are alike.
std::string shared_name(std::string name) {
  const std::string layers = "encoder.layers.";
  if (!name.starts_with(layers)) return name;
  char& number = name[layers.size()];
  number = number < '3' ? '0' : '1';
  return name;
}

// Five layers in two groups: 5 i / 2 of layer i, rounded down.
TEST(SharedLayers, ComputeAsLayersWithEqualWeights) {
  torch::manual_seed(3);
  const auto shared = initialized_model(with_groups(2), kMaskedPurpose),
             single = initialized_model(with_groups(std::nullopt), kMaskedPurpose);
  const auto known = shared->named_parameters();
  EXPECT_TRUE(known.contains("encoder.layers.1.feed_forward.up.weight"));
  EXPECT_FALSE(known.contains("encoder.layers.2.feed_forward.up.weight"));
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : single->named_parameters()) item.value().copy_(known[shared_name(item.key())]);
  }
  Batch batch;
  batch.input.ids = tokens(3, 7);
  const auto loss_of = [&](Model& model) { return model.logits(model.features(batch)).square().mean(); };
  const auto expected = loss_of(*single), found = loss_of(*shared);
  EXPECT_TRUE(torch::allclose(found, expected));
  expected.backward();
  found.backward();
  std::map<std::string, torch::Tensor> sums;
  for (const auto& item : single->named_parameters()) {
    auto& sum = sums[shared_name(item.key())];
    sum = sum.defined() ? sum + item.value().grad() : item.value().grad();
  }
  ASSERT_EQ(sums.size(), known.size());
  for (const auto& item : known)
    EXPECT_TRUE(torch::allclose(item.value().grad(), sums.at(item.key()), 1e-4, 1e-6)) << item.key();
  const auto copy = std::dynamic_pointer_cast<Model>(shared->clone());
  EXPECT_EQ(copy->named_parameters().size(), known.size());
  EXPECT_TRUE(torch::equal(loss_of(*copy), loss_of(*shared)));
}

TEST(SharedLayers, CountOnceAndWorkInEachPlace) {
  const auto shared = model_cost(with_groups(1), kMaskedPurpose, 8),
             single = model_cost(with_groups(std::nullopt), kMaskedPurpose, 8);
  EXPECT_EQ(shared.flops_per_token, single.flops_per_token);
  auto one = with_groups(std::nullopt);
  one.n_layers = 1;
  EXPECT_EQ(shared.parameters, model_cost(one, kMaskedPurpose, 8).parameters);
}

TEST(SharedLayers, AreRefusedWhereLayersDiffer) {
  const auto refusal = [](const ModelConfig& config) {
    return message_of<ConfigError>([&] { initialized_model(config, kMaskedPurpose); });
  };
  EXPECT_EQ(refusal(with_groups(5)), "no error");
  EXPECT_THAT(refusal(with_groups(6)), HasSubstr("6 different layers are more than there are, 5"));
  auto config = with_groups(2);
  config.first_norm = false;
  EXPECT_THAT(refusal(config), HasSubstr("model.layer_groups"));
  config = with_groups(std::nullopt);
  config.score_position = Position::learned;
  EXPECT_THAT(refusal(config), HasSubstr("learned adds nothing to scores"));
  config.position = config.score_position = Position::t5;
  EXPECT_THAT(refusal(config), HasSubstr("position t5 adds to scores already"));
  config = with_groups(std::nullopt);
  config.position = Position::sinusoidal;
  config.sinusoid_layout = SinusoidLayout::half_closed;
  config.embedding_width = 7;
  EXPECT_THAT(refusal(config), HasSubstr("half_closed needs an even width"));
  config = with_groups(std::nullopt);
  config.first_norm = false, config.norm_placement = NormPlacement::post;
  EXPECT_THAT(refusal(config), HasSubstr("model.first_norm"));
  config = with_groups(std::nullopt);
  config.embedding_map = EmbeddingMap::first;
  EXPECT_THAT(refusal(config), HasSubstr("model.embedding_map: has no effect without embedding_width"));
  config = with_groups(std::nullopt);
  config.pooler = false, config.pooler_norm = true;
  EXPECT_THAT(refusal(config), HasSubstr("model.pooler_norm"));
}

TEST(NarrowTables, AreMappedToTheWidthOfLayersAndBack) {
  for (const auto& [architecture, map] : {std::pair(Architecture::encoder, EmbeddingMap::last),
                                          {Architecture::decoder, EmbeddingMap::last},
                                          {Architecture::encoder_decoder, EmbeddingMap::last},
                                          {Architecture::encoder, EmbeddingMap::first},
                                          {Architecture::decoder, EmbeddingMap::first},
                                          {Architecture::encoder_decoder, EmbeddingMap::first}}) {
    auto config = small_config(architecture);
    config.embedding_width = 6;
    config.embedding_map = map;
    config.position = Position::learned;
    const bool fills = architecture == Architecture::encoder;
    const auto head = fills ? HeadKind::masked_language_modeling : HeadKind::language_modeling;
    const ModelPurpose purpose{.head = head, .vocab_size = kVocabulary, .start_token = kStartToken};
    const auto model = initialized_model(config, purpose);
    const auto known = model->named_parameters();
    EXPECT_EQ(known["token_embedding.weight"].sizes(), torch::IntArrayRef({kVocabulary, 6}));
    EXPECT_EQ(known["head.transform.weight"].sizes(), torch::IntArrayRef({6, kWidth}));
    const std::string side = architecture == Architecture::decoder ? "decoder" : "encoder";
    EXPECT_EQ(known[side + "_embedder.position_embedding.weight"].size(1),
              map == EmbeddingMap::first ? kWidth : 6);
    EXPECT_EQ(known.contains(side + "_embedder.embedding_map.bias"), map == EmbeddingMap::last);
    Batch batch;
    batch.input.ids = tokens(2, 5);
    EXPECT_EQ(model->logits(model->features(batch)).size(-1), kVocabulary);
    int64_t n = 0;
    for (const auto& item : known) n += item.value().numel();
    EXPECT_EQ(model_cost(config, purpose, 8).parameters, n);
  }
}

}  // namespace
}  // namespace zoo::testing
