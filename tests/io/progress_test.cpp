#include "io/progress.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgressTest : public ::testing::Test {
 protected:
  Progress start(int64_t total, int64_t first = 0, const std::string& unit = "steps") {
    ProgressOutput output;
    output.write = [this](std::string_view text) { written.emplace_back(text); };
    output.columns = [this] { return columns; };
    output.seconds = [this] { return now; };
    return Progress("train", {.total = total, .unit = unit, .first = first}, output);
  }
  int columns = 0;
  double now = 1000;
  std::vector<std::string> written;
};

TEST_F(ProgressTest, PlainLinesFirstLastAndEveryFiveSeconds) {
  {
    auto progress = start(100);
    for (int step = 1; step <= 100; ++step) {
      now += 0.11;
      progress.update(step, fmt::format("loss {}", step));
    }
  }
  EXPECT_THAT(written, ElementsAre("train 1/100 steps  loss 1  0.1 s, 10.9 s left\n",
                                   "train 47/100 steps  loss 47  5.2 s, 5.8 s left\n",
                                   "train 93/100 steps  loss 93  10.2 s, 0.8 s left\n",
                                   "train 100/100 steps  loss 100  11.0 s\n"));
}

TEST_F(ProgressTest, TheLastStateIsShownWhenATaskStopsEarly) {
  {
    auto progress = start(100);
    progress.update(1, "");
    progress.update(2, "stopped");
  }
  EXPECT_THAT(written, ElementsAre("train 1/100 steps  0.0 s, 0.0 s left\n",
                                   "train 2/100 steps  stopped  0.0 s, 0.0 s left\n"));
}

TEST_F(ProgressTest, NothingIsShownBeforeTheFirstStep) {
  {
    start(100);
  }
  EXPECT_TRUE(written.empty());
}

TEST_F(ProgressTest, ResumedTasksCountOnlyTheirOwnStepsForTheTimeLeft) {
  auto progress = start(1000, 900);
  now += 10;
  progress.update(910, "");
  EXPECT_THAT(written, ElementsAre("train 910/1000 steps  10.0 s, 1 min 30 s left\n"));
}

TEST_F(ProgressTest, LongTimesAndUnknownEnds) {
  {
    auto progress = start(1000000);
    now += 36;
    progress.update(10, "");
    now += 36;
    progress.update(20, "");
  }
  EXPECT_THAT(written.front(), HasSubstr("36.0 s, 999 h 59 min left"));
  written.clear();
  auto endless = start(0);
  now += 3;
  endless.update(5, "");
  EXPECT_THAT(written, ElementsAre("train 5 steps  3.0 s\n"));
}

// A training that reads its data for a minute does not read them again for every step.
TEST_F(ProgressTest, WhatComesBeforeTheFirstStepIsNotInTheTimeLeft) {
  auto progress = start(101);
  now += 60;
  progress.update(1, "");
  EXPECT_THAT(written.back(), HasSubstr("1 min 0 s, 1 h 40 min left")) << "nothing better is known";
  now += 10;
  progress.update(11, "");
  EXPECT_THAT(written.back(), HasSubstr("1 min 10 s, 1 min 30 s left"));
}

// Whatever ends first: the steps or the time.
TEST_F(ProgressTest, TheRestCountsATimeLimit) {
  auto progress = start(1000);
  now += 10;
  progress.update(10, "", TimeLimit{.used = 12, .total = 60});
  EXPECT_THAT(written.back(), HasSubstr("10/1000 steps  10.0 s, 48.0 s left"));
  now += 10;
  progress.update(990, "", TimeLimit{.used = 22, .total = 60});
  EXPECT_THAT(written.back(), HasSubstr("990/1000 steps  20.0 s, 0.1 s left"));
  columns = 100;
  now += 10;
  progress.update(100, "", TimeLimit{.used = 45, .total = 60});
  EXPECT_THAT(written.back(), HasSubstr(" 75% [###############.....]")) << "three quarters of the time";
  now += 10;
  progress.update(101, "", TimeLimit{.used = 61, .total = 60});
  EXPECT_THAT(written.back(), Not(HasSubstr("left")));
}

TEST_F(ProgressTest, NumbersWithoutAMeaningAreAShare) {
  auto progress = start(3000, 0, "");
  now += 10;
  progress.update(750, "two runs");
  EXPECT_EQ(written.back(), "train  25%  two runs  10.0 s, 30.0 s left\n");
  columns = 100;
  now += 10;
  progress.update(1500, "two runs");
  EXPECT_EQ(written.back(), "\rtrain  50% [##########..........] two runs  20.0 s, 20.0 s left\x1b[K");
}

