// How trainings in processes of their own end.

#include "comparison/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

class RunnerTest : public ::testing::Test {
 protected:
  ComparisonPlan plan() const {
    Comparison comparison;
    comparison.settings.seeds = 1;
    comparison.variants.push_back({.name = "a", .experiment = world_.experiment("language_modeling")});
    return make_plan(comparison);
  }
  /// Options with a program that ends at once without training.
  RunnerOptions options(std::string_view dir) const {
    return {.dir = world_.path(dir), .program = "/bin/true"};
  }

  TinyWorld world_;
};

// Ctrl-C reaches all processes of the terminal: a training may end before the runner notices.
TEST_F(RunnerTest, ATrainingThatEndsAsAllAreToldToIsNoFailure) {
  auto stopped = options("c");
  int asked = 0;
  stopped.should_stop = [&] { return ++asked > 1; };
  EXPECT_EQ(train_all(plan(), stopped), RunnerEnd::interrupted);
  EXPECT_THAT(message_of<SystemError>([&] { train_all(plan(), options("d")); }),
              ::testing::HasSubstr("ExistingRun::resume goes on"));
}

TEST_F(RunnerTest, PassesOnThatATrainingWasRefused) {
  world_.dir().write("refuse", "#!/bin/sh\necho 'zoo: x.txt: is wrong'\nexit 2\n");
  std::filesystem::permissions(world_.path("refuse"), std::filesystem::perms::owner_all);
  auto refused = options("c");
  refused.program = world_.path("refuse");
  EXPECT_THAT(message_of<DataError>([&] { train_all(plan(), refused); }),
              ::testing::HasSubstr("a, seed 1: x.txt: is wrong; see "));
}

TEST_F(RunnerTest, SaysWhereItCannotWrite) {
  world_.dir().write("text.txt", "");
  EXPECT_THAT(message_of<SystemError>([&] { train_all(plan(), options("text.txt/x")); }),
              ::testing::HasSubstr("cannot make '"));
}

}  // namespace
}  // namespace zoo::testing
