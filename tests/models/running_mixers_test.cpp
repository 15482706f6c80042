// Models whose layers mix positions without softmax over keys: configurations, costs, clones, decoding.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "models/families/model_keys.h"
#include "models/mixers/mixers.h"
#include "models/mixers/performer.h"
#include "models/stack.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests
using ::testing::AllOf;
using ::testing::HasSubstr;

/// `model:` of a file with these keys, on top of small_config().
ModelConfig mixer_config(Architecture architecture, const std::string& attention,
                         Position position = Position::learned) {
  auto config = small_config(architecture, position);
  config.max_positions = 90;
  ConfigFile::parse("attention: " + attention, "test").read(config);
  return config;
}

const std::vector<std::string> kEncoderMixers{"linear",
                                              "performer",
                                              "{type: performer, n_features: 9}",
                                              "{type: linformer, k: 7}",
                                              "{type: linformer, k: 7, share: key_value}",
                                              "{type: linformer, k: 7, share: layer}",
                                              "[full, {type: linformer, k: 5, share: layer}]",
                                              "[{type: linformer, k: 7, share: layer}, "
                                              "{type: linformer, k: 5, share: layer}]",
                                              "[{type: linformer, k: 7, share: layer}, "
                                              "{type: linformer, k: 7}]",
                                              "{type: mlp, length: 90, d_tokens: 9}",
                                              "[{type: mlp, length: 90}, full]",
                                              "{type: disentangled, buckets: 4, max_distance: 9}",
                                              "[{type: disentangled, buckets: 4, max_distance: 9}, "
                                              "{type: disentangled, buckets: 0, max_distance: 5, "
                                              "share_keys: false, norm: false}]",
                                              "[linear, performer]"};
const std::vector<std::string> kDecoderMixers{"linear",
                                              "performer",
                                              "delta",
                                              "{type: delta, conv: 0}",
                                              "{type: delta, conv: 2, gated: false}",
                                              "{type: delta, output_gate: false, key_heads: 2}",
                                              "{type: delta, negative_eigenvalues: true}",
                                              "convolution",
                                              "[{type: convolution, taps: 2}, full]",
                                              "[delta, full]",
                                              "[performer, linear]"};

/// Whether a mixer of the list cannot be in an encoder.
bool sees_only_the_past(const std::string& attention) {
  return attention.find("delta") != attention.npos || attention.find("convolution") != attention.npos;
}

/// Whether all mixers of the list have as many heads of keys as of queries, and no norms of them.
bool has_plain_keys(const std::string& attention) { return attention.find("disentangled") != attention.npos; }

std::vector<ModelConfig> mixer_configs(Architecture architecture) {
  std::vector<ModelConfig> configs;
  const bool encoder = architecture == Architecture::encoder;
  for (const auto& attention : encoder ? kEncoderMixers : kDecoderMixers) {
    if (architecture == Architecture::encoder_decoder && sees_only_the_past(attention)) continue;
    configs.push_back(mixer_config(architecture, attention));
    if (!encoder) configs.push_back(mixer_config(architecture, attention, Position::rotary));
    configs.push_back(configs.back());
    configs.back().bias = false;
    if (!has_plain_keys(attention)) configs.back().n_kv_heads = 2;
    configs.back().head_dim = 8;
    configs.back().projection = Projection::fused;
    if (!sees_only_the_past(attention) && !has_plain_keys(attention)) configs.back().qk_norm = true;
  }
  return configs;
}

void for_each_mixer_model(const std::function<void(const ModelConfig& config, Model& model)>& check) {
  for (const auto architecture : kArchitectures) {
    for (const auto& config : mixer_configs(architecture)) {
      SCOPED_TRACE(described(config) + ", " + to_text(config.attention.front()) + ", " +
                   std::to_string(config.attention.size()));
      check(config, *random_model(config));
    }
  }
}

TEST(MixerModels, CountTheirParameters) {
  for_each_mixer_model([](const ModelConfig& config, Model& model) {
    int64_t n = 0;
    for (const auto& parameter : model.parameters()) n += parameter.numel();
    EXPECT_EQ(model_cost(config, purpose_of(config.architecture), 8).parameters, n);
  });
}

