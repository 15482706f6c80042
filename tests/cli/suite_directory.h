#pragma once
// Suites whose tests use what one training has left.

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/cli/support.h"

namespace zoo::testing {

/// A directory for all tests of a suite, which SetUpTestSuite() makes and fills.
template <class Suite>
class SuiteDirectory : public ::testing::Test {
 protected:
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  /// Runs the program in the directory.
  static Outcome zoo(const std::string& arguments, std::string_view input = "") {
    return ZooProcess(*dir_, arguments, {.input = input}).finish();
  }
  /// The one line with which the program refuses its arguments.
  static std::string problem(const std::string& arguments) {
    const auto outcome = zoo(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.err;
  }

  static inline TempDir* dir_ = nullptr;
};

}  // namespace zoo::testing
