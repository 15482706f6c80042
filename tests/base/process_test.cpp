#include "base/process.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/files.h"
#include "io/output_file.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

/// A child that runs a script; its output goes to the file "log".
ChildProcess shell(const TempDir& dir, const std::string& script, ProcessOptions options = {}) {
  const OutputFile log(dir / "log", OutputFile::Mode::kAppend);
  options.command = {"/bin/sh", "-c", script};
  options.output = log.descriptor();
  return ChildProcess(options);
}

TEST(ChildProcess, TellsTheExitCodeAndKeepsTheOutput) {
  const TempDir dir;
  auto child = shell(dir, "echo one; echo two >&2; exit 3");
  EXPECT_EQ(child.wait(), 3);
  EXPECT_EQ(child.exit_code(), 3);
  EXPECT_EQ(read_file(dir / "log"), "one\ntwo\n");
  EXPECT_EQ(shell(dir, "echo three").wait(), 0);
  EXPECT_EQ(read_file(dir / "log"), "one\ntwo\nthree\n");
}

TEST(ChildProcess, HasItsOwnVariablesAndNoInput) {
  const TempDir dir;
  ProcessOptions options;
  options.environment = {{"HOME", "/nowhere"}, {"ZOO_OTHER", "new"}};
  EXPECT_EQ(shell(dir, "cat; echo $HOME $ZOO_OTHER", options).wait(), 0);
  EXPECT_EQ(read_file(dir / "log"), "/nowhere new\n");
}

TEST(ChildProcess, EndsWithASignal) {
  const TempDir dir;
  auto child = shell(dir, "sleep 60");
  EXPECT_EQ(child.exit_code(), std::nullopt);
  child.interrupt();
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
}

// Without a handler, the signal waits for ever. (A shell as the child would unblock it.)
TEST(ChildProcess, CanBeSparedUntilItHasAHandler) {
  ProcessOptions options;
  options.command = {"/bin/sleep", "0.3"};
  options.early_stop = EarlyStop::waits;
  ChildProcess child(options);
  child.interrupt();
  EXPECT_EQ(child.wait(), 0);
}

TEST(ChildProcess, DoesNotOutliveItsOwner) {
  const TempDir dir;
  {
    const auto child =
        shell(dir, "trap 'echo told; exit 0' TERM; echo ready; sleep 0.2; while :; do sleep 0.05; done");
  }
  // Either SIGTERM came before the trap was set, or the child reported it.
  EXPECT_THAT(read_file(dir / "log"), ::testing::AnyOf(HasSubstr("told"), ::testing::IsEmpty()));
}

TEST(ChildProcess, SaysWhyItCannotStart) {
  const TempDir dir;
  try {
    ChildProcess child({.command = {(dir / "missing").string()}});
    FAIL();
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing': No such file"));
  }
}

TEST(ThisProgram, Exists) { EXPECT_TRUE(std::filesystem::is_regular_file(this_program())); }

TEST(RunInChild, ReturnsTheValue) {
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(run_in_child([&] { return large; }).value, large);
  EXPECT_EQ(run_in_child([] { return std::string(); }).value, "");
}

TEST(RunInChild, ACodeThatEndsItsProcessIsNoEndOfThisOne) {
  bool changed = false;
  const auto ended = run_in_child([&]() -> std::string {
    changed = true;
    std::cout << "for nobody" << std::endl;
    std::cerr << "beyond repair" << std::endl;
    std::exit(0);
  });
  EXPECT_EQ(ended.value, std::nullopt);
  EXPECT_EQ(ended.output, "beyond repair\n");
  EXPECT_FALSE(changed);
  const auto crashed = run_in_child([]() -> std::string { std::abort(); });
  EXPECT_EQ(crashed.value, std::nullopt);
  const auto thrown = run_in_child([]() -> std::string { throw DataError("not so"); });
  EXPECT_EQ(thrown.value, std::nullopt);
  EXPECT_EQ(thrown.output, "not so");
}

}  // namespace
}  // namespace zoo::testing
