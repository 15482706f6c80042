// Activations that are read and replaced in forward passes.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/embedders/resnet.h"
#include "models/observation_scope.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTexts = 2, kSource = 7, kTarget = 5;

/// Keeps copies of everything, and replaces what `change` says.
class Witness final : public ActivationObserver {
 public:
  using Change = std::function<torch::Tensor(const ActivationPlace&, const torch::Tensor&)>;
  explicit Witness(Change change = nullptr) : change_(std::move(change)) {}
  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override {
    seen[place.name()] = x.clone();
    return change_ ? change_(place, x) : x;
  }

  std::map<std::string, torch::Tensor> seen;

 private:
  Change change_;
};

Batch some_batch(const ModelConfig& config) {
  return small_batch(config.architecture, {tokens(kTexts, kSource), torch::tensor({kSource, int64_t{3}})},
                     kTarget);
}

std::set<std::string> names_in(const std::map<std::string, torch::Tensor>& seen) {
  std::set<std::string> names;
  for (const auto& [name, x] : seen) names.insert(name);
  return names;
}

std::set<std::string> names_of_stack(const std::string& side, int64_t n_layers, bool has_memory) {
  std::set<std::string> names{side + "residual." + std::to_string(n_layers)};
  if (has_memory) names.insert(side + "memory");
  for (int64_t layer = 0; layer < n_layers; ++layer) {
    names.insert(side + "residual." + std::to_string(layer));
    std::vector<std::string> parts{"attention.heads", "attention", "feed_forward"};
    if (has_memory) parts.insert(parts.end(), {"cross_attention.heads", "cross_attention"});
    for (const auto& part : parts) names.insert(side + "layers." + std::to_string(layer) + "." + part);
  }
  return names;
}

TEST(Observation, SeesEveryNamedActivationAndChangesNoBit) {
  for_each_model(kArchitectures, [&](const ModelConfig& config, Model& model) {
    const auto batch = some_batch(config);
    const auto before = model.features(batch);
    Witness witness;
    torch::Tensor observed;
    {
      const ObservationScope scope(model, witness);
      observed = model.features(batch);
    }
    EXPECT_TRUE(torch::equal(observed, before));
    EXPECT_TRUE(torch::equal(model.features(batch), before));
    const bool two_sides = config.architecture == Architecture::encoder_decoder;
    auto expected = names_of_stack(two_sides ? "encoder." : "", 2, false);
    if (two_sides) expected.merge(names_of_stack("decoder.", 2, true));
    EXPECT_EQ(names_in(witness.seen), expected);
    const auto& heads =
        witness.seen.at((two_sides ? "decoder." : "") + std::string("layers.1.attention.heads"));
    EXPECT_EQ(heads.sizes(), (torch::IntArrayRef{kTexts, two_sides ? kTarget : kSource, config.n_heads,
                                                 config.head_width()}));
  });
}

TEST(Observation, WhatIsAddedToTheStreamIsWhatIsSeen) {
  for_each_model(std::array{Architecture::decoder}, [&](const ModelConfig& config, Model& model) {
    if (config.norm_placement == NormPlacement::post) return;
    Witness witness;
    const ObservationScope scope(model, witness);
    model.features(some_batch(config));
    auto& seen = witness.seen;
    EXPECT_TRUE(close(seen["residual.1"],
                      seen["residual.0"] + seen["layers.0.attention"] + seen["layers.0.feed_forward"]));
  });
}

TEST(Observation, WithoutItsHeadsAttentionAddsItsBiasAlone) {
  const torch::NoGradGuard no_grad;
  for (const std::string mixer : {"full", "{type: window, size: 3}", "linear", "performer", "delta"}) {
    SCOPED_TRACE(mixer);
    auto config = small_config(Architecture::decoder);
    ConfigFile::parse("attention: " + mixer, "test").read(config);
    const auto model = random_model(config);
    Witness witness([](const ActivationPlace& place, const torch::Tensor& x) {
      return place.kind == ActivationKind::attention_heads ? torch::zeros_like(x) : x;
    });
    const ObservationScope scope(*model, witness);
    model->features(some_batch(config));
    const auto& added = witness.seen.at("layers.1.attention");
    EXPECT_TRUE(torch::equal(added, added[0][0].expand_as(added)));
    EXPECT_GT(added.abs().max().item<float>(), 0);
  }
}