TEST(MixerModels, CountTheBytesOfTheirStates) {
  const torch::NoGradGuard no_grad;
  for_each_mixer_model([](const ModelConfig& config, Model& model) {
    auto* const writer = model.generative();
    const auto cost = model_cost(config, purpose_of(config.architecture), 64);
    if (!writer) {
      EXPECT_EQ(cost.state_bytes, 0);
      return;
    }
    constexpr int64_t n_rows = 3, length = 64;  // all columns of a cache
    const TokenBatch text{.ids = tokens(n_rows, length)};
    auto state = writer->begin({.input = text});
    writer->forward(text, state);
    int64_t bytes = 0;
    for (const auto& layer : state.layers()) bytes += layer->bytes();
    EXPECT_EQ(n_rows * (length * cost.cache_bytes_per_token + cost.state_bytes), bytes);
    EXPECT_GT(cost.state_bytes, 0);
  });
}

// For the backward pass a Linformer keeps the projected keys and values of its slots, and for each token its
// heads' queries and results, keys and values, and the output.
TEST(MixerModels, ALinformerKeepsItsSlots) {
  constexpr double n_rows = 3;
  const auto bytes = [](int64_t k, int64_t length) {
    const auto config =
        mixer_config(Architecture::encoder, "{type: linformer, k: " + std::to_string(k) + "}");
    CostAccount account(CostAccount::Detail::layers);
    mixer_types()
        .at("linformer")
        .count(account, "mixer", {.model = config, .role = StackRole::encoder, .layer = 0},
               {.batch_size = 3, .n_queries = length, .n_keys = length});
    return account.entries().front().activation_bytes;
  };
  EXPECT_DOUBLE_EQ(bytes(9, 20) - bytes(5, 20), n_rows * 2 * 4 * kWidth * kFloatBytes);
  EXPECT_DOUBLE_EQ(bytes(9, 40) - bytes(9, 20), n_rows * 20 * 5 * kWidth * kFloatBytes);
}

TEST(MixerModels, BatchesCostWhatTheirTokensCost) {
  for_each_mixer_model([](const ModelConfig& config, Model&) {
    if (config.architecture == Architecture::encoder_decoder) return;
    // Its vectors of distances are mapped once, whatever the number of rows.
    if (config.attention.front().type == "disentangled") return;
    const auto purpose = purpose_of(config.architecture);
    const double per_token = model_cost(config, purpose, 70).flops_per_token;
    EXPECT_DOUBLE_EQ(forward_flops(config, purpose, {.batch_size = 3, .length = 70, .n_targets = 210}),
                     per_token * 210);
  });
}

/// FLOPs of the matrix products of `work`, as LibTorch calls them.
double products_of(const std::function<void()>& work) {
  static thread_local double flops;
  flops = 0;
  const auto observe = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
    const std::string name = call.name();
    const auto matrix = [&](size_t i) { return call.inputs()[i].toTensor(); };
    if (name == "aten::mm" || name == "aten::bmm" || name == "aten::addmm") {
      const size_t first = name == "aten::addmm" ? 1 : 0;
      flops += 2.0 * static_cast<double>(matrix(first).numel() * matrix(first + 1).size(-1));
    } else if (name == "aten::linalg_solve_triangular") {
      flops += static_cast<double>(matrix(1).numel() * matrix(0).size(-1));
    }
    return nullptr;
  };
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(observe).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return flops;
}

// In float64, in which all products are LibTorch's.
TEST(MixerModels, CountTheirMatrixProducts) {
  const torch::NoGradGuard no_grad;
  for_each_mixer_model([](const ModelConfig& config, Model&) {
    if (config.architecture == Architecture::encoder_decoder) return;
    const bool encoder = config.architecture == Architecture::encoder;
    const auto role = encoder ? StackRole::encoder : StackRole::decoder;
    for (const int64_t length : {1, 20, 64, 70}) {
      for (int64_t layer = 0; layer < std::ssize(config.attention); ++layer) {
        const MixerPlace place{.model = config, .role = role, .layer = layer};
        const auto& type = mixer_types().at(place.selection());
        // Their products are in fused kernels.
        if (type.name == "full" || type.name == "linformer" || type.name == "disentangled") continue;
        SCOPED_TRACE(type.name + ", " + std::to_string(length) + " tokens");
        const auto mixer = type.make(place);
        mixer->to(torch::kFloat64);
        const PositionRange range(0, length);
        Stack stack(config, role);
        const auto rotary = stack->rotary ? stack->rotary(range, torch::kCPU) : RotaryTable{};
        const auto x = torch::randn({2, length, config.d_model}, torch::kFloat64);
        const double flops = products_of([&] {
          mixer->forward(x, {.mask = encoder ? Mask() : Mask::causal(), .range = &range, .rotary = &rotary});
        });
        CostAccount account(CostAccount::Detail::totals);
        type.count(account, "", place, {.batch_size = 2, .n_queries = length, .n_keys = length});
        EXPECT_DOUBLE_EQ(account.flops(), flops);
      }
    }
  });
}

