#include "costs/scaling.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/families/model_cost.h"
#include "models/families/model_keys.h"

namespace zoo {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::SizeIs;

ModelConfig small(Architecture architecture = Architecture::decoder) {
  ModelConfig config;
  config.architecture = architecture;
  config.d_model = 16;
  config.n_layers = 2;
  config.n_heads = 2;
  config.max_positions = 32;  // fewer than any length that is measured
  return config;
}

const ModelPurpose kWriter{.vocab_size = 19, .start_token = 1};
const ScalingOptions kQuick{.fewest = 3, .max_flops = 1, .seconds = 0};

std::vector<ScalingCurve> measure(const ModelConfig& config, const ScalingOptions& options = kQuick,
                                  const ModelPurpose& purpose = kWriter) {
  return measure_scaling(config, purpose, torch::kCPU, options);
}

ScalingCurve part(const std::vector<ScalingCurve>& curves, ScalingPart wanted) {
  return *std::ranges::find(curves, wanted, &ScalingCurve::part);
}

std::vector<double> as_doubles(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

TEST(FittedExponent, OfAPowerIsThatPower) {
  const std::vector<int64_t> lengths = {64, 128, 256, 512};
  for (const double power : {0.0, 1.0, 1.5, 2.0}) {
    std::vector<double> values;
    for (const auto n : lengths) values.push_back(3.7 * std::pow(static_cast<double>(n), power));
    EXPECT_NEAR(fitted_exponent(lengths, values).value().value, power, 1e-12);
  }
}

TEST(FittedExponent, LooksAtTheLongestHalf) {
  // Flat, then quadratic; of five lengths the last three count, of three the last two.
  EXPECT_NEAR(fitted_exponent(std::vector<int64_t>{1, 2, 4, 8, 16}, std::vector<double>{9, 9, 1, 4, 16})
                  .value()
                  .value,
              2, 1e-12);
  EXPECT_NEAR(fitted_exponent(std::vector<int64_t>{2, 4, 8}, std::vector<double>{7, 1, 2}).value().value, 1,
              1e-12);
}

// By hand: ln n = 0, 1, 2 · ln 2 and ln v = 0, 2, 1 · ln 2 have the slope ½.
TEST(FittedExponent, IsALeastSquaresSlope) {
  EXPECT_NEAR(
      fitted_exponent(std::vector<int64_t>{4, 4, 1, 2, 4}, std::vector<double>{1, 1, 1, 4, 2}).value().value,
      0.5, 1e-12);
}

TEST(FittedExponent, IsAbsentWhereThereIsNone) {
  EXPECT_FALSE(fitted_exponent({}, {}));
  EXPECT_FALSE(fitted_exponent(std::vector<int64_t>{64}, std::vector<double>{1}));
  EXPECT_FALSE(fitted_exponent(std::vector<int64_t>{64, 128}, std::vector<double>{1, 0}));
  EXPECT_FALSE(fitted_exponent(std::vector<int64_t>{64, 128}, std::vector<double>{1}));
}

TEST(Scaling, HasACurveForEachPart) {
  const auto curves = measure(small());
  std::vector<std::string_view> parts, orders;
  for (const auto& curve : curves) {
    SCOPED_TRACE(name_of(curve.part));
    parts.push_back(name_of(curve.part));
    orders.push_back(curve.order);
    EXPECT_THAT(curve.lengths, ElementsAre(64, 128, 256));
    EXPECT_THAT(curve.flops, SizeIs(curve.part == ScalingPart::decoding ? 0 : 3));
    EXPECT_THAT(curve.bytes, SizeIs(3));
    EXPECT_THAT(curve.seconds, SizeIs(3));
    EXPECT_THAT(curve.flops, Each(Gt(0)));
    EXPECT_THAT(curve.seconds, Each(Gt(0)));
    const auto value = [](const std::optional<Exponent>& fitted) { return fitted ? fitted->value : -1; };
    EXPECT_EQ(value(curve.flops_exponent), value(fitted_exponent(curve.lengths, curve.flops)));
    EXPECT_EQ(value(curve.seconds_exponent), value(fitted_exponent(curve.lengths, curve.seconds)));
    EXPECT_EQ(value(curve.bytes_exponent), value(fitted_exponent(curve.lengths, as_doubles(curve.bytes))));
  }
  EXPECT_THAT(parts, ElementsAre("attention", "training", "decoding", "feed-forward", "norm", "model"));
  EXPECT_THAT(orders, ElementsAre("O(n²d)", "O(n²d)", "", "O(nd²)", "O(nd)", "O(n²d + nd²)"));
}

// By hand: the logarithms (base 2) of the values are 0, 2, 1, 3 at 0, 1, 2, 3: slope 0.8, residuals -0.3,
// 0.9, -0.9, 0.3, standard error √(1.8/2/5), and t is 4.3026527 for two degrees of freedom.
TEST(FittedExponent, HasAnInterval) {
  const std::vector<int64_t> lengths{9, 9, 9, 9, 1, 2, 4, 8};
  const auto fitted = fitted_exponent(lengths, std::vector<double>{5, 5, 5, 5, 1, 4, 2, 8}).value();
  EXPECT_NEAR(fitted.value, 0.8, 1e-12);
  EXPECT_NEAR(fitted.low.value(), 0.8 - 4.302652729911 * std::sqrt(1.8 / 2 / 5), 1e-9);
  EXPECT_NEAR(fitted.high.value(), 0.8 + 4.302652729911 * std::sqrt(1.8 / 2 / 5), 1e-9);
  EXPECT_FALSE(fitted_exponent(std::vector<int64_t>{1, 2}, std::vector<double>{1, 2}).value().low);
}

// What a window remembers stops growing; keys and values grow with the length.
TEST(Scaling, ShowsWhatDecodingRemembers) {
  const auto state_bytes = [](std::vector<Selection> attention) {
    auto config = small();
    config.attention = std::move(attention);
    return part(measure(config, {.fewest = 4, .max_flops = 1, .seconds = 0}), ScalingPart::decoding).bytes;
  };
  const auto window = state_bytes({Selection("window", WindowConfig{.size = 20})});
  EXPECT_THAT(window, Each(21 * 2 * 16 * 4));
  const auto full = state_bytes({Selection("full")});
  EXPECT_GE(full[3], 7 * full[0]);
}

TEST(Scaling, CountsVisiblePairsOfAPattern) {
  auto config = small();
  config.attention = {Selection("window", WindowConfig{.size = 9})};
  const auto curves = measure(config);
  const double d = 16, n = 64, pairs = 10 * n - 45;  // a query sees itself and at most 9 more
  EXPECT_DOUBLE_EQ(part(curves, ScalingPart::attention).flops[0], 8 * n * d * d + 4 * pairs * d);
  EXPECT_EQ(part(curves, ScalingPart::attention).order, "O(nwd)");
}

TEST(Scaling, IsNotMeasuredWhereTheLengthIsFixed) {
  auto config = small(Architecture::encoder);
  ConfigFile::parse("attention: [full, {type: mlp, length: 9}]", "test").read(config);
  auto purpose = kWriter;
  purpose.head = HeadKind::masked_language_modeling;
  EXPECT_TRUE(measure(config, kQuick, purpose).empty());
  config.attention = {Selection("full")};
  EXPECT_FALSE(measure(config, kQuick, purpose).empty());
}

// Each mixer has an order of its own, and a Linformer is measured beyond its positions.
TEST(Scaling, NamesTheOrdersOfTheMixers) {
  const auto orders_of = [](Architecture architecture, const std::string& attention) {
    auto config = small(architecture);
    ConfigFile::parse("attention: " + attention, "test").read(config);
    auto purpose = kWriter;
    if (architecture == Architecture::encoder) purpose.head = HeadKind::masked_language_modeling;
    const auto curves = measure(config, kQuick, purpose);
    for (const auto& curve : curves) EXPECT_EQ(curve.lengths.back(), 256);
    return std::vector<std::string>{curves.front().order, curves.back().order};
  };
  EXPECT_THAT(orders_of(Architecture::decoder, "[delta, full]"), ElementsAre("O(nd²)", "O(n²d + nd²)"));
  EXPECT_THAT(orders_of(Architecture::decoder, "linear"), ElementsAre("O(nd²)", "O(nd²)"));
  EXPECT_THAT(orders_of(Architecture::encoder, "[performer, {type: linformer, k: 8}]"),
              ElementsAre("O(nmd)", "O(nmd + nkd + nd²)"));
  EXPECT_THAT(orders_of(Architecture::encoder, "{type: linformer, k: 8, share: layer}"),
              ElementsAre("O(nkd)", "O(nkd + nd²)"));
}

// A bias of the scores takes memory, and time, for every pair of every head.
TEST(Scaling, MeasuresAttentionWithItsBias) {
  const auto bytes = [](Position position) {
    auto config = small();
    config.position = position;
    const auto curve =
        part(measure(config, {.fewest = 4, .max_flops = 1, .seconds = 0}), ScalingPart::attention);
    return std::pair(curve.lengths.back(), curve.bytes.back());
  };
  const auto [length, without] = bytes(Position::none);
  const int64_t bias = small().n_heads * length * length * 4;
  for (const auto position : {Position::t5, Position::alibi})
    EXPECT_GE(bytes(position).second, without + bias) << name_of(position);
}

TEST(Scaling, CountsWhatTheTextbookCounts) {
  auto config = small();
  config.d_ff = 48;
  const auto curves = measure(config);
  const double d = 16, d_ff = 48, v = 19;
  for (size_t i = 0; i < 3; ++i) {
    const auto n = static_cast<double>(part(curves, ScalingPart::attention).lengths[i]);
    const double attention = 8 * n * d * d + 4 * n * n * d, feed_forward = 4 * n * d * d_ff;
    EXPECT_DOUBLE_EQ(part(curves, ScalingPart::attention).flops[i], attention);
    EXPECT_DOUBLE_EQ(part(curves, ScalingPart::training).flops[i], 3 * attention) << "there and back";
    EXPECT_DOUBLE_EQ(part(curves, ScalingPart::feed_forward).flops[i], feed_forward);
    EXPECT_DOUBLE_EQ(part(curves, ScalingPart::norm).flops[i], 7 * n * d)
        << "mean, centre, square, sum, divide, gain, bias";
    EXPECT_DOUBLE_EQ(part(curves, ScalingPart::model).flops[i],
                     2 * (attention + feed_forward) + 2 * n * d * v);
  }
}

TEST(Scaling, ComesNearTheTextbooksExponents) {
  const auto curves = measure(small(), {.fewest = 6, .max_flops = 1, .seconds = 0});
  EXPECT_NEAR(part(curves, ScalingPart::attention).flops_exponent.value().value, 2,
              0.05);  // n is far beyond d
  EXPECT_NEAR(part(curves, ScalingPart::feed_forward).flops_exponent.value().value, 1, 1e-9);
  EXPECT_NEAR(part(curves, ScalingPart::norm).flops_exponent.value().value, 1, 1e-9);
  EXPECT_GT(part(curves, ScalingPart::model).flops_exponent.value().value, 1.5);
}

TEST(Scaling, OfRootMeanSquareNormsHasNoCentring) {
  auto config = small();
  config.norm = NormKind::rms_norm;
  EXPECT_DOUBLE_EQ(part(measure(config), ScalingPart::norm).flops[0], 4 * 64 * 16);
  config.norm = NormKind::layer_norm;
  config.bias = false;
  EXPECT_DOUBLE_EQ(part(measure(config), ScalingPart::norm).flops[0], 6 * 64 * 16);
}

TEST(Scaling, WorksForEveryFamilyAndEnd) {
  const ModelPurpose classifier{.head = HeadKind::classification, .vocab_size = 19, .n_classes = 3};
  const ModelPurpose filler{.head = HeadKind::masked_language_modeling, .vocab_size = 19};
  const auto family = [](Architecture architecture, const ModelPurpose& purpose) {
    const auto curves = measure(small(architecture), kQuick, purpose);
    EXPECT_THAT(curves, SizeIs(architecture == Architecture::decoder ? 6 : 5));
    return curves.back().flops[0];
  };
  const double writes = family(Architecture::decoder, kWriter);
  const double classifies = family(Architecture::decoder, classifier);
  EXPECT_DOUBLE_EQ(writes - classifies, 2 * 16 * (64 * 19 - 3)) << "one class for all tokens";
  EXPECT_GT(family(Architecture::encoder_decoder, kWriter), 2 * classifies)
      << "two stacks and cross-attention";
  family(Architecture::encoder, filler);
  family(Architecture::encoder, classifier);
}

TEST(Scaling, WorksForEveryPositionAndPlacement) {
  for (const auto position : {Position::none, Position::sinusoidal, Position::rotary, Position::alibi,
                              Position::t5, Position::shaw}) {
    SCOPED_TRACE(name_of(position));
    for (const auto architecture : {Architecture::decoder, Architecture::encoder}) {
      auto config = small(architecture);
      config.position = position;
      const ModelPurpose filler{.head = HeadKind::masked_language_modeling, .vocab_size = 19};
      EXPECT_THAT(measure(config, kQuick, architecture == Architecture::encoder ? filler : kWriter),
                  SizeIs(architecture == Architecture::decoder ? 6 : 5));
    }
  }
  for (const auto placement : {NormPlacement::post, NormPlacement::residual_post, NormPlacement::sandwich,
                               NormPlacement::parallel}) {
    SCOPED_TRACE(name_of(placement));
    auto config = small();
    config.norm_placement = placement;
    EXPECT_THAT(measure(config), SizeIs(6));
  }
}

TEST(Scaling, SeesTheMemoryThatAnAttentionTakes) {
  const auto attention = [](Position position) {
    auto config = small();
    config.position = position;
    return measure(config, {.fewest = 5, .max_flops = 1, .seconds = 0}).front();
  };
  // Fused kernels keep no matrix of all pairs; a bias on the scores is one, in float for each of two heads.
  const auto fused = attention(Position::learned), biased = attention(Position::alibi);
  EXPECT_LT(fused.bytes.back(), 1024 * 1024 * 4);
  EXPECT_GE(biased.bytes.back(), 1024 * 1024 * 4 * 2);
  EXPECT_GT(fitted_exponent(biased.lengths, as_doubles(biased.bytes)).value().value, 1.8);
}

TEST(Scaling, LeavesTheWeightsOutOfTheBytes) {
  auto config = small();
  config.d_ff = 4096;  // half a megabyte of weights
  const auto norm = part(measure(config), ScalingPart::norm);
  EXPECT_LT(norm.bytes[0], 100'000);
  EXPECT_GE(norm.bytes[0], 2 * 64 * 16 * 4) << "input and output";
}

TEST(Scaling, GoesAsFarAsFlopsAndMemoryAllow) {
  // A layer of small(): 24·16² = 6144 FLOPs a token and 64 more for each token that it sees.
  const auto layer = [](double n) { return n * (6144 + 64 * n); };
  const auto until = [&](double max_flops) {
    return measure(small(), {.fewest = 1, .max_flops = max_flops, .seconds = 0}).front().lengths;
  };
  EXPECT_THAT(until(layer(256)), ElementsAre(64, 128, 256));
  EXPECT_THAT(until(layer(256) - 1), ElementsAre(64, 128));
  EXPECT_THAT(until(1), ElementsAre(64));

  auto config = small();
  config.position = Position::alibi;
  const auto free = measure(config, {.fewest = 5, .max_flops = 1, .seconds = 0}).front();
  const auto bound =
      measure(config, {.fewest = 5, .max_flops = 1, .max_bytes = 4 * free.bytes[2] - 1, .seconds = 0})
          .front();
  EXPECT_THAT(bound.lengths, ElementsAre(64, 128, 256));
}

TEST(Scaling, IsTheSameAgainButForTheTimes) {
  const auto once = measure(small()), again = measure(small());
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i].lengths, again[i].lengths);
    EXPECT_EQ(once[i].flops, again[i].flops);
    EXPECT_EQ(once[i].bytes, again[i].bytes);
  }
}

