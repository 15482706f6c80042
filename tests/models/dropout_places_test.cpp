// Dropout is at every place where the papers have it: each part of a model is looked at alone.

#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "io/config/config_file.h"
#include "layers/attention/attention.h"
#include "models/embedder.h"
#include "models/embedders/patch_embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/mixers/mixers.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

constexpr double kRate = 0.4;

/// `dropped` is `plain` with a share of about kRate of its numbers set to 0, and the others made larger.
void expect_dropped(const torch::Tensor& dropped, const torch::Tensor& plain) {
  ASSERT_EQ(dropped.sizes(), plain.sizes());
  const auto kept = dropped.ne(0);
  const double n = static_cast<double>(plain.numel());
  EXPECT_NEAR(1 - kept.sum().item<double>() / n, kRate, 4 * std::sqrt(kRate * (1 - kRate) / n));
  EXPECT_TRUE(torch::allclose(dropped, kept * plain / (1 - kRate), 1e-4, 1e-6));
}

template <class Forward>
torch::Tensor in_mode(torch::nn::Module& module, bool training, Forward forward) {
  const torch::NoGradGuard no_grad;
  const RandomScope random({7});
  module.train(training);
  return forward();
}

TEST(DropoutPlaces, VectorsOfPatchesAndOfTheClassToken) {
  for (const bool class_token : {true, false}) {
    PatchEmbedder embedder(PatchEmbedderOptions(kWidth, {.channels = 3, .height = 16, .width = 16}, 4)
                               .class_token(class_token)
                               .dropout(kRate));
    for (auto& parameter : embedder->parameters()) {
      const torch::NoGradGuard no_grad;
      parameter.normal_();
    }
    Batch batch;
    batch.fields = {{"images", torch::randn({8, 3, 16, 16})}};
    const auto vectors = [&] { return embedder->forward(batch).vectors; };
    expect_dropped(in_mode(*embedder, true, vectors), in_mode(*embedder, false, vectors));
  }
}

TEST(DropoutPlaces, VectorsOfTokens) {
  auto config = small_config(Architecture::decoder);
  config.dropout = kRate;
  const auto token = make_token_embedding(config, kVocabulary);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : token->parameters()) parameter.normal_();
  TokenEmbedder embedder(config, token);
  const auto ids = tokens(8, 12);
  const auto vectors = [&] { return embedder({.ids = ids, .range = PositionRange(0, 12)}); };
  expect_dropped(in_mode(*embedder, true, vectors), in_mode(*embedder, false, vectors));
}

// With values of 1 in every row, an attention gives back 1 but for the weights that it drops.
TEST(DropoutPlaces, WhatAClassifierReads) {
  auto config = small_config(Architecture::encoder);
  config.dropout = kRate;
  for (const auto kind : {HeadKind::classification, HeadKind::token_classification}) {
    ModelHead head(config, ModelPurpose{.head = kind, .vocab_size = kVocabulary, .n_classes = 3},
                   TokenEmbedding(nullptr));
    const auto hidden = torch::randn({40, kWidth});
    const auto read = [&] { return head->prepare(hidden); };
    expect_dropped(in_mode(*head, true, read), in_mode(*head, false, read));
    EXPECT_TRUE(torch::equal(in_mode(*head, false, read), in_mode(*head, false, read)));
  }
}

TEST(DropoutPlaces, WeightsOfCrossAttention) {
  auto config = small_config(Architecture::encoder_decoder);
  config.attention_dropout = kRate;
  Attention attention(cross_attention_options(config));
  const auto x = torch::randn({2, 5, kWidth}), memory = torch::randn({2, 7, kWidth});
  const auto out = [&] { return attention(x, {.memory = memory}); };
  EXPECT_FALSE(close(in_mode(*attention, true, out), in_mode(*attention, false, out)));
  config.attention_dropout = 0;
  Attention without(cross_attention_options(config));
  const auto plain = [&] { return without(x, {.memory = memory}); };
  EXPECT_TRUE(torch::equal(in_mode(*without, true, plain), in_mode(*without, false, plain)));
}

/// Every mixer with weights to drop.
TEST(DropoutPlaces, WeightsOfEveryMixer) {
  const auto of = [](const std::string& attention, StackRole role) {
    auto config = small_config(role == StackRole::encoder ? Architecture::encoder : Architecture::decoder);
    ConfigFile::parse("attention: " + attention, "test").read(config);
    config.attention_dropout = kRate;
    const MixerPlace place{.model = config, .role = role, .layer = 0};
    return mixer_types().at(place.selection()).make(place);
  };
  for (const auto role : {StackRole::encoder, StackRole::decoder}) {
    for (const char* attention :
         {"full", "{type: window, size: 3}", "{type: strided, stride: 3}", "{type: fixed, stride: 4}",
          "{type: blocks, size: 3}", "{type: window, size: 3, global: first}", "{type: linformer, k: 6}"}) {
      if (role == StackRole::decoder && std::string(attention).find("linformer") != std::string::npos)
        continue;
      SCOPED_TRACE(::testing::Message() << attention << ", " << name_of(role));
      const auto mixer = of(attention, role);
      const auto x = torch::randn({2, 20, kWidth});
      const PositionRange range(0, 20);
      const auto out = [&] {
        return mixer->forward(
            x, {.mask = role == StackRole::encoder ? Mask() : Mask::causal(), .range = &range});
      };
      const auto plain = in_mode(*mixer, false, out), dropped = in_mode(*mixer, true, out);
      EXPECT_FALSE(close(dropped, plain));
      EXPECT_TRUE(torch::equal(in_mode(*mixer, true, out), dropped)) << "of the same seeds";
    }
  }
}

}  // namespace
}  // namespace zoo::testing