TEST(MixerModels, CloneThemselvesAndEveryPart) {
  const torch::NoGradGuard no_grad;
  for_each_mixer_model([](const ModelConfig& config, Model& model) {
    const auto batch = small_batch(config.architecture, {.ids = tokens(2, 6)});
    const auto scores = [&](Model& any) { return any.logits(any.features(batch)); };
    const auto before = scores(model);
    const auto clone = std::dynamic_pointer_cast<Model>(model.clone());
    for (const auto& item : model.named_modules("model", /*include_self=*/true)) {
      SCOPED_TRACE(item.key());
      const auto copy = item.value()->clone();
      ASSERT_EQ(copy->parameters().size(), item.value()->parameters().size());
      for (size_t i = 0; i < copy->parameters().size(); ++i)
        EXPECT_NE(copy->parameters()[i].data_ptr(), item.value()->parameters()[i].data_ptr());
    }
    for (auto& parameter : model.parameters()) parameter.add_(0.1 * torch::randn_like(parameter));
    for (auto& buffer : model.buffers()) buffer.add_(1);
    EXPECT_TRUE(torch::equal(scores(*clone), before));
    EXPECT_FALSE(torch::equal(scores(model), before));
  });
}

TEST(MixerModels, RecomputedLayersHaveTheSameGradients) {
  for_each_mixer_model([](const ModelConfig& config, Model& model) {
    model.train();
    const auto batch = small_batch(config.architecture, {.ids = tokens(2, 70)});
    const auto gradients = [&](ActivationCheckpointing what) {
      model.checkpoint_activations(what);
      model.zero_grad();
      model.logits(model.features(batch)).square().sum().backward();
      std::vector<torch::Tensor> result;
      for (const auto& parameter : model.parameters()) result.push_back(parameter.grad().clone());
      return result;
    };
    const auto plain = gradients(ActivationCheckpointing::none);
    const auto again = gradients(ActivationCheckpointing::every_layer);
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_TRUE(torch::allclose(again[i], plain[i], 1e-4, 1e-5 * plain[i].abs().max().item<double>())) << i;
  });
}

// Prompts of unequal length, pieces, single tokens, copies of rows and rows that begin anew.
TEST(MixerModels, DecodeAsInOnePass) {
  const torch::NoGradGuard no_grad;
  for_each_mixer_model([](const ModelConfig& config, Model& model) {
    auto* const writer = model.generative();
    if (!writer || config.architecture == Architecture::encoder_decoder) return;
    std::vector<torch::Tensor> rows;  // what each row has read
    const auto expect_last = [&](const torch::Tensor& logits) {
      for (size_t b = 0; b < rows.size(); ++b) {
        const Batch whole{.input = {.ids = rows[b].unsqueeze(0)}};
        EXPECT_TRUE(close(logits[static_cast<int64_t>(b)], model.logits(model.features(whole))[-1], 1e-3))
            << "row " << b << " of " << rows[b].numel() << " tokens";
      }
    };
    const auto read = [&](DecodingState& state, const std::vector<int64_t>& counts) {
      const int64_t most = *std::ranges::max_element(counts);
      const TokenBatch more{.ids = tokens(std::ssize(counts), most), .lengths = torch::tensor(counts)};
      for (size_t b = 0; b < counts.size(); ++b)
        rows[b] = torch::cat({rows[b], more.ids[static_cast<int64_t>(b)].narrow(0, 0, counts[b])});
      expect_last(writer->forward(more, state));
    };
    const TokenBatch prompts{.ids = tokens(3, 67), .lengths = torch::tensor({67, 3, 20})};
    for (int64_t b = 0; b < 3; ++b)
      rows.push_back(prompts.ids[b].narrow(0, 0, prompts.lengths[b].item<int64_t>()));
    DecodingState state;
    expect_last(writer->prefill({.input = prompts}, state));
    read(state, {1, 1, 1});
    read(state, {1, 5, 66});
    state.reorder({1, 0, 1});
    rows = {rows[1], rows[0], rows[1]};
    read(state, {1, 1, 1});
    auto kept = state.lengths();
    kept[1] = 0;
    state.truncate(kept);
    rows[1] = rows[1].narrow(0, 0, 0);
    read(state, {2, 4, 1});
  });
}