TEST(Scaling, RefusesWhatIsNoModel) {
  auto config = small();
  config.n_heads = 3;
  EXPECT_THROW(measure(config), ConfigError);
}

TEST(Scaling, AsJsonIsWhatTheDocumentationSays) {
  ScalingCurve curve{.part = ScalingPart::feed_forward,
                     .order = "O(nd²)",
                     .lengths = {64, 128},
                     .flops = {10, 20},
                     .seconds = {0.5, 1.5},
                     .seconds_low = {0.4, 1.4},
                     .seconds_high = {0.6, 1.7},
                     .bytes = {7, 8},
                     .flops_exponent = Exponent{.value = 1.0, .low = 0.5, .high = 1.5}};
  EXPECT_EQ(to_json(curve), nlohmann::ordered_json::parse(R"json({"part": "feed-forward", "order": "O(nd²)",
    "lengths": [64, 128], "flops": [10.0, 20.0], "seconds": [0.5, 1.5], "seconds_low": [0.4, 1.4],
    "seconds_high": [0.6, 1.7], "bytes": [7, 8], "flops_exponent": 1.0, "flops_exponent_low": 0.5,
    "flops_exponent_high": 1.5, "seconds_exponent": null, "seconds_exponent_low": null, "seconds_exponent_high": null,
    "bytes_exponent": null, "bytes_exponent_low": null, "bytes_exponent_high": null})json"));
}

}  // namespace
}  // namespace zoo
