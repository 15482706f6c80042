#include "pages/tables/best_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json seed(double seconds) { return {{"end", "all_steps"}, {"seconds", seconds}}; }

Json run(double mean, double half, int64_t parameters) {
  return {{"metric", {{"mean", mean}, {"low", mean - half}, {"high", mean + half}}},
          {"parameters", parameters},
          {"seeds", {seed(1), seed(2)}}};
}

Json marked(std::vector<Json> runs, bool fair = true, const Json& match = nullptr) {
  Json results{{"metric", {{"better", "lower"}}}, {"fair", fair}, {"match", match}, {"runs", runs}};
  mark_best_values(results);
  return results["runs"];
}

std::vector<std::string> marks(const Json& run) { return run["best_in"].get<std::vector<std::string>>(); }

TEST(BestValues, AreThoseWhoseIntervalTouchesNoOther) {
  const auto apart = marked({run(2.0, 0.1, 100), run(2.3, 0.1, 100), run(2.5, 0.5, 100)});
  EXPECT_THAT(marks(apart[0]), IsEmpty()) << "the third interval begins at 2.0";
  const auto clear = marked({run(2.3, 0.1, 100), run(2.0, 0.1, 100)});
  EXPECT_THAT(marks(clear[1]), ElementsAre("metric"));
  EXPECT_TRUE(is_best_in(clear[1], "metric"));
  EXPECT_FALSE(is_best_in(clear[0], "metric"));
  EXPECT_FALSE(is_best_in(Json::object(), "metric")) << "results without marks";
}

TEST(BestValues, NeedAnIntervalAndAFairComparison) {
  auto one_seed = run(1.0, 0.1, 100);
  one_seed["metric"]["low"] = one_seed["metric"]["high"] = nullptr;
  EXPECT_THAT(marks(marked({one_seed, run(2.0, 0.1, 100)})[0]), IsEmpty());
  EXPECT_THAT(marks(marked({run(2.0, 0.1, 100), one_seed})[0]), IsEmpty()) << "nothing is known of the other";
  EXPECT_THAT(marks(marked({run(1.0, 0.1, 100), run(2.0, 0.1, 100)}, false)[0]), IsEmpty());
  EXPECT_THAT(marks(marked({run(1.0, 0.1, 100)})[0]), IsEmpty()) << "a run alone is the best of nothing";
}

TEST(BestValues, CountsThatAreShownAlikeAreEqual) {
  EXPECT_THAT(marks(marked({run(2, 1, 786'000), run(2, 1, 786'200), run(2, 1, 990'000)})[0]), IsEmpty());
  EXPECT_THAT(marks(marked({run(2, 1, 786'000), run(2, 1, 990'000)})[0]), ElementsAre("parameters"));
  const Json match{{"quantity", "parameters"}};
  EXPECT_THAT(marks(marked({run(2, 1, 786'000), run(2, 1, 990'000)}, true, match)[0]), IsEmpty());
}

TEST(BestValues, SpeedsAndTimesNeedRangesThatDoNotTouch) {
  auto fast = run(2, 1, 100), slow = run(2, 1, 100);
  fast["speed"] = {{"train_tokens_per_second", 900.0},
                   {"ranges", {{"train_tokens_per_second", {800.0, 950.0}}}}};
  slow["speed"] = {{"train_tokens_per_second", 700.0},
                   {"ranges", {{"train_tokens_per_second", {600.0, 790.0}}}}};
  EXPECT_THAT(marks(marked({slow, fast})[1]), ElementsAre("speed.train_tokens_per_second"));
  slow["speed"]["ranges"]["train_tokens_per_second"][1] = 810.0;
  EXPECT_THAT(marks(marked({slow, fast})[1]), IsEmpty());
  slow["speed"].erase("ranges");
  EXPECT_THAT(marks(marked({slow, fast})[1]), IsEmpty()) << "results of older versions";

  slow["seeds"] = {seed(5), seed(6)};
  EXPECT_THAT(marks(marked({slow, fast})[1]), ElementsAre("seconds"));
  slow["seeds"] = {seed(2), seed(6)};
  EXPECT_THAT(marks(marked({slow, fast})[1]), IsEmpty());
}

TEST(BestValues, FailedRunsDoNotCount) {
  auto failed = run(1, 0.1, 10);
  for (auto& one : failed["seeds"]) one["end"] = "failed";
  const auto runs = marked({failed, run(2, 0.1, 100), run(3, 0.1, 200)});
  EXPECT_THAT(marks(runs[0]), IsEmpty());
  EXPECT_THAT(marks(runs[1]), ElementsAre("metric", "parameters"));
}

}  // namespace
}  // namespace zoo
