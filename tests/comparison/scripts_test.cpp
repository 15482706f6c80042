// The scripts that draw learning curves and list studies.

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/files.h"
#include "pages/tables/report_markdown.h"
#include "tests/pages/made_up_results.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs scripts. Tests run in the project's directory.
class Scripts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  }
  /// Returns the exit code; the output goes to the files out and err.
  int run(const std::string& command) const {
    const int status = std::system(fmt::format("python3 scripts/{} >'{}' 2>'{}'", command,
                                               (dir_ / "out").string(), (dir_ / "err").string())
                                       .c_str());
    return WEXITSTATUS(status);
  }
  std::string in_dir(std::string_view name) const { return fmt::format("'{}'", (dir_ / name).string()); }

  TempDir dir_;
};

// Studies that scripts/studies.sh has not run here stay in the index.
TEST_F(Scripts, TheIndexOfStudiesIsMadeOfThePages) {
  dir_.write("studies/README.md", "old");
  dir_.write("studies/families.md", report_markdown(three_families()));
  auto other = three_families();
  other["title"] = "Other";
  dir_.write("studies/other.md", report_markdown(other));
  ASSERT_EQ(run("studies_index.py " + in_dir("studies")), 0);
  const auto index = read_file(dir_ / "studies/README.md");
  EXPECT_THAT(index,
              HasSubstr("## [An encoder, a decoder and both as classifiers](families.md)\n\nEncoders are"));
  EXPECT_THAT(index, HasSubstr("**Measured:** encoder-decoder has the best accuracy"));
  EXPECT_THAT(index, AllOf(HasSubstr("## [Other](other.md)\n"), HasSubstr("[results](other.json)")));
  EXPECT_THAT(index, Not(HasSubstr("old")));
}

TEST_F(Scripts, CurvesOfRunsWithOneNameAreBothDrawn) {
  dir_.write("a/run/metrics.jsonl", R"({"step": 1, "tokens": 10, "train_loss": 2.0})");
  dir_.write("b/run/metrics.jsonl", R"({"step": 1, "tokens": 10, "train_loss": 2.0})");
  dir_.write("empty/metrics.jsonl", "");
  ASSERT_EQ(run(fmt::format("plot_metrics.py {} {}", in_dir("a/run"), in_dir("b/run"))), 0)
      << read_file(dir_ / "err");
  EXPECT_THAT(read_file(dir_ / "out"), AllOf(HasSubstr("/a/run</text>"), HasSubstr("/b/run</text>")));
  EXPECT_EQ(run("plot_metrics.py " + in_dir("empty")), 1);
  EXPECT_EQ(read_file(dir_ / "err"),
            "plot_metrics: empty: there is no loss in metrics.jsonl yet: train it for longer\n");
}

}  // namespace
}  // namespace zoo::testing
