#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "models/families/folding/esmfold.h"
#include "models/families/folding/fold_flow.h"
#include "models/families/folding/fold_pairs.h"
#include "models/families/model_cost.h"
#include "models/model.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

int64_t real_parameters(const ModelConfig& config, const ModelPurpose& purpose) {
  int64_t n = 0;
  for (const auto& parameter : initialized_model(config, purpose)->parameters()) n += parameter.numel();
  return n;
}

// The variants cover every term of the cost.
std::vector<ModelConfig> variants() {
  std::vector<ModelConfig> list;
  const auto with = [&](auto change) {
    auto config = testing::small_config(Architecture::decoder);
    change(config);
    list.push_back(config);
  };
  with([](ModelConfig&) {});
  for (const auto placement : {NormPlacement::post, NormPlacement::residual_post, NormPlacement::sandwich,
                               NormPlacement::parallel}) {
    with([&](ModelConfig& c) { c.norm_placement = placement; });
  }
  for (const auto position : {Position::none, Position::sinusoidal, Position::rotary, Position::alibi,
                              Position::t5, Position::shaw}) {
    with([&](ModelConfig& c) { c.position = position; });
  }
  with([](ModelConfig& c) { c.norm = NormKind::rms_norm; });
  with([](ModelConfig& c) { c.bias = false; });
  with([](ModelConfig& c) { c.bias = false, c.qkv_bias = true; });
  with([](ModelConfig& c) { c.bias = false, c.out_bias = true; });
  with([](ModelConfig& c) { c.ff_bias = false, c.position_offset = 2; });
  with([](ModelConfig& c) { c.n_kv_heads = 2, c.qk_norm = true, c.head_dim = 10; });
  with([](ModelConfig& c) { c.activation = Activation::swiglu, c.d_ff = 40; });
  with([](ModelConfig& c) { c.activation = Activation::geglu, c.gate = GateProjection::fused; });
  with([](ModelConfig& c) { c.projection = Projection::fused; });
  with([](ModelConfig& c) { c.tie_embeddings = false, c.output_bias = true; });
  with([](ModelConfig& c) { c.embedding_norm = true; });
  return list;
}

/// The same in another family; only encoders have segments.
void turn_into(Architecture architecture, ModelConfig& config) {
  config.architecture = architecture;
  config.n_segments = architecture == Architecture::encoder && config.embedding_norm ? 2 : 0;
}

TEST(ModelCost, CountsTheParametersOfEveryRealModel) {
  for (auto config : variants()) {
    turn_into(Architecture::decoder, config);
    const ModelPurpose generate{.head = HeadKind::language_modeling, .vocab_size = 50};
    EXPECT_EQ(model_cost(config, generate, 8).parameters, real_parameters(config, generate));

    turn_into(Architecture::encoder, config);
    const ModelPurpose fill{.head = HeadKind::masked_language_modeling, .vocab_size = 50};
    EXPECT_EQ(model_cost(config, fill, 8).parameters, real_parameters(config, fill));
    const ModelPurpose classify{.head = HeadKind::classification, .vocab_size = 50, .n_classes = 3};
    EXPECT_EQ(model_cost(config, classify, 8).parameters, real_parameters(config, classify));

    turn_into(Architecture::encoder_decoder, config);
    config.n_decoder_layers = 3;
    const ModelPurpose translate{.head = HeadKind::language_modeling, .vocab_size = 50, .start_token = 1};
    EXPECT_EQ(model_cost(config, translate, 8).parameters, real_parameters(config, translate));
    config.share_embeddings = false;
    EXPECT_EQ(model_cost(config, translate, 8).parameters, real_parameters(config, translate));
  }
}

TEST(ModelCost, CountsTheParametersOfAModelThatFolds) {
  ModelConfig config;
  config.architecture = Selection(
      "esmfold",
      EsmfoldConfig{
          .n_blocks = 2, .residue_width = 24, .pair_width = 12, .residue_heads = 3, .pair_heads = 2});
  model_families().at("esmfold").set_defaults(config);
  config.d_model = 16, config.n_layers = 2, config.n_heads = 2;
  const ModelPurpose fold{.head = HeadKind::none};
  EXPECT_EQ(model_cost(config, fold, 8).parameters, real_parameters(config, fold));
  // Recycling costs as much again, apart from the language model and the heads.
  const PassShape shape{.length = 8};
  const double flops = forward_flops(config, fold, shape);
  auto four = config.architecture.as<EsmfoldConfig>();
  four.passes *= 2;
  config.architecture = Selection("esmfold", four);
  EXPECT_GT(forward_flops(config, fold, shape), 1.5 * flops);
}

TEST(ModelCost, CountsTheParametersOfModelsThatLearnToFold) {
  const ModelPurpose fold{.head = HeadKind::none};
  ModelConfig flow;
  flow.architecture = Selection("fold_flow", FoldFlowConfig{.time_width = 6});
  model_families().at("fold_flow").set_defaults(flow);
  flow.d_model = 16, flow.n_layers = 2, flow.n_heads = 2;
  EXPECT_EQ(model_cost(flow, fold, 8).parameters, real_parameters(flow, fold));
  // Attention grows with the square of the length.
  EXPECT_LT(2 * forward_flops(flow, fold, {.length = 8}), forward_flops(flow, fold, {.length = 16}));
  EXPECT_DOUBLE_EQ(2 * forward_flops(flow, fold, {.length = 8}),
                   forward_flops(flow, fold, {.batch_size = 2, .length = 8}));
  ModelConfig pairs;
  pairs.architecture = Selection("fold_pairs", FoldPairsConfig{.n_blocks = 3, .residue_width = 24});
  EXPECT_EQ(model_cost(pairs, fold, 8).parameters, real_parameters(pairs, fold));
  // With a language model inside.
  LanguageModelConfig language;
  language.model.d_model = 12, language.model.n_layers = 2, language.model.n_heads = 2;
  flow.architecture = Selection("fold_flow", FoldFlowConfig{.time_width = 6, .language_model = language});
  pairs.architecture = Selection(
      "fold_pairs", FoldPairsConfig{.n_blocks = 3, .residue_width = 24, .language_model = language});
  EXPECT_EQ(model_cost(flow, fold, 8).parameters, real_parameters(flow, fold));
  EXPECT_EQ(model_cost(pairs, fold, 8).parameters, real_parameters(pairs, fold));
}

