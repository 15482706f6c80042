#include "costs/part_card.h"

#include <algorithm>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/config/layer_types.h"
#include "models/mixers/mixers.h"
#include "models/mixers/window.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PartCard card_of(ProbedPart part, const Selection& selection) {
  return probe(part, selection, {.scaling = std::nullopt});
}
PartCard card_of(ProbedPart part, const std::string& type) {
  const auto types = types_of(part).infos();
  const auto& info = **std::ranges::find(types, type, &TypeInfo::name);
  Selection selection(info.name);
  if (info.make_options) selection.options = info.make_options();
  return card_of(part, selection);
}

/// "decoder causal", …: what fails.
std::vector<std::string> failures(const PartCard& card) {
  std::vector<std::string> result;
  for (const auto& check : card.checks) {
    if (check.holds == Holds::no) result.push_back(check.role + " " + check.name);
  }
  return result;
}

std::string failures_in_words(const PartCard& card) {
  std::string text = card.type + ":";
  for (const auto& check : card.checks) {
    if (check.holds == Holds::no) text += " " + check.role + " " + check.name + ": " + check.says + ";";
  }
  return text;
}

TEST(PartCard, EveryPartOfTheLibraryHolds) {
  for (const auto part :
       {ProbedPart::attention, ProbedPart::norm, ProbedPart::activation, ProbedPart::position}) {
    for (const auto* const type : types_of(part).infos()) {
      if (type->is_added || type->name == "mlp") continue;  // mlp needs a key
      if (type->name == name_of(Position::grid)) continue;  // of pictures only
      const auto card = card_of(part, type->name);
      EXPECT_TRUE(card.all_hold()) << failures_in_words(card);
      EXPECT_FALSE(card.checks.empty()) << type->name;
    }
  }
}

TEST(PartCard, SaysHowFarAMixerSees) {
  const auto reach = [](const Selection& selection) {
    const auto card = card_of(ProbedPart::attention, selection);
    return std::ranges::find(card.checks, "reach", &PartCheck::name)->value;
  };
  EXPECT_EQ(reach(mixer_types().select("full")), 48);
  // Two layers that see eight tokens before each one.
  EXPECT_EQ(reach(Selection("window", WindowConfig{.size = 8})), 17);
}

struct MixerKey {
  Selection attention = Selection("full");
};
void describe(ConfigVisitor& v, MixerKey& key) {
  v.selection("attention", key.attention, mixer_types(), "The mixer.");
}

TEST(PartCard, AMixerForOneLengthIsProbedAtIt) {
  MixerKey key;
  ConfigFile::parse("attention: {type: mlp, length: 24}", "test").read(key);
  const auto card = card_of(ProbedPart::attention, key.attention);
  EXPECT_TRUE(card.all_hold()) << failures_in_words(card);
  EXPECT_EQ(std::ranges::find(card.checks, "reach", &PartCheck::name)->value, 24);
  EXPECT_EQ(std::ranges::count(card.checks, "padding", &PartCheck::name), 0);
}

/// A mean of the inputs, wrong in some way.
enum class Mistake { sees_the_future, sees_padding, forgets };

class MeanState final : public LayerState {
 public:
  void reorder(const torch::Tensor&) override {}
  void join(const LayerState&) override {}
  void truncate(std::span<const int64_t>, std::span<const int64_t>) override {}
  std::unique_ptr<LayerState> copy() const override { return std::make_unique<MeanState>(*this); }
  int64_t bytes() const override { return 0; }
};

class WrongMean final : public Cloneable<WrongMean, MixerImpl> {
 public:
  explicit WrongMean(Mistake mistake) : options(mistake) {}
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext&) override {
    if (options == Mistake::forgets) {  // what came before this call
      const auto counts = torch::arange(1, x.size(1) + 1).to(x.scalar_type()).unsqueeze(1);
      return x.cumsum(1) / counts;
    }
    return x.mean(1, /*keepdim=*/true).expand_as(x);
  }
  std::unique_ptr<LayerState> new_state(int64_t) const override { return std::make_unique<MeanState>(); }

  Mistake options;
};

Selection wrong_mixer(const std::string& name, Mistake mistake) {
  MixerType type;
  type.name = name;
  type.make = [mistake](const MixerPlace&) { return std::make_shared<WrongMean>(mistake); };
  type.count = [](CostAccount&, std::string, const MixerPlace&, const AttentionShape&) {};
  type.validate = [mistake](const MixerPlace& place, const ComplainAboutMixer& complain) {
    const bool is_of_encoders = mistake == Mistake::sees_padding;
    if ((place.role == StackRole::encoder) != is_of_encoders) complain("is for another role");
  };
  mixer_types().add(type);
  return mixer_types().select(name);
}

TEST(PartCard, FindsWhatIsWrongWithAMixer) {
  const auto of = [](const std::string& name, Mistake mistake) {
    auto found = failures(card_of(ProbedPart::attention, wrong_mixer(name, mistake)));
    std::erase_if(found, [](const auto& what) { return what.ends_with(" training"); });  // they learn little
    return found;
  };
  EXPECT_THAT(of("planted_future", Mistake::sees_the_future),
              ElementsAre("decoder causal", "decoder padding", "decoder stepwise", "decoder pieces"));
  EXPECT_THAT(of("planted_padding", Mistake::sees_padding), ElementsAre("encoder padding"));
  EXPECT_THAT(of("planted_state", Mistake::forgets), ElementsAre("decoder stepwise", "decoder pieces"));
}

