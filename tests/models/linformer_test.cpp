#include "models/mixers/linformer.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/transformer_layer.h"
#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSlotted = 12, kSlots = 5, kMostPositions = 9;

AttentionOptions slotted() { return {kSlotted, 3}; }
PositionProjectionOptions slots() { return {kSlots, kMostPositions}; }

/// softmax(Q (EK)ᵀ/√Dh) F V, head by head.
torch::Tensor linformer_formula(Linformer& linformer, const torch::Tensor& x, int64_t length) {
  const auto& projection = linformer->projection();
  const auto e = projection.keys.narrow(1, 0, length);
  const auto f = (projection.values.defined() ? projection.values : projection.keys).narrow(1, 0, length);
  const auto q = linformer->q(x), k = linformer->k(x), v = linformer->v(x);
  std::vector<torch::Tensor> rows;
  for (int64_t b = 0; b < x.size(0); ++b) {
    std::vector<torch::Tensor> heads;
    for (int64_t h = 0; h < 3; ++h) {
      const auto of_head = [&](const torch::Tensor& y) { return y[b].narrow(-1, 4 * h, 4); };
      const auto keys = torch::matmul(e, of_head(k).narrow(0, 0, length));
      const auto values = torch::matmul(f, of_head(v).narrow(0, 0, length));
      heads.push_back(torch::matmul((torch::matmul(of_head(q), keys.t()) / 2).softmax(-1), values));
    }
    rows.push_back(torch::cat(heads, -1));
  }
  return linformer->out(torch::stack(rows));
}

TEST(Linformer, EqualsItsFormula) {
  const torch::NoGradGuard no_grad;
  for (const bool separate : {true, false}) {
    Linformer linformer(slotted(), slots().separate_values(separate));
    for (const int64_t length : {kMostPositions, int64_t{6}, int64_t{1}}) {
      const auto x = torch::randn({2, length, kSlotted});
      EXPECT_TRUE(torch::allclose(linformer(x), linformer_formula(linformer, x, length), 1e-5, 1e-5));
    }
  }
}

TEST(Linformer, PaddingIsZeroBeforeTheProjection) {
  const torch::NoGradGuard no_grad;
  Linformer linformer(slotted(), slots());
  const auto x = torch::randn({2, 7, kSlotted});
  const auto y = linformer(x, {.mask = Mask::lengths(torch::tensor({7, 4}, torch::kInt64))});
  const auto shorter = x.narrow(0, 1, 1).narrow(1, 0, 4);
  EXPECT_TRUE(torch::allclose(y[1].narrow(0, 0, 4), linformer(shorter)[0], 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(y[0], linformer(x.narrow(0, 0, 1))[0], 1e-5, 1e-5));
}

TEST(Linformer, WithTheIdentityItIsFullAttention) {
  const torch::NoGradGuard no_grad;
  const auto options = AttentionOptions(kSlotted, 6).n_kv_heads(2);
  Linformer linformer(options, PositionProjectionOptions(7, 7));
  auto parameters = linformer->named_parameters();
  parameters["projection.keys"].copy_(torch::eye(7));
  parameters["projection.values"].copy_(torch::eye(7));
  Attention attention(options);
  for (auto& item : attention->named_parameters()) item.value().copy_(parameters[item.key()]);
  const auto x = torch::randn({2, 7, kSlotted});
  EXPECT_TRUE(torch::allclose(linformer(x), attention(x), 1e-5, 1e-5));
}

TEST(Linformer, ProjectionsBeginAsNormalNumbers) {
  const PositionProjection projection(PositionProjectionOptions(50, 200));
  for (const auto& matrix : {projection->keys, projection->values})
    EXPECT_NEAR(matrix.square().mean().item<double>(), 1.0 / 50, 0.002);
}

TEST(Linformer, RefusesWhatItCannotDo) {
  Linformer linformer(slotted(), slots());
  const auto x = torch::randn({1, 6, kSlotted});
  std::vector<torch::Tensor> maps;
  EXPECT_THROW(linformer(x, {.mask = Mask::causal()}), c10::Error);
  EXPECT_THROW(linformer(x, {.mask = Mask::keep(torch::ones({6, 6}))}), c10::Error);
  EXPECT_THROW(linformer(x, {.maps = &maps}), c10::Error);
  EXPECT_THROW(linformer->new_state(1), UsageError);
  EXPECT_THROW(PositionProjection(PositionProjectionOptions(10, 9)), c10::Error);
  EXPECT_THAT(testing::message_of<DataError>([&] { linformer(torch::randn({1, 10, kSlotted})); }),
              HasSubstr("10 tokens is longer than model.max_positions, 9"));
}

// A layer that is cloned by itself also gets its own copy of a projection that it does not own.
TEST(Linformer, ClonesDoNotShareTheProjection) {
  const torch::NoGradGuard no_grad;
  const PositionProjection shared(slots());
  const TransformerLayerOptions options(
      [&]() -> std::shared_ptr<MixerImpl> {
        return std::make_shared<LinformerImpl>(slotted(), slots(), shared.ptr());
      },
      FeedForwardOptions(kSlotted, 16), NormOptions(kSlotted));
  TransformerLayer layer(options);
  EXPECT_FALSE(layer->self_attention->named_parameters().contains("projection.keys"));
  const auto x = torch::randn({2, 6, kSlotted});
  const auto before = layer(x);
  TransformerLayer copy(copy_of(layer.ptr())), second(copy_of(copy.ptr()));
  shared->keys.mul_(3);
  EXPECT_FALSE(torch::allclose(layer(x), before));
  EXPECT_TRUE(torch::equal(copy(x), before));
  EXPECT_TRUE(torch::equal(second(x), before));
}

}  // namespace
}  // namespace zoo
