// Configurations that contradict themselves or their task, and initial weights.

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>

#include "base/error.h"
#include "models/families/model_keys.h"
#include "models/mixers/mixers.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> complaints(const ModelConfig& config) {
  std::vector<std::string> keys;
  validate(config, [&](std::string_view key, std::string_view problem) {
    EXPECT_FALSE(problem.empty());
    keys.emplace_back(key);
  });
  return keys;
}

std::vector<std::string> complaints_after(const std::function<void(ModelConfig&)>& change,
                                          Architecture architecture = Architecture::decoder) {
  auto config = small_config(architecture, Position::rotary);
  change(config);
  return complaints(config);
}

TEST(Validate, FindsContradictions) {
  for (const auto architecture : kArchitectures) {
    for (const auto& config : varied_configs(architecture)) EXPECT_THAT(complaints(config), IsEmpty());
  }
  using Config = ModelConfig;
  EXPECT_THAT(complaints_after([](Config& c) { c.n_heads = 5, c.position = Position::none; }),
              ElementsAre("n_heads"));
  EXPECT_THAT(complaints_after([](Config& c) { c.n_heads = 5, c.head_dim = 8; }), IsEmpty());
  EXPECT_THAT(complaints_after([](Config& c) { c.n_kv_heads = 3; }), ElementsAre("n_kv_heads"));
  EXPECT_THAT(complaints_after([](Config& c) { c.head_dim = 7; }), ElementsAre("position"));
  EXPECT_THAT(complaints_after([](Config& c) { c.rotary.fraction = 0.5; }), ElementsAre("position"));
  EXPECT_THAT(complaints_after([](Config& c) {
                c.head_dim = 2, c.rotary.scaling = RotaryScaling::ntk, c.rotary.factor = 2;
              }),
              ElementsAre("rotary.scaling"));
  EXPECT_THAT(complaints_after([](Config& c) { c.rotary.high_frequency_factor = 1; }),
              ElementsAre("rotary.high_frequency_factor"));
  EXPECT_THAT(complaints_after([](Config& c) { c.position = Position::t5, c.relative_max_distance = 4; }),
              ElementsAre("relative_max_distance"));
  EXPECT_THAT(complaints_after([](Config& c) { c.n_decoder_layers = 3; }), ElementsAre("n_decoder_layers"));
  EXPECT_THAT(complaints_after([](Config& c) { c.n_decoder_layers = 3; }, Architecture::encoder_decoder),
              IsEmpty());
  EXPECT_THAT(complaints_after([](Config& c) { c.share_embeddings = false; }),
              ElementsAre("share_embeddings"));
  EXPECT_THAT(complaints_after([](Config& c) { c.rotary.factor = 8; }), ElementsAre("rotary.factor"));
  EXPECT_THAT(complaints_after([](Config& c) { c.rotary.scaling = RotaryScaling::linear; }),
              ElementsAre("rotary.scaling"));
  EXPECT_THAT(complaints_after([](Config& c) { c.position_offset = 2; }), ElementsAre("position_offset"));
  EXPECT_THAT(complaints_after([](Config& c) { c.position = Position::learned, c.position_offset = 2; }),
              IsEmpty());
  EXPECT_THAT(complaints_after([](Config& c) { c.head_dim = 100, c.rotary.fraction = 0.58; }), IsEmpty());
  EXPECT_THAT(complaints_after([](Config& c) { c.position = Position::t5, c.relative_buckets = 2; }),
              IsEmpty());
  EXPECT_THAT(complaints_after([](Config& c) { c.position = Position::t5, c.relative_buckets = 3; },
                               Architecture::encoder_decoder),
              ElementsAre("relative_buckets"));
  EXPECT_THAT(complaints_after([](Config& c) { c.n_segments = 2; }), ElementsAre("n_segments"));
  EXPECT_THAT(complaints_after([](Config& c) {
                c.d_model = c.n_heads = 1, c.head_dim = 2, c.norm = NormKind::layer_norm_annotated;
              }),
              ElementsAre("norm"));
}

std::string refusal(const ModelConfig& config, const ModelPurpose& purpose) {
  return message_of<ConfigError>([&] { initialized_model(config, purpose); });
}

TEST(MakeModel, RefusesTasksThatTheFamilyCannotDo) {
  const auto ask = [](Architecture architecture, HeadKind head) {
    return refusal(small_config(architecture),
                   {.head = head, .vocab_size = kVocabulary, .n_classes = 3, .start_token = kStartToken});
  };
  EXPECT_THAT(ask(Architecture::encoder, HeadKind::language_modeling), HasSubstr("model.architecture"));
  EXPECT_THAT(ask(Architecture::decoder, HeadKind::masked_language_modeling),
              HasSubstr("model.architecture"));
  EXPECT_THAT(ask(Architecture::encoder_decoder, HeadKind::masked_language_modeling),
              HasSubstr("model.architecture"));
  EXPECT_EQ(ask(Architecture::encoder, HeadKind::classification), "no error");
  EXPECT_EQ(ask(Architecture::decoder, HeadKind::classification), "no error");
}