TEST(Observation, ReadsTokenByTokenAsInOnePass) {
  const torch::NoGradGuard no_grad;
  for (const auto architecture : kGenerativeArchitectures) {
    const auto config = small_config(architecture);
    const auto model = random_model(config);
    // The second head of each self-attention is switched off.
    Witness witness([](const ActivationPlace& place, const torch::Tensor& x) {
      if (place.kind != ActivationKind::attention_heads || place.side == StackSide::encoder) return x;
      auto without = x.clone();
      without.select(2, 1).zero_();
      return without;
    });
    const ObservationScope scope(*model, witness);
    const auto source = tokens(kTexts, kSource), read = tokens(kTexts, kTarget);
    auto* const writer = model->generative();
    const auto whole = [&] {
      auto state = writer->begin({.input = {.ids = source}});
      return writer->forward({.ids = read}, state, LogitsAt::every_token()).view({kTexts, kTarget, -1});
    }();
    auto state = writer->begin({.input = {.ids = source}});
    std::vector<torch::Tensor> columns;
    for (int64_t t = 0; t < kTarget; ++t)
      columns.push_back(writer->forward({.ids = read.narrow(1, t, 1)}, state));
    EXPECT_TRUE(close(torch::stack(columns, 1), whole));
  }
}

TEST(Observation, AReplacedMemoryIsWhatTheDecoderReads) {
  const torch::NoGradGuard no_grad;
  const auto config = small_config(Architecture::encoder_decoder);
  const auto model = random_model(config);
  const auto batch = some_batch(config), other = some_batch(config);
  Witness first;
  {
    const ObservationScope scope(*model, first);
    model->features(batch);
  }
  const auto memory = first.seen.at("decoder.memory");
  Witness second([&](const ActivationPlace& place, const torch::Tensor& x) {
    return place.kind == ActivationKind::memory ? memory : x;
  });
  auto mixed = other;
  mixed.decoder = batch.decoder;
  const ObservationScope scope(*model, second);
  // Both hide the same padding, and both decoders read the same tokens.
  const auto replaced = model->features(mixed);
  second = Witness();
  EXPECT_TRUE(close(replaced, model->features(batch)));
  EXPECT_FALSE(close(model->features(mixed), replaced));
}

TEST(Observation, RecomputesNothingAndTrainsAsBefore) {
  auto config = small_config(Architecture::decoder);
  const auto model = random_model(config);
  model->train();
  model->checkpoint_activations(ActivationCheckpointing::every_layer);
  const auto batch = some_batch(config);
  const auto gradients = [&] {
    model->zero_grad();
    model->features(batch).square().sum().backward();
    std::vector<torch::Tensor> all;
    for (const auto& parameter : model->parameters())
      if (parameter.grad().defined()) all.push_back(parameter.grad().flatten().clone());
    return torch::cat(all);
  };
  const auto before = gradients();
  int64_t n_calls = 0;
  Witness witness([&](const ActivationPlace& place, const torch::Tensor& x) {
    n_calls += place.name() == "layers.0.attention" ? 1 : 0;
    return x;
  });
  {
    const ObservationScope scope(*model, witness);
    EXPECT_TRUE(torch::allclose(gradients(), before));
  }
  EXPECT_EQ(n_calls, 1);
  EXPECT_TRUE(torch::equal(gradients(), before));
}

TEST(Observation, OneScopeAtATimeAndOnlyOfNamedLayers) {
  const auto model = random_model(small_config(Architecture::decoder));
  Witness witness;
  {
    const ObservationScope scope(*model, witness);
    EXPECT_THAT(message_of<UsageError>([&] { const ObservationScope again(*model, witness); }),
                HasSubstr("observed already"));
    const auto copy = std::dynamic_pointer_cast<Model>(model->clone());
    ASSERT_TRUE(copy);
    copy->features(some_batch(small_config(Architecture::decoder)));
    EXPECT_TRUE(witness.seen.empty()) << "a copy is not observed";
  }
  {
    const ObservationScope scope(*model, witness);
  }
  ModelConfig resnet;
  resnet.architecture = Selection("resnet", ResnetConfig{.depth = ResnetDepth::layers_18, .width = 6});
  const auto other = random_model(resnet, {.head = HeadKind::classification,
                                           .n_classes = 5,
                                           .image = {.channels = 3, .height = 16, .width = 24}});
  EXPECT_THAT(message_of<UsageError>([&] { const ObservationScope scope(*other, witness); }),
              HasSubstr("no activations with names"));
}

TEST(ActivationPlaces, AreFoundByTheirNames) {
  for (const std::string name :
       {"residual.0", "residual.12", "layers.3.attention", "layers.3.attention.heads",
        "layers.10.feed_forward", "decoder.layers.0.cross_attention.heads",
        "decoder.layers.1.cross_attention", "encoder.residual.2", "decoder.memory"}) {
    const auto place = activation_place(name);
    ASSERT_TRUE(place) << name;
    EXPECT_EQ(place->name(), name);
  }
  for (const std::string name :
       {"", "residual", "residual.", "residual.-1", "residual.x", "residual.1.2", "layers.3", "layers.3.",
        "layers.3.heads", "layers.x.attention", "encoder", "memory.1", "layers.3.attention.head",
        "layers.99999999999999999999.attention"}) {
    EXPECT_FALSE(activation_place(name)) << name;
  }
}

}  // namespace
}  // namespace zoo::testing
