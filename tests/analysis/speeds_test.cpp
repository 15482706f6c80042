#include "costs/speeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Speed speed_of(double number) {
  return {.train = {.tokens_per_second = number,
                    .step_seconds = 2 * number,
                    .tokens_per_step = 12,
                    .peak_memory_bytes = 77},
          .prompt = PromptSpeed{.tokens_per_second = 3 * number, .prompts = 8, .length = 24},
          .decode = DecodeSpeed{.tokens_per_second = 4 * number,
                                .first_token_seconds = 5 * number,
                                .prompt_length = 12,
                                .n_tokens = 12}};
}

TEST(MedianOfSpeeds, IsThatOfEachNumber) {
  const auto found = median_of(std::vector{speed_of(9), speed_of(1), speed_of(4)});
  EXPECT_EQ(found.train.tokens_per_second, 4);
  EXPECT_EQ(found.train.step_seconds, 8);
  EXPECT_EQ(found.train.peak_memory_bytes, 77);
  EXPECT_EQ(found.prompt->tokens_per_second, 12);
  EXPECT_EQ(found.prompt->prompts, 8);
  EXPECT_EQ(found.decode->tokens_per_second, 16);
  EXPECT_EQ(found.decode->first_token_seconds, 20);
}

class MeasureInTurns : public ::testing::Test {
 protected:
  MeasureInTurns() {
    for (const auto* name : {"one", "two"}) {
      const auto experiment = world_.experiment("language_modeling", {"training.steps=2"});
      runs_.push_back({name, train(experiment, {.run_dir = world_.path(name)}).run_dir});
    }
  }

  TinyWorld world_;
  std::vector<MeasuredRun> runs_;
  std::vector<std::string> lines_;
};

TEST_F(MeasureInTurns, TakesOneRunAfterTheOther) {
  const auto speeds = measure_in_turns(
      runs_, {.seconds = 0.01, .on_message = [this](const std::string& line) { lines_.push_back(line); }});
  EXPECT_THAT(lines_, ElementsAre("measuring one, turn 1 of 3", "measuring two, turn 1 of 3",
                                  "measuring one, turn 2 of 3", "measuring two, turn 2 of 3",
                                  "measuring one, turn 3 of 3", "measuring two, turn 3 of 3"));
  ASSERT_EQ(speeds.size(), 2U);
  for (const auto& turns : speeds) {
    ASSERT_EQ(turns.size(), 3U);
    for (const auto& speed : turns) {
      EXPECT_GT(speed.train.tokens_per_second, 0);
      EXPECT_GT(speed.decode->tokens_per_second, 0);
    }
  }
}

TEST_F(MeasureInTurns, EndsWhereItIsToldTo) {
  const auto speeds =
      measure_in_turns(runs_, {.seconds = 0.01,
                               .should_stop = [this] { return lines_.size() == 3; },
                               .on_message = [this](const std::string& line) { lines_.push_back(line); }});
  EXPECT_THAT(speeds, IsEmpty());
  EXPECT_EQ(lines_.size(), 3U);
}

}  // namespace
}  // namespace zoo::testing