TEST(MakeModel, RefusesVocabulariesThatDoNotFit) {
  auto config = small_config(Architecture::decoder);
  EXPECT_THAT(refusal(config, {}), HasSubstr("model.vocab_size"));
  config.vocab_size = 10;
  EXPECT_EQ(refusal(config, {.vocab_size = 11}), "no error") << "some tokens have no vectors";
  EXPECT_EQ(refusal(config, {.vocab_size = 9}), "no error");
  EXPECT_THAT(refusal(config, {.head = HeadKind::classification, .vocab_size = 9}), HasSubstr("class"));
  config.n_heads = 5;
  EXPECT_THAT(refusal(config, {.vocab_size = 9}), HasSubstr("model.n_heads"));
}

// What a program's type lacks is said when it is registered, or when its first mixer is made.
TEST(AddedTypes, SayWhatTheyLack) {
  const auto lack = [](MixerType type) {
    Registry<MixerType> types("type of attention");
    return message_of<UsageError>([&] { types.add(std::move(type)); });
  };
  MixerType type;
  EXPECT_THAT(lack(type), HasSubstr("needs a name"));
  type.name = "idle";
  EXPECT_THAT(lack(type), HasSubstr("the type of attention 'idle' lacks make"));
  struct Idle : MixerImpl {
    torch::Tensor forward(const torch::Tensor& x, const AttentionContext&) override { return x; }
  };
  struct Broken : Idle {
    std::unique_ptr<LayerState> new_state(int64_t) const override { return nullptr; }
  };
  type.make = [](const MixerPlace&) { return std::make_shared<Idle>(); };
  EXPECT_THAT(lack(type), HasSubstr("'idle' lacks count"));
  type.count = [](CostAccount&, std::string, const MixerPlace&, const AttentionShape&) {};
  EXPECT_EQ(lack(type), "no error");
  ModelFamily family;
  family.name = "empty";
  EXPECT_THAT(message_of<UsageError>([&] { Registry<ModelFamily>("family").add({family}); }),
              HasSubstr("the family 'empty' lacks make"));

  type.is_added = true;
  const ModelConfig config;
  const auto problem = [&](StackRole role) {
    return message_of<UsageError>([&] { make_mixer(type, {.model = config, .role = role, .layer = 0}); });
  };
  EXPECT_EQ(problem(StackRole::encoder), "no error");
  EXPECT_THAT(problem(StackRole::decoder), HasSubstr("keeps no state"));
  type.make = [](const MixerPlace&) { return std::make_shared<Broken>(); };
  EXPECT_THAT(problem(StackRole::decoder), HasSubstr("'idle': new_state() has returned nothing"));
  type.make = [](const MixerPlace&) { return std::shared_ptr<MixerImpl>(); };
  EXPECT_THAT(problem(StackRole::encoder), HasSubstr("make() has returned nothing"));
}

TEST(Initialization, SameSeedSameWeights) {
  for (const auto architecture : kArchitectures) {
    for (const auto init :
         {Initialization::normal, Initialization::xavier_uniform, Initialization::detr, Initialization::t5}) {
      auto config = small_config(architecture, Position::t5);
      config.init = init;
      const auto weights = [&](uint64_t seed) {
        torch::manual_seed(seed);
        std::vector<torch::Tensor> flat;
        for (const auto& parameter : initialized_model(config, purpose_of(architecture))->parameters()) {
          flat.push_back(parameter.flatten());
        }
        return torch::cat(flat);
      };
      EXPECT_TRUE(torch::equal(weights(3), weights(3)));
      EXPECT_FALSE(torch::equal(weights(3), weights(4)));
      EXPECT_TRUE(weights(3).isfinite().all().item<bool>());
    }
  }
}

/// All parameters and buffers of a model, by name.
torch::OrderedDict<std::string, torch::Tensor> tensors_of(const Model& model) {
  auto tensors = model.named_parameters();
  tensors.update(model.named_buffers());
  return tensors;
}

