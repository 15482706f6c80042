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

class ProgressTest : public ::testing::Test {
 protected:
  Progress start(int64_t total, int64_t first = 0) {
    ProgressOutput output;
    output.write = [this](std::string_view text) { written.emplace_back(text); };
    output.columns = [this] { return columns; };
    output.seconds = [this] { return now; };
    return Progress("train", total, first, output);
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
  EXPECT_THAT(
      written,
      ElementsAre("train 1/100  loss 1  0:00, 0:10 left\n", "train 47/100  loss 47  0:05, 0:05 left\n",
                  "train 93/100  loss 93  0:10, 0:00 left\n", "train 100/100  loss 100  0:11\n"));
}

TEST_F(ProgressTest, TheLastStateIsShownWhenATaskStopsEarly) {
  {
    auto progress = start(100);
    progress.update(1, "");
    progress.update(2, "stopped");
  }
  EXPECT_THAT(written,
              ElementsAre("train 1/100  0:00, 0:00 left\n", "train 2/100  stopped  0:00, 0:00 left\n"));
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
  EXPECT_THAT(written, ElementsAre("train 910/1000  0:10, 1:30 left\n"));
}

TEST_F(ProgressTest, LongTimesAndUnknownEnds) {
  {
    auto progress = start(1000000);
    now += 36;
    progress.update(10, "");
    now += 36;
    progress.update(20, "");
  }
  EXPECT_THAT(written.front(), HasSubstr("0:36, 999:59:24 left"));
  written.clear();
  auto endless = start(0);
  now += 3;
  endless.update(5, "");
  EXPECT_THAT(written, ElementsAre("train 5  0:03\n"));
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
  EXPECT_EQ(written[0], "\rtrain   0% [....................] 1/1000  s  0:00, 0:00 left\x1b[K");
  EXPECT_EQ(written[written.size() - 2], "\rtrain 100% [####################] 1000/1000  s  0:01\x1b[K");
  EXPECT_EQ(written.back(), "\n");
}

TEST_F(ProgressTest, LinesAreCutToTheTerminal) {
  columns = 30;
  auto progress = start(10);
  progress.update(5, "äöü");
  EXPECT_EQ(written.back(), "\rtrain  50% [##########.......\x1b[K");
  columns = 49;
  now += 1;
  progress.update(6, "äöüäöü");
  EXPECT_EQ(written.back(), "\rtrain  60% [############........] 6/10  äöüäöü  \x1b[K");
  columns = 1;
  now += 1;
  progress.update(7, "");
  EXPECT_EQ(written.back(), "\rt\x1b[K");
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

}  // namespace
}  // namespace zoo
