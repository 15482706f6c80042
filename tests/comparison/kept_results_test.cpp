// Kept files give back exactly what was written.

#include "comparison/kept_results.h"

#include <cmath>

#include <gtest/gtest.h>

namespace zoo {
namespace {

TEST(KeptResults, MetricsThatAreNotNumbersAreNaN) {
  const auto metrics = metrics_in(Json::parse(Json(Metrics{{"loss", 0.1}, {"bleu", NAN}}).dump()));
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->at("loss"), 0.1);
  EXPECT_TRUE(std::isnan(metrics->at("bleu")));
  const Metric bleu{.key = "bleu", .label = "BLEU", .other_key = "loss"};
  EXPECT_FALSE(value_of(bleu, *metrics)) << "the other key is for tasks without the first";
  EXPECT_EQ(value_of(bleu, {{"valid_loss", 2.0}}, "valid_"), 2.0);
  for (const Json& bad : {Json(), Json("x"), Json{{"loss", "x"}}, Json{{"loss", {1.0}}}, Json::array()})
    EXPECT_FALSE(metrics_in(bad)) << bad;
}

TEST(KeptResults, ASpeedIsReadAsItWasWritten) {
  RunSpeed speed;
  speed.train_tokens_per_second = Measured{.median = 0.2, .least = 0.1, .largest = 0.3};
  const Json written = speed;
  EXPECT_EQ(Json(speed_in(written).value()), written);
  EXPECT_TRUE(written["decode_tokens_per_second"].is_null());
  for (const Json& bad :
       {Json(), Json("x"), Json{{"least", "x"}}, Json{{"train_tokens_per_second", {1.0}}}}) {
    auto damaged = written;
    damaged["ranges"] = bad;
    EXPECT_FALSE(speed_in(damaged)) << bad;
    EXPECT_FALSE(speed_in(bad)) << bad;
  }
}

TEST(KeptResults, ScalingIsReadAsItWasWritten) {
  const ScalingCurve curve{.part = ScalingPart::feed_forward,
                           .order = "O(nd²)",
                           .lengths = {64, 128},
                           .flops = {1e9, 2e9},
                           .seconds = {0.1, 0.2},
                           .seconds_low = {0.05, 0.1},
                           .seconds_high = {0.2, 0.3},
                           .bytes = {1000, 2000},
                           .flops_exponent = Exponent{.value = 1, .low = 0.9, .high = 1.1},
                           .bytes_exponent = Exponent{.value = 1}};
  const Json written = Json::array({to_json(curve)});
  const auto read = scaling_in(written).value();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(to_json(read[0]).dump(), written[0].dump());
  EXPECT_FALSE(scaling_in(written[0])) << "no list";
  for (const char* key : {"part", "lengths", "seconds_low"}) {
    auto damaged = written;
    damaged[0][key] = "x";
    EXPECT_FALSE(scaling_in(damaged)) << key;
    damaged[0].erase(key);
    EXPECT_FALSE(scaling_in(damaged)) << key;
  }
}

}  // namespace
}  // namespace zoo
