// The keys of `model:` that a part of a layer looks at: each part alone, because another part of the layer
// may look at the same key.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/random.h"
#include "io/config/config_file.h"
#include "layers/attention/attention.h"
#include "models/families/model_keys.h"
#include "models/mixers/mixers.h"
#include "models/stack.h"
#include "tests/support/key_change.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::UnorderedElementsAreArray;
using Keys = std::vector<std::string>;

/// A configuration in which all keys of attentions matter: queries and keys are normalised.
ModelConfig config_for(StackRole role, const std::string& keys) {
  auto config = small_config(role == StackRole::encoder ? Architecture::encoder : Architecture::decoder);
  config.max_positions = 20;
  config.qk_norm = true;
  ConfigFile::parse("{" + keys + "}", "test").read(config);
  return config;
}

/// Parameters, buffers and outputs of a module with random weights, in evaluation and in training.
template <class Forward>
Made made_by_module(torch::nn::Module& module, Forward forward) {
  Made made;
  const torch::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) made.emplace_back(item.key(), item.value().clone());
  for (const auto& item : module.named_buffers()) made.emplace_back(item.key(), item.value().clone());
  torch::manual_seed(2);
  for (auto& parameter : module.parameters()) parameter.normal_(parameter.dim() == 1 ? 0.5 : 0.0, 0.3);
  for (const bool training : {false, true}) {
    module.train(training);
    const RandomScope random({3});
    made.emplace_back("output", forward());
  }
  return made;
}

torch::Tensor some_vectors(int64_t n, int64_t width) {
  torch::manual_seed(4);
  return torch::randn({2, n, width});
}

/// The keys that the first layer's mixer looks at.
Keys keys_of_mixer(StackRole role, const std::string& keys) {
  return keys_with_effect(config_for(role, keys), [&](const ModelConfig& config) {
    validate(config, [](std::string_view key, std::string_view problem) {
      throw ConfigError(std::string(key) + " " + std::string(problem));
    });
    torch::manual_seed(1);
    const auto mixer =
        mixer_types().at(config.attention_of(0)).make({.model = config, .role = role, .layer = 0});
    constexpr int64_t n = 16;
    const PositionRange range(0, n);
    const auto ids = torch::arange(n).remainder(5).repeat({2, 1});
    const auto x = some_vectors(n, config.d_model);
    return made_by_module(*mixer, [&] {
      return mixer->forward(
          x, {.mask = role == StackRole::encoder ? Mask() : Mask::causal(), .range = &range, .ids = ids});
    });
  });
}

Keys joined(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

/// Keys of every mixer that projects queries, keys and values; then of those that score pairs.
const Keys kProjecting = {"d_model", "n_heads",  "head_dim", "projection",
                          "bias",    "qkv_bias", "key_bias", "out_bias"};
const Keys kNormalising = {"n_kv_heads", "qk_norm", "qk_norm_width", "norm", "norm_eps", "norm_unit_offset"};

TEST(MixerKeys, OfAttentionAndItsPatterns) {
  const auto attention =
      joined(joined(kProjecting, kNormalising), {"attention_scale", "attention_softcap", "attention_dropout",
                                                 "qkv_clip", "attention_sinks", "attention_gate"});
  const auto expect = [&](StackRole role, const std::string& keys, const Keys& own) {
    SCOPED_TRACE(keys);
    EXPECT_THAT(keys_of_mixer(role, keys), UnorderedElementsAreArray(joined(attention, own)));
  };
  for (const auto role : {StackRole::encoder, StackRole::decoder}) {
    expect(role, "attention: full", {"position"});
    expect(role, "attention: full, position: shaw, relative_max_distance: 3",
           {"position", "relative_max_distance"});
    Keys of_window = {"attention.size", "attention.dilation", "attention.global", "attention.n_global"};
    if (role == StackRole::encoder) of_window.emplace_back("attention.global_projections");
    expect(role, "attention: {type: window, size: 2, dilation: 2, global: first}", of_window);
    expect(role, "attention: {type: strided, stride: 4}", {"attention.stride"});
    expect(role, "attention: {type: fixed, stride: 4}", {"attention.stride", "attention.n_summary"});
    expect(
        role, "attention: {type: blocks, size: 2, n_random: 1, window: 0}",
        {"attention.size", "attention.window", "attention.n_global", "attention.n_random", "attention.seed"});
  }
  EXPECT_THAT(keys_of_mixer(StackRole::encoder, "attention: {type: linformer, k: 5}"),
              UnorderedElementsAreArray(joined(joined(kProjecting, kNormalising),
                                               {"attention_scale", "attention_softcap", "attention_dropout",
                                                "max_positions", "attention.k", "attention.share"})));
}

TEST(MixerKeys, OfMixersWithoutScores) {
  for (const auto role : {StackRole::encoder, StackRole::decoder}) {
    EXPECT_THAT(keys_of_mixer(role, "attention: linear"),
                UnorderedElementsAreArray(joined(kProjecting, kNormalising)));
    EXPECT_THAT(keys_of_mixer(role, "attention: {type: performer, n_features: 9}"),
                UnorderedElementsAreArray(
                    joined(joined(kProjecting, kNormalising), {"attention_scale", "attention.n_features"})));
  }
  EXPECT_THAT(keys_of_mixer(StackRole::decoder, "attention: {type: delta}"),
              UnorderedElementsAreArray(joined(
                  kProjecting, {"norm_eps", "attention.conv", "attention.gated", "attention.output_gate",
                                "attention.negative_eigenvalues", "attention.key_heads"})));
  EXPECT_THAT(keys_of_mixer(StackRole::decoder, "attention: convolution"),
              UnorderedElementsAreArray({"d_model", "bias", "qkv_bias", "out_bias", "attention.taps"}));
  EXPECT_THAT(keys_of_mixer(StackRole::encoder, "attention: {type: mlp, length: 16}"),
              UnorderedElementsAreArray(
                  {"d_model", "bias", "activation_dropout", "attention.length", "attention.d_tokens"}));
}

TEST(MixerKeys, OfAttentionOverAMemory) {
  const auto keys = keys_with_effect(
      config_for(StackRole::decoder_with_memory, "architecture: encoder_decoder"),
      [](const ModelConfig& config) {
        validate(config, [](std::string_view key, std::string_view problem) {
          throw ConfigError(std::string(key) + " " + std::string(problem));
        });
        torch::manual_seed(1);
        Attention attention(cross_attention_options(config));
        const auto x = some_vectors(5, config.d_model), memory = some_vectors(7, config.d_model);
        return made_by_module(*attention, [&] { return attention(x, {.memory = memory}); });
      });
  EXPECT_THAT(keys, UnorderedElementsAreArray(
                        joined(joined(kProjecting, kNormalising),
                               {"attention_scale", "attention_softcap", "attention_dropout", "qkv_clip"})));
}

}  // namespace
}  // namespace zoo::testing