TEST(BuildModel, MakesTheSameTensorsAndDrawsNoNumbers) {
  const auto next_number = [] { return torch::rand({1}).item<double>(); };
  torch::manual_seed(7);
  const double first = next_number();
  for (const auto architecture : kArchitectures) {
    auto configs = varied_configs(architecture);
    const auto add = [&](const char* mixer) {
      configs.push_back(small_config(architecture));
      configs.back().max_positions = 512;
      configs.back().attention = {Selection(mixer)};
      configs.back().attention.front().options = mixer_types().at(Selection(mixer)).make_options();
    };
    if (architecture != Architecture::encoder_decoder) add("performer");
    if (architecture == Architecture::decoder) add("delta"), add("convolution");
    if (architecture == Architecture::encoder) add("linformer");
    for (const auto& config : configs) {
      SCOPED_TRACE(described(config));
      const auto drawn = initialized_model(config, purpose_of(architecture));
      torch::manual_seed(7);
      const auto built = uninitialized_model(config, purpose_of(architecture));
      EXPECT_EQ(next_number(), first);
      const auto tensors = tensors_of(*built);
      EXPECT_EQ(tensors.keys(), tensors_of(*drawn).keys());
      for (const auto& item : tensors_of(*drawn)) {
        EXPECT_EQ(tensors[item.key()].sizes(), item.value().sizes()) << item.key();
        EXPECT_TRUE(tensors[item.key()].is_cpu()) << item.key();
        EXPECT_EQ(tensors[item.key()].requires_grad(), item.value().requires_grad()) << item.key();
      }
    }
  }
}

double standard_deviation(const torch::Tensor& x) { return x.std().item<double>(); }

TEST(Initialization, HasTheVariancesOfItsRecipe) {
  torch::manual_seed(1);
  auto config = small_config(Architecture::encoder_decoder);
  config.d_model = 128;
  config.d_ff = 512;
  const auto parameter = [&](const std::string& name) {
    return initialized_model(config, purpose_of(config.architecture))->named_parameters()[name];
  };
  config.init = Initialization::normal;
  EXPECT_NEAR(standard_deviation(parameter("encoder.layers.0.self_attention.q.weight")), 0.02, 0.001);
  EXPECT_NEAR(standard_deviation(parameter("encoder.layers.1.feed_forward.down.weight")), 0.01,
              0.0005);  // 1/√4
  EXPECT_EQ(parameter("encoder.layers.0.self_attention.q.bias").abs().max().item<float>(), 0);
  config.init = Initialization::xavier_uniform;
  EXPECT_NEAR(parameter("encoder.layers.0.feed_forward.up.weight").abs().max().item<double>(),
              std::sqrt(6.0 / (128 + 512)), 1e-3);
  EXPECT_NEAR(standard_deviation(parameter("token_embedding.weight")), 1 / std::sqrt(128.0), 0.005);
  config.init = Initialization::t5;
  EXPECT_NEAR(standard_deviation(parameter("encoder.layers.0.self_attention.q.weight")),
              1 / std::sqrt(128.0 * 32), 1e-3);
  EXPECT_NEAR(standard_deviation(parameter("encoder.layers.0.self_attention.k.weight")), 1 / std::sqrt(128.0),
              3e-3);
  EXPECT_NEAR(standard_deviation(parameter("encoder.layers.0.feed_forward.down.weight")),
              1 / std::sqrt(512.0), 1e-3);
}

// Matrices that are stacked in one parameter have the bounds that they have as parameters of their own: each
// depends on the rows of its part, not on those of the whole.
TEST(Initialization, PartsOfAFusedProjectionAreDrawnOneByOne) {
  torch::manual_seed(1);
  auto config = small_config(Architecture::decoder);
  config.d_model = 64;
  config.n_heads = 4;
  config.n_kv_heads = 1;
  config.d_ff = 256;
  config.activation = Activation::swiglu;
  config.init = Initialization::xavier_uniform;
  config.projection = Projection::fused;
  config.gate = GateProjection::fused;
  const auto parameters = initialized_model(config, purpose_of(config.architecture))->named_parameters();
  const auto expect_bounds = [&](const std::string& name, const std::vector<int64_t>& parts) {
    const auto weight = parameters["decoder.layers.0." + name];
    int64_t first = 0;
    for (const int64_t n : parts) {
      const double bound = std::sqrt(6.0 / static_cast<double>(n + 64));
      const auto largest = weight.narrow(0, first, n).abs().max().item<double>();
      EXPECT_LE(largest, bound) << name << " from row " << first;
      EXPECT_GT(largest, 0.98 * bound) << name << " from row " << first;
      first += n;
    }
    EXPECT_EQ(first, weight.size(0));
  };
  expect_bounds("self_attention.qkv.weight", {64, 16, 16});
  expect_bounds("feed_forward.gate_up.weight", {256, 256});
}

// In a new model all tokens are about equally likely.
TEST(Initialization, FreshModelsAreUncertain) {
  for (const auto architecture : kArchitectures) {
    torch::manual_seed(2);
    const auto model = initialized_model(small_config(architecture), purpose_of(architecture));
    const auto batch = small_batch(architecture, {tokens(8, 12), {}});
    const auto loss =
        torch::nn::functional::cross_entropy(model->logits(model->features(batch)), batch.targets);
    EXPECT_NEAR(loss.item<double>(), std::log(double{kVocabulary}), 0.1);
  }
}

}  // namespace
}  // namespace zoo
