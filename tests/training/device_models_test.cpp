// Parts of models on a GPU: positions, norms, mixers.

#include "layers/attention/position_bias.h"
#include "layers/attention/rotary.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

class ModelsOnAGpu : public OnAGpu {
 protected:
  /// Each trains the same, in fp32 and in 16 bits, and writes the same text.
  void expect_same(std::string_view task, const std::vector<std::vector<std::string>>& models) const {
    for (size_t i = 0; i < models.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(models[i], ", ")));
      expect_same_training(task, models[i], fmt::format("model-{}", i), 2e-3);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Each, ModelsOnAGpu, both_devices(), device_name);

TEST_P(ModelsOnAGpu, Positions) {
  expect_same("language_modeling", {{"model.position=sinusoidal"},
                                    {"model.position=rotary"},
                                    {"model.position=alibi"},
                                    {"model.position=t5"},
                                    {"model.position=shaw"},
                                    {"model.position=none"}});
}

TEST_P(ModelsOnAGpu, BucketsOfDistances) {
  // The distances 8 and 16 are at borders, where the logarithm decides.
  T5Bias bias(T5BiasOptions(2).direction(Direction::causal).n_buckets(8).max_distance(64));
  const auto wanted = bias(PositionRange(0, 20));
  bias->to(device());
  EXPECT_TRUE(torch::equal(bias(PositionRange(0, 20)).to(torch::kCPU), wanted));
}

TEST_P(ModelsOnAGpu, PairsTurnByTheSameAngles) {
  torch::manual_seed(1);
  const auto x = torch::randn({2, 3, 5, 8});
  const std::vector<int64_t> before = {0, 7}, counts = {5, 4};
  for (const auto layout : {RotaryLayout::half, RotaryLayout::interleaved}) {
    for (const int64_t width : {8, 6}) {
      for (const bool by_row : {false, true}) {
        SCOPED_TRACE(fmt::format("interleaved {}, width {}, by row {}", layout == RotaryLayout::interleaved,
                                 width, by_row));
        const auto turned = [&](torch::Device where) {
          Rotary rotary(RotaryOptions(8).width(width).layout(layout));
          const auto range = by_row ? PositionRange(before, counts, 5, where) : PositionRange(4, 5);
          return rotary(range, where).apply(x.to(where)).to(torch::kCPU);
        };
        EXPECT_TRUE(torch::allclose(turned(device()), turned(torch::kCPU), 1e-4, 1e-5));
      }
    }
  }
}

TEST_P(ModelsOnAGpu, NormsAndHeads) {
  expect_same(
      "language_modeling",
      {{"model.position=rotary", "model.norm=rms_norm", "model.activation=swiglu", "model.n_kv_heads=1",
        "model.qk_norm=true", "model.bias=false", "model.tie_embeddings=false", "model.projection=fused",
        "model.gate=fused"},
       {"model.position=rotary", "model.norm=rms_norm", "model.norm_unit_offset=true",
        "model.norm_placement=sandwich", "model.activation=geglu_tanh", "model.n_kv_heads=1",
        "model.head_dim=32", "model.attention_softcap=50", "model.logits_softcap=30",
        "model.scale_embeddings=true"},
       {"model.position=rotary", "model.attention={type: window, size: 7}", "model.attention_softcap=50"},
       {"model.norm=layer_norm_annotated", "model.norm_placement=post", "model.activation=relu"},
       {"model.norm=rms_norm_outside", "model.norm_placement=parallel", "model.layer_scale=0.1"}});
}

TEST_P(ModelsOnAGpu, MixersOfDecoders) {
  expect_same("language_modeling",
              {{"model.attention={type: window, size: 5, dilation: 2, global: first, n_global: 2}"},
               {"model.attention={type: strided, stride: 4}"},
               {"model.attention={type: fixed, stride: 4, n_summary: 2}"},
               {"model.attention={type: blocks, size: 4, window: 1, n_global: 1, n_random: 1}"},
               {"model.attention=linear"},
               {"model.attention=performer"},
               {"model.attention={type: delta}", "model.position=none"}});
}

TEST_P(ModelsOnAGpu, MixersOfEncoders) {
  expect_same("masked_language_modeling",
              {{"model.attention={type: window, size: 5, global: ids, global_ids: [2, 3], "
                "global_projections: true}"},
               {"model.attention={type: window, size: 5, global: class}"},
               {"model.attention={type: blocks, size: 4, n_random: 1}"},
               {"model.attention={type: linformer, k: 8}"},
               {"model.attention=linear"},
               {"model.attention=performer"}});
}

TEST_P(ModelsOnAGpu, EncoderDecoders) {
  expect_same("text_to_text", {{"model.position=t5", "model.norm=rms_norm"},
                               {"model.position=shaw"},
                               {"model.position=rotary", "model.n_kv_heads=1"}});
}

}  // namespace
}  // namespace zoo::testing