// Only the matrices of linear maps change their format.
TEST(MixerModels, DecodeWithWeightsInOtherFormats) {
  const torch::NoGradGuard no_grad;
  for (const auto format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    for_each_mixer_model([&](const ModelConfig& config, Model& model) {
      auto* const writer = model.generative();
      if (!writer || config.architecture == Architecture::encoder_decoder) return;
      store_weights(model, format);
      const auto text = tokens(2, 8);
      DecodingState state;
      writer->prefill({.input = {.ids = text.narrow(1, 0, 5)}}, state);
      const auto logits = writer->forward({.ids = text.narrow(1, 5, 3)}, state);
      const auto whole = model.logits(model.features({.input = {.ids = text}})).view({2, 8, -1});
      EXPECT_TRUE(close(logits, whole.select(1, 7), 1e-2));
    });
  }
}

TEST(MixerModels, InitialValuesSurviveInitialization) {
  for (const auto init : {Initialization::normal, Initialization::xavier_uniform, Initialization::t5}) {
    torch::manual_seed(4);
    auto config = mixer_config(Architecture::decoder, "[delta, performer]");
    config.init = init;
    const auto model = initialized_model(config, purpose_of(config.architecture));
    const auto parameters = model->named_parameters();
    const auto layer = std::string("decoder.layers.0.self_attention.");
    EXPECT_GT(parameters[layer + "A_log"].exp().max().item<double>(), 1);
    EXPECT_LT(parameters[layer + "dt_bias"].max().item<double>(), -2);
    EXPECT_NEAR(parameters[layer + "conv.weight"].std().item<double>(), 0.5 / std::sqrt(3.0), 0.03);
    EXPECT_TRUE(parameters[layer + "norm.weight"].eq(1).all().item<bool>());
    const auto w = model->named_buffers()["decoder.layers.1.self_attention.features"];
    EXPECT_NEAR(w.square().sum(1).mean().item<double>(), kWidth / 4.0, 2);

    auto encoder = mixer_config(Architecture::encoder, "{type: linformer, k: 50, share: layer}");
    encoder.init = init;
    const auto e = initialized_model(encoder, purpose_of(encoder.architecture))
                       ->named_parameters()["encoder.linformer_50.keys"];
    EXPECT_NEAR(e.std().item<double>(), 1 / std::sqrt(50.0), 0.01);
  }
}

// The random features follow the seed, as weights do, and no two layers have the same.
TEST(MixerModels, RandomFeaturesFollowTheSeed) {
  const auto config = mixer_config(Architecture::decoder, "performer");
  const auto features = [&](uint64_t seed, int64_t layer) {
    torch::manual_seed(seed);
    const auto model = initialized_model(config, purpose_of(config.architecture));
    return model->named_buffers()["decoder.layers." + std::to_string(layer) + ".self_attention.features"]
        .clone();
  };
  EXPECT_TRUE(torch::equal(features(1, 0), features(1, 0)));
  EXPECT_FALSE(torch::equal(features(1, 0), features(2, 0)));
  EXPECT_FALSE(torch::equal(features(1, 0), features(1, 1)));
}

// ---- configurations

std::string mixer_refusal(Architecture architecture, const std::string& attention,
                          const std::function<void(ModelConfig&)>& change = {}) {
  return message_of<ConfigError>([&] {
    auto config = mixer_config(architecture, attention);
    if (change) change(config);
    initialized_model(config, purpose_of(config.architecture));
  });
}