TEST_F(ProgressTest, ATerminalIsNotControlledByNames) {
  columns = 100;
  auto progress = start(10);
  progress.update(1, "evil \x1b[2J\r\n name");
  EXPECT_THAT(written.back(), HasSubstr("evil \\x1b[2J\\x0d\\n name"));
  progress.message("saved \x1b[2J");
  EXPECT_THAT(written[written.size() - 2], "saved \\x1b[2J\n");
  columns = 0;
  auto plain = start(10);
  plain.message("saved \x1b[2J");
  EXPECT_EQ(written.back(), "saved \x1b[2J\n") << "files get every byte";
}

TEST(DurationText, HasUnits) {
  EXPECT_EQ(duration_text(0), "0.0 s");
  EXPECT_EQ(duration_text(7.26), "7.3 s");
  EXPECT_EQ(duration_text(59.96), "1 min 0 s");
  EXPECT_EQ(duration_text(754), "12 min 34 s");
  EXPECT_EQ(duration_text(12300), "3 h 25 min");
  EXPECT_EQ(duration_text(1e300), "277777 h 46 min");
}

TEST_F(ProgressTest, TerminalsAreRedrawnTenTimesASecond) {
  columns = 100;
  {
    auto progress = start(1000);
    for (int step = 1; step <= 1000; ++step) {
      now += 0.0010001;
      progress.update(step, "s");
    }
  }
  EXPECT_GE(written.size(), 10u);
  EXPECT_LE(written.size(), 13u);
  EXPECT_EQ(written[0], "\rtrain   0% [....................] 1/1000 steps  s  0.0 s, 1.0 s left\x1b[K");
  EXPECT_EQ(written[written.size() - 2],
            "\rtrain 100% [####################] 1000/1000 steps  s  1.0 s\x1b[K");
  EXPECT_EQ(written.back(), "\n");
}

// The least important part is left out first; the time left stays as long as possible.
TEST_F(ProgressTest, LinesFitTheTerminal) {
  const auto at = [&](int width) {
    columns = width;
    auto progress = start(1000);
    now += 20;
    progress.update(501, "loss 1.92  äöü k tokens/s");
    return written.back();
  };
  const std::string time = "20.0 s, 19.9 s left\x1b[K";
  EXPECT_EQ(at(200),
            "\rtrain  50% [##########..........] 501/1000 steps  loss 1.92  äöü k tokens/s  " + time);
  EXPECT_EQ(at(88), "\rtrain  50% [#####.....] 501/1000 steps  loss 1.92  äöü k tokens/s  " + time);
  EXPECT_EQ(at(75), "\rtrain  50% 501/1000 steps  loss 1.92  äöü k tokens/s  " + time);
  EXPECT_EQ(at(73), "\rtrain  50% 501/1000 steps  loss 1.92  " + time);
  EXPECT_EQ(at(50), "\rtrain  50% 501/1000 steps  " + time);
  EXPECT_EQ(at(40), "\rtrain  50% 501/1000 steps  19.9 s left\x1b[K");
  EXPECT_EQ(at(37), "\rtr…  50% 501/1000 steps  19.9 s left\x1b[K");
  EXPECT_EQ(at(1), "\r…\x1b[K");
}

TEST_F(ProgressTest, ABarMakesRoomForOtherOutput) {
  columns = 60;
  auto progress = start(10);
  progress.update(5, "");
  written.clear();
  progress.clear();
  progress.clear();
  EXPECT_THAT(written, ElementsAre("\r\x1b[K"));
  progress.update(6, "");
  EXPECT_THAT(written.back(), HasSubstr("6/10"));
}

TEST_F(ProgressTest, NoLineIsWrittenTwice) {
  {
    auto progress = start(10);
    progress.update(10, "loss 1");
    now += 100;
    progress.message("evaluated");
    progress.update(10, "loss 1");
    progress.update(10, "loss 1");
  }
  EXPECT_THAT(written, ElementsAre("train 10/10 steps  loss 1  0.0 s\n", "evaluated\n"));
}

TEST_F(ProgressTest, MessagesStandAboveTheBar) {
  columns = 60;
  auto progress = start(10);
  progress.update(5, "");
  written.clear();
  progress.message("saved");
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0] + written[1], "\r\x1b[Ksaved\n");
  EXPECT_THAT(written[2], HasSubstr("5/10"));
  columns = 0;
  auto plain = start(10);
  written.clear();
  plain.message("saved");
  EXPECT_THAT(written, ElementsAre("saved\n"));
}

TEST(BytesText, HasAUnitThatSuits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(36'912), "36.9 kB");
  EXPECT_EQ(bytes_text(1'234'567), "1.2 MB");
  EXPECT_EQ(bytes_text(5'100'000'000), "5.1 GB");
}

}  // namespace
}  // namespace zoo