// The cost per token that `zoo inspect` shows agrees with the cost of a batch that the trainer counts.
TEST(ModelCost, ABatchCostsWhatItsTokensCost) {
  constexpr int64_t length = 8;
  for (auto config : variants()) {
    const auto check = [&](const ModelPurpose& purpose, const PassShape& shape, double tokens) {
      EXPECT_DOUBLE_EQ(forward_flops(config, purpose, shape),
                       model_cost(config, purpose, length).flops_per_token * tokens);
    };
    turn_into(Architecture::decoder, config);
    check({.head = HeadKind::language_modeling, .vocab_size = 50},
          {.batch_size = 3, .length = length, .n_targets = 3 * length}, 3 * length);
    turn_into(Architecture::encoder, config);
    check({.head = HeadKind::masked_language_modeling, .vocab_size = 50},
          {.batch_size = 3, .length = length, .n_targets = 3 * length}, 3 * length);
    check({.head = HeadKind::classification, .vocab_size = 50, .n_classes = 3},
          {.batch_size = 3, .length = length, .n_targets = 3}, 3 * length);
    turn_into(Architecture::encoder_decoder, config);
    config.n_decoder_layers = 3;
    check({.head = HeadKind::language_modeling, .vocab_size = 50, .start_token = 1},
          {.batch_size = 3, .length = length, .decoder_length = length, .n_targets = 3 * length},
          2 * 3 * length);
  }
}

// A token of an encoder-decoder is a source token or a target token.
TEST(ModelCost, TheTokensOfTwoSidesShareTheActivations) {
  constexpr int64_t length = 8;
  for (auto config : variants()) {
    config.architecture = Architecture::encoder_decoder;
    const ModelPurpose translate{.head = HeadKind::language_modeling, .vocab_size = 50, .start_token = 1};
    const auto bytes_of_batch = [&](bool shared) {
      config.share_embeddings = shared;
      int64_t bytes = 0;  // of one source and one target of equal length
      const auto cost = model_cost(config, translate, length);
      for (const auto& layer : cost.layers) {
        const bool both = shared && layer.name == "token_embedding";
        bytes += (both ? 2 : 1) * length * layer.activation_bytes_per_token;
      }
      EXPECT_EQ(cost.activation_bytes_per_token * 2 * length, bytes);
      return bytes;
    };
    EXPECT_EQ(bytes_of_batch(true), bytes_of_batch(false));
  }
}

// Keys and values have as many heads as n_kv_heads says, which may be fewer than the heads of the queries.
TEST(ModelCost, CountsTheBytesOfTheRealCache) {
  constexpr int64_t n_rows = 3, length = 32;  // all columns that a new cache has
  testing::for_each_model(testing::kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    auto& writer = *model.generative();
    const TokenBatch tokens{.ids = testing::tokens(n_rows, length)};
    auto state = writer.begin({.input = tokens});
    writer.forward(tokens, state, LogitsAt::last_token());
    int64_t bytes = 0;  // without the memory of an encoder
    for (const auto& layer : state.layers()) bytes += layer->bytes();
    const auto cost = model_cost(config, testing::purpose_of(config.architecture), length);
    EXPECT_EQ(n_rows * (length * cost.cache_bytes_per_token + cost.state_bytes), bytes);
  });
}

// The published counts of feed-forward networks with D = 4096.
TEST(ModelCost, FeedForwardCountsOfTheLiterature) {
  const auto feed_forward = [](Activation activation, int64_t d_ff) {
    ModelConfig config;
    config.d_model = 4096;
    config.n_heads = 32;
    config.n_layers = 1;
    config.bias = false;
    config.activation = activation;
    config.d_ff = d_ff;
    for (const auto& layer : model_cost(config, {.vocab_size = 100}, 8).layers) {
      if (layer.kind == "feed-forward") return layer.parameters;
    }
    return int64_t{0};
  };
  EXPECT_EQ(feed_forward(Activation::gelu, 11008), 2 * 4096 * 11008);      // 90.2 M
  EXPECT_EQ(feed_forward(Activation::swiglu, 11008), 3 * 4096 * 11008);    // 135.3 M
  EXPECT_EQ(feed_forward(Activation::swiglu, 10923), 3LL * 4096 * 10923);  // 8D/3: 134.2 M
}

TEST(ModelCost, AttentionGrowsWithTheLength) {
  const auto config = testing::small_config(Architecture::decoder);
  const ModelPurpose purpose{.vocab_size = 50};
  const double near = model_cost(config, purpose, 100).flops_per_token;
  const double far = model_cost(config, purpose, 200).flops_per_token;
  EXPECT_DOUBLE_EQ(far - near, 2.0 /*layers*/ * 4.0 * 100 * 24);
}

}  // namespace
}  // namespace zoo