TEST(MixerModels, RefuseInOneLineWhatDoesNotFit) {
  using Config = ModelConfig;
  EXPECT_THAT(mixer_refusal(Architecture::decoder, "{type: linformer, k: 8}"),
              HasSubstr("model.attention: linformer cannot be causal"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder_decoder, "[full, {type: linformer, k: 8}]"),
              HasSubstr("linformer cannot be causal"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder, "linformer"),
              HasSubstr("k 256 is more than max_positions 90"));
  EXPECT_THAT(mixer_refusal(Architecture::decoder, "disentangled"), HasSubstr("it is for encoders"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder, "{type: disentangled, buckets: 3}"),
              HasSubstr("buckets must be 0, or at least 4"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder,
                            "{type: disentangled, content_to_position: false, "
                            "position_to_content: false}"),
              HasSubstr("compares with no distance"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder, "disentangled", [](ModelConfig& c) { c.qk_norm = true; }),
              HasSubstr("leave out model.qk_norm"));
  EXPECT_THAT(mixer_refusal(Architecture::decoder, "{type: mlp, length: 8}"),
              HasSubstr("mlp cannot be causal"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder, "mlp"), HasSubstr("mlp needs the number of tokens"));
  EXPECT_THAT(mixer_refusal(Architecture::encoder, "[linear, delta]"), HasSubstr("it is for decoders"));
  EXPECT_THAT(mixer_refusal(Architecture::decoder, "{type: delta, key_heads: 3}"),
              HasSubstr("n_heads 4 is not a multiple of key_heads 3"));
  EXPECT_THAT(mixer_refusal(Architecture::decoder, "{type: delta, conv: -1}"), HasSubstr("conv"));
  EXPECT_THAT(mixer_refusal(Architecture::decoder, "{type: performer, n_features: 0}"),
              HasSubstr("n_features"));
  for (const char* const attention : {"linear", "performer", "delta"}) {
    SCOPED_TRACE(attention);
    for (const auto position : {Position::alibi, Position::t5, Position::shaw}) {
      EXPECT_THAT(mixer_refusal(Architecture::decoder, attention, [&](Config& c) { c.position = position; }),
                  AllOf(HasSubstr(name_of(position)), HasSubstr("set model.position to")));
    }
    EXPECT_THAT(mixer_refusal(Architecture::decoder, attention, [](Config& c) { c.attention_dropout = 0.1; }),
                HasSubstr("model.attention_dropout"));
  }
  for (const char* const attention : {"linear", "delta"}) {
    EXPECT_THAT(mixer_refusal(Architecture::decoder, attention, [](Config& c) { c.attention_scale = 1; }),
                HasSubstr("model.attention_scale"));
  }
  EXPECT_THAT(mixer_refusal(Architecture::encoder, "{type: linformer, k: 8}",
                            [](Config& c) { c.position = Position::rotary; }),
              HasSubstr("none, sinusoidal or learned"));
  EXPECT_EQ(mixer_refusal(Architecture::encoder, "{type: linformer, k: 8}",
                          [](Config& c) { c.attention_dropout = 0.1; }),
            "no error");
}

TEST(MixerModels, SayWhetherTheyHaveMaps) {
  const auto reason = [](const std::string& attention) {
    return why_no_maps(mixer_config(Architecture::decoder, attention)).value_or("");
  };
  EXPECT_EQ(reason("[linear, performer]"), "");
  EXPECT_EQ(reason("full"), "");
  EXPECT_THAT(reason("[full, delta]"), HasSubstr("layer 1 is of the type delta"));
  EXPECT_THAT(reason("linformer"), HasSubstr("slots"));
  EXPECT_THAT(reason("mlp"), HasSubstr("places"));
}

TEST(MixerModels, LinformersShareOneProjection) {
  const auto config = mixer_config(Architecture::encoder, "{type: linformer, k: 7, share: layer}");
  const auto model = random_model(config);
  int n_found = 0;
  for (const auto& item : model->named_parameters())
    n_found += item.value().sizes() == torch::IntArrayRef{7, 90};
  EXPECT_EQ(n_found, 1);
  const auto cost = model_cost(config, purpose_of(config.architecture), 8);
  const auto named = [&](const std::string& name) {
    return std::ranges::count(cost.layers, name, &LayerCost::name);
  };
  EXPECT_EQ(named("encoder.linformer_7"), 1);
  const auto batch = small_batch(config.architecture, {.ids = tokens(2, 6)});
  const torch::NoGradGuard no_grad;
  const auto before = model->features(batch);
  model->named_parameters()["encoder.linformer_7.keys"].mul_(2);
  EXPECT_FALSE(torch::allclose(model->features(batch), before));
  EXPECT_THAT(message_of<DataError>([&] {
                auto longer = mixer_config(Architecture::encoder, "{type: linformer, k: 7}", Position::none);
                random_model(longer)->features(small_batch(longer.architecture, {.ids = tokens(1, 91)}));
              }),
              HasSubstr("91 tokens is longer than model.max_positions, 90"));
}

}  // namespace
}  // namespace zoo
