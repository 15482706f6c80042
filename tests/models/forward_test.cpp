// Properties of a forward pass that hold for every model and configuration.

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/families/model_keys.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests

constexpr int64_t kBatch = 3, kLength = 9;

TEST(ForwardPass, EveryPlacementRunsWithEveryPositionInEveryFamilyAndTrainsEveryParameter) {
  for (const auto architecture : kArchitectures) {
    for (const auto placement : kPlacements) {
      for (const auto position : kPositions) {
        auto config = small_config(architecture, position);
        config.norm_placement = placement;
        SCOPED_TRACE(described(config));
        const auto model = random_model(config);
        const TokenBatch input{tokens(kBatch, kLength), {}};
        const auto hidden = model->hidden_states({.input = input});
        EXPECT_EQ(hidden.sizes(), (torch::IntArrayRef{kBatch, kLength, kWidth}));
        EXPECT_TRUE(hidden.isfinite().all().item<bool>());

        const auto batch = small_batch(architecture, input);
        const auto logits = model->logits(model->features(batch));
        ASSERT_EQ(logits.sizes(), (torch::IntArrayRef{batch.n_targets(), kVocabulary}));
        torch::nn::functional::cross_entropy(logits, batch.targets).backward();
        for (const auto& item : model->named_parameters()) {
          ASSERT_TRUE(item.value().grad().defined()) << item.key();
          EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
          EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << item.key();
        }
      }
    }
  }
}

// The encoder has no labels of its own: its gradients come through the decoder's cross-attention.
TEST(ForwardPass, LossReachesTheEncoderThroughCrossAttention) {
  auto config = small_config(Architecture::encoder_decoder);
  config.share_embeddings = false;
  const auto model = random_model(config);
  const auto batch = small_batch(config.architecture, {tokens(kBatch, kLength), {}});
  torch::nn::functional::cross_entropy(model->logits(model->features(batch)), batch.targets).backward();
  size_t n_encoder = 0;
  for (const auto& item : model->named_parameters()) {
    const auto& name = item.key();
    if (!name.starts_with("encoder.") && !name.starts_with("encoder_embedder.") &&
        !name.starts_with("source_")) {
      continue;
    }
    ++n_encoder;
    EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << name;
  }
  EXPECT_GT(n_encoder, 10U);
}

// Positions are scaled in layers without a window alone, where those with one have a base of their own.
TEST(ForwardPass, LayersWithAWindowKeepTheirPositionsUnscaled) {
  const auto hidden = [](const std::string& keys) {
    auto config = small_config(Architecture::decoder, Position::rotary);
    ConfigFile::parse("{" + keys + "}", "test").read(config);
    const auto model = random_model(config);
    torch::manual_seed(5);
    return model->hidden_states({.input = {tokens(kBatch, kLength), {}}});
  };
  const std::string window = ", attention: {type: window, size: 4}";
  const std::string scaled = "rotary: {local_theta: 500, scaling: linear, factor: 4}",
                    plain = "rotary: {local_theta: 500}";
  EXPECT_TRUE(torch::equal(hidden(scaled + window), hidden(plain + window)));
  const std::string yarn = "rotary: {local_theta: 500, scaling: yarn, factor: 4, attention_factor: 2}";
  EXPECT_TRUE(torch::equal(hidden(yarn + window), hidden(plain + window)));
  EXPECT_FALSE(close(hidden("rotary: {scaling: linear, factor: 4}"), hidden("norm: layer_norm")));
}

// A row in a padded batch gives the same result as the row alone.
TEST(ForwardPass, PaddedEqualsUnpadded) {
  const auto lengths = torch::tensor({kLength, int64_t{4}, int64_t{1}});
  for_each_model(kArchitectures, [&](const ModelConfig& config, Model& model) {
    auto batch = small_batch(config.architecture, {tokens(kBatch, kLength), lengths});
    if (config.n_segments > 0 && config.architecture == Architecture::encoder) {
      batch.segments = torch::randint(2, {kBatch, kLength});
    }
    const auto hidden = model.hidden_states(batch);
    const auto features = model.features(batch).view({kBatch, -1, kWidth});
    for (int64_t row = 0; row < kBatch; ++row) {
      const int64_t n = lengths[row].item<int64_t>();
      Batch alone;
      alone.input.ids = batch.input.ids.narrow(0, row, 1).narrow(1, 0, n);
      if (batch.segments.defined()) alone.segments = batch.segments.narrow(0, row, 1).narrow(1, 0, n);
      int64_t n_predicting = n;
      if (batch.decoder.defined()) {
        alone.decoder.ids = batch.decoder.ids.narrow(0, row, 1);
        n_predicting = alone.decoder.ids.size(1);
      }
      EXPECT_TRUE(close(hidden[row].narrow(0, 0, n), model.hidden_states(alone)[0])) << "row " << row;
      EXPECT_TRUE(close(features[row].narrow(0, 0, n_predicting), model.features(alone))) << "row " << row;
    }
  });
}

