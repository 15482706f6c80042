#include <gtest/gtest.h>

#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests

constexpr int64_t kTexts = 2, kSource = 7, kTarget = 5, kHeads = 4, kShort = 3;

void expect_rows_sum_to_one(const std::vector<torch::Tensor>& maps, int64_t n_queries, int64_t n_keys) {
  ASSERT_EQ(maps.size(), 2U);  // one per layer
  for (const auto& map : maps) {
    ASSERT_EQ(map.sizes(), (torch::IntArrayRef{kTexts, kHeads, n_queries, n_keys}));
    EXPECT_GE(map.min().item<float>(), 0);
    const auto sums = map.sum(-1);
    // In a window, padding sees padding only: nothing.
    const auto is_padding = torch::arange(n_queries).ge(kShort).logical_and(sums.eq(0));
    EXPECT_TRUE(torch::allclose(sums.masked_fill(is_padding, 1), torch::ones_like(sums), 0, 1e-5));
  }
}

void expect_nothing_right_of(const std::vector<torch::Tensor>& maps, int64_t row, int64_t length) {
  for (const auto& map : maps) {
    EXPECT_EQ(map[row].narrow(-1, length, map.size(-1) - length).abs().max().item<float>(), 0);
  }
}

void expect_causal(const std::vector<torch::Tensor>& maps) {
  for (const auto& map : maps) EXPECT_EQ(map.triu(1).abs().max().item<float>(), 0);
}

TEST(AttentionMaps, HaveARowOfWeightsForEveryLayerHeadAndQuery) {
  for_each_model(kArchitectures, [&](const ModelConfig& config, Model& model) {
    auto batch = small_batch(config.architecture, {tokens(kTexts, kSource), torch::tensor({kSource, kShort})},
                             kTarget);
    const auto before = model.features(batch);
    AttentionMaps maps;
    model.attention_maps(batch, maps);
    EXPECT_TRUE(torch::equal(model.features(batch), before));

    EXPECT_EQ(maps.encoder.empty(), config.architecture == Architecture::decoder);
    EXPECT_EQ(maps.decoder.empty(), config.architecture == Architecture::encoder);
    EXPECT_EQ(maps.cross.empty(), config.architecture != Architecture::encoder_decoder);
    if (!maps.encoder.empty()) {
      expect_rows_sum_to_one(maps.encoder, kSource, kSource);
      expect_nothing_right_of(maps.encoder, 1, kShort);
      EXPECT_GT(maps.encoder[0].triu(1).max().item<float>(), 0);
    }
    if (config.architecture == Architecture::decoder) {
      expect_rows_sum_to_one(maps.decoder, kSource, kSource);
      expect_nothing_right_of(maps.decoder, 1, kShort);
      expect_causal(maps.decoder);
    }
    if (config.architecture == Architecture::encoder_decoder) {
      expect_rows_sum_to_one(maps.decoder, kTarget, kTarget);
      expect_causal(maps.decoder);
      expect_rows_sum_to_one(maps.cross, kTarget, kSource);
      expect_nothing_right_of(maps.cross, 1, kShort);
    }
  });
}

}  // namespace
}  // namespace zoo
