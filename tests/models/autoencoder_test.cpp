// Texts through one vector.

#include "models/families/autoencoder.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "models/families/model_cost.h"
#include "models/observation_scope.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

constexpr int64_t kTexts = 2, kLength = 6, kLabels = 5;

ModelConfig autoencoder_config(int64_t maps = 2) {
  auto config = small_config(Architecture::decoder);
  config.architecture = Selection("autoencoder", AutoencoderConfig{.maps = maps});
  return config;
}

ModelPurpose purpose() {
  return {.head = HeadKind::token_classification, .vocab_size = kVocabulary, .n_classes = kLabels};
}

/// Replaces the stream after the last layer, except at the last token.
class OnlyTheLastStays final : public ActivationObserver {
 public:
  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override {
    if (place.name() != "residual.2") return x;
    auto changed = x.clone();
    changed.narrow(1, 0, x.size(1) - 1).fill_(3);
    return changed;
  }
};

TEST(Autoencoder, TheLastVectorSaysAll) {
  const torch::NoGradGuard no_grad;
  const auto config = autoencoder_config();
  const auto model = random_model(config, purpose());
  const Batch batch{.input = {tokens(kTexts, kLength)}};
  const auto whole = model->features(batch);
  EXPECT_EQ(whole.sizes(), (std::vector<int64_t>{kTexts * kLength, config.d_model}));
  OnlyTheLastStays observer;
  const ObservationScope scope(*model, observer);
  EXPECT_TRUE(torch::equal(model->features(batch), whole));
}

TEST(Autoencoder, PlacesDifferAndPaddingDoesNothing) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(autoencoder_config(), purpose());
  const auto ids = tokens(kTexts, kLength);
  const auto hidden = model->hidden_states({.input = {ids, torch::tensor({kLength, int64_t{4}})}});
  const auto alone = model->hidden_states({.input = {ids.narrow(0, 1, 1).narrow(1, 0, 4)}});
  EXPECT_TRUE(torch::allclose(hidden[1].narrow(0, 0, 4), alone[0], 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(hidden[0][0], hidden[0][1]));
}

TEST(Autoencoder, CountsItsParameters) {
  for (const int64_t maps : {1, 3}) {
    const auto config = autoencoder_config(maps);
    int64_t n = 0;
    for (const auto& parameter : initialized_model(config, purpose())->parameters()) n += parameter.numel();
    EXPECT_EQ(model_cost(config, purpose(), kLength).parameters, n);
  }
}

}  // namespace
}  // namespace zoo::testing