// A token does not change the results at earlier positions: they are equal to the last bit.
TEST(ForwardPass, CausalityIsExact) {
  constexpr int64_t kChanged = 5;
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    auto batch = small_batch(config.architecture, {tokens(kBatch, kLength), {}}, kLength);
    auto changed = batch;
    auto& ids = config.architecture == Architecture::decoder ? changed.input.ids : changed.decoder.ids;
    ids = ids.clone();
    ids.narrow(1, kChanged, kLength - kChanged).add_(1).remainder_(kVocabulary);

    const auto a = model.features(batch).view({kBatch, kLength, kWidth});
    const auto b = model.features(changed).view({kBatch, kLength, kWidth});
    EXPECT_TRUE(torch::equal(a.narrow(1, 0, kChanged), b.narrow(1, 0, kChanged)));
    EXPECT_FALSE(torch::equal(a.select(1, kChanged), b.select(1, kChanged)));
  });
}

TEST(ForwardPass, PositionsPickWhatIsPredicted) {
  for (const auto architecture : kArchitectures) {
    const torch::NoGradGuard no_grad;
    const auto model = random_model(small_config(architecture));
    auto batch = small_batch(architecture, {tokens(kBatch, kLength), {}});
    const auto all = model->features(batch);
    batch.positions = torch::tensor({7, 0, 3});
    EXPECT_TRUE(close(model->features(batch), all.index_select(0, batch.positions), 1e-5));
  }
}

TEST(ForwardPass, OrderMattersUnlessThereAreNoPositions) {
  for (const auto position : kPositions) {
    const torch::NoGradGuard no_grad;
    const auto config = small_config(Architecture::encoder, position);
    SCOPED_TRACE(described(config));
    const auto model = random_model(config);
    const auto ids = tokens(1, kLength);
    const auto order = torch::randperm(kLength);
    const auto straight = model->hidden_states({.input = {ids}}).index_select(1, order);
    const auto shuffled = model->hidden_states({.input = {ids.index_select(1, order)}});
    EXPECT_EQ(close(straight, shuffled), position == Position::none);
  }
}

TEST(ForwardPass, SegmentsDefaultToTheFirst) {
  auto config = small_config(Architecture::encoder);
  config.n_segments = 2;
  const torch::NoGradGuard no_grad;
  const auto model = random_model(config);
  auto batch = small_batch(config.architecture, {tokens(kBatch, kLength), {}});
  const auto without = model->features(batch);
  batch.segments = torch::zeros_like(batch.input.ids);
  EXPECT_TRUE(torch::equal(model->features(batch), without));
  batch.segments = torch::ones_like(batch.input.ids);
  EXPECT_FALSE(close(model->features(batch), without));
}

TEST(ForwardPass, DropsOnlyInTraining) {
  for (const auto architecture : kArchitectures) {
    auto config = small_config(architecture);
    config.dropout = 0.3;
    const torch::NoGradGuard no_grad;
    const auto model = random_model(config);
    const auto batch = small_batch(architecture, {tokens(kBatch, kLength), {}});
    EXPECT_TRUE(torch::equal(model->features(batch), model->features(batch)));
    model->train();
    EXPECT_FALSE(torch::equal(model->features(batch), model->features(batch)));
  }
}

TEST(ForwardPass, ClassifiersReadTheClassTokenOrTheLast) {
  const TokenBatch input{tokens(kBatch, kLength), torch::tensor({9, 4, 6})};
  for (const bool pooler : {false, true}) {
    auto config = small_config(Architecture::encoder);
    config.pooler = pooler;
    const auto model =
        random_model(config, {.head = HeadKind::classification, .vocab_size = kVocabulary, .n_classes = 5});
    Batch batch;
    batch.input = input;
    batch.targets = torch::tensor({0, 1, 2});
    const auto features = model->features(batch);
    EXPECT_EQ(model->logits(features).sizes(), (torch::IntArrayRef{kBatch, 5}));
    if (!pooler) {
      EXPECT_TRUE(torch::equal(features, model->hidden_states(batch).select(1, 0)));
    }
    EXPECT_EQ(model->generative(), nullptr);
  }
  const auto model =
      random_model(small_config(Architecture::decoder),
                   {.head = HeadKind::classification, .vocab_size = kVocabulary, .n_classes = 5});
  Batch batch;
  batch.input = input;
  batch.targets = torch::tensor({0, 1, 2});
  batch.positions = torch::arange(kBatch) * kLength + input.lengths - 1;
  EXPECT_EQ(model->logits(model->features(batch)).sizes(), (torch::IntArrayRef{kBatch, 5}));
  EXPECT_EQ(model->generative(), nullptr);
}

TEST(ForwardPass, LearnedPositionsEndWithTheirTable) {
  for (const auto architecture : kArchitectures) {
    const torch::NoGradGuard no_grad;
    const auto model = random_model(small_config(architecture));
    EXPECT_NO_THROW(model->hidden_states({.input = {tokens(1, 32)}}));
    EXPECT_THROW(model->hidden_states({.input = {tokens(1, 33)}}), DataError);
  }
}

}  // namespace
}  // namespace zoo