TEST(PartCard, SaysWhyARoleIsRefused) {
  const auto card = card_of(ProbedPart::attention, wrong_mixer("planted_role", Mistake::forgets));
  ASSERT_EQ(card.refused.size(), 1U);
  EXPECT_EQ(card.refused.front().first, "encoder");
  EXPECT_THAT(card.refused.front().second, HasSubstr("is for another role"));
  EXPECT_THAT(to_json(card)["refused"][0]["reason"], HasSubstr("is for another role"));
}

/// Its gradient is that of another function.
class WrongGradient final : public ActivationFunction {
 public:
  std::string_view name() const override { return "planted_gradient"; }
  torch::Tensor operator()(const torch::Tensor& x) const override { return x + x.square().detach(); }
};

/// Divides by the deviation over all rows of the batch.
class BatchNormFormula final : public NormFormula {
 public:
  std::string_view name() const override { return "planted_company"; }
  bool is_centred() const override { return false; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double) const override {
    return weights.gain * x / x.std({0}, /*unbiased=*/false, /*keepdim=*/true).clamp_min(0.3);
  }
};

/// Its numbers are in no parameter, so a copy has others.
class RandomBias final : public ScoreBiasImpl {
 public:
  explicit RandomBias(int64_t n_heads) : slopes_(torch::rand({n_heads})) {}
  torch::Tensor at(const PositionRange& range, torch::Device) override { return alibi_bias(slopes_, range); }

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>&) const override {
    return std::make_shared<RandomBias>(slopes_.size(0));
  }

 private:
  torch::Tensor slopes_;
};

TEST(PartCard, FindsWhatIsWrongWithAnActivationANormAndPositions) {
  ActivationType activation;
  activation.name = "planted_gradient";
  activation.make = [](const Selection&) { return std::make_shared<WrongGradient>(); };
  activation_types().add(activation);
  EXPECT_THAT(failures(card_of(ProbedPart::activation, "planted_gradient")),
              ElementsAre("decoder gradients", "encoder gradients"));

  NormType norm;
  norm.name = "planted_company";
  norm.make = [](const Selection&) { return std::make_shared<BatchNormFormula>(); };
  norm_types().add(norm);
  EXPECT_THAT(failures(card_of(ProbedPart::norm, "planted_company")),
              ::testing::IsSupersetOf({"decoder company", "encoder company"}));

  PositionType position;
  position.name = "planted_copy";
  position.make_bias = [](const ModelConfig& config, Direction) {
    return std::make_shared<RandomBias>(config.n_heads);
  };
  position_types().add(position);
  EXPECT_THAT(failures(card_of(ProbedPart::position, "planted_copy")),
              ElementsAre("decoder copy", "encoder copy"));
}

/// Says nothing at all.
class Silence final : public NormFormula {
 public:
  std::string_view name() const override { return "planted_silence"; }
  bool is_centred() const override { return false; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double) const override {
    return 0 * weights.gain * x;
  }
};

TEST(PartCard, FindsThatAModelDoesNotLearn) {
  NormType norm;
  norm.name = "planted_silence";
  norm.make = [](const Selection&) { return std::make_shared<Silence>(); };
  norm_types().add(norm);
  EXPECT_THAT(failures(card_of(ProbedPart::norm, "planted_silence")),
              ElementsAre("decoder training", "encoder training"));
}

TEST(PartCard, SaysWhetherTheOrderOfTokensCounts) {
  const auto order = [](ProbedPart part, const std::string& type) {
    const auto card = card_of(part, type);
    const auto is_it = [](const PartCheck& check) {
      return check.name == "order" && check.role == "encoder";
    };
    const auto found = std::ranges::find_if(card.checks, is_it);
    EXPECT_EQ(found->holds, Holds::none) << "a fact";
    const auto json = to_json(card)["checks"][static_cast<size_t>(found - card.checks.begin())];
    EXPECT_TRUE(json["holds"].is_null());
    return found->says;
  };
  EXPECT_EQ(order(ProbedPart::attention, "full"), "two tokens that change places change no other output");
  EXPECT_EQ(order(ProbedPart::position, "alibi"),
            "two tokens that change places change the outputs of others");
}

TEST(PartCard, DependsOnItsSeedAlone) {
  const auto card_with = [](uint64_t seed) {
    return to_json(probe(ProbedPart::norm, norm_types().select("rms_norm"), {.seed = seed, .scaling = {}}));
  };
  const auto card = card_with(1);
  torch::rand({3});
  EXPECT_EQ(card_with(1), card);
  EXPECT_NE(card_with(2), card);
}

TEST(PartCard, MeasuresTheCurvesOfThePart) {
  const ScalingOptions quick{.fewest = 3, .max_flops = 1, .seconds = 0};
  const auto card = probe(ProbedPart::norm, norm_types().select("rms_norm"), {.scaling = quick});
  ASSERT_EQ(card.curves.size(), 1U);
  EXPECT_EQ(card.curves.front().part, ScalingPart::norm);
  EXPECT_EQ(to_json(card)["scaling"].size(), 1U);
}

}  // namespace
}  // namespace zoo
