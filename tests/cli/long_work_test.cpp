// What takes long says so, before it begins or on the terminal.

#include "apps/console/long_work.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/support.h"
#include "tests/cli/terminal.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A screen of 80 columns, or a file, with a clock.
struct Screen {
  int columns = 80;
  double now = 1000;
  std::vector<std::string> written = {};

  ProgressOutput output() {
    return {.write = [this](std::string_view text) { written.emplace_back(text); },
            .columns = [this] { return columns; },
            .seconds = [this] { return now; }};
  }
};

TEST(LongWork, ShowsItsProgressAfterTwoSecondsOnATerminal) {
  Screen screen;
  auto show = progress_on_terminal("evaluating", "batches", screen.output());
  show(1, 10);
  screen.now += 1.9;
  show(2, 10);
  EXPECT_THAT(screen.written, IsEmpty());
  screen.now += 0.2;
  show(3, 10);
  ASSERT_EQ(screen.written.size(), 1U);
  EXPECT_THAT(screen.written[0], AllOf(HasSubstr("evaluating"), HasSubstr("3/10 batches")));
  screen.now += 2;
  show(5, 10);
  EXPECT_THAT(screen.written.back(), HasSubstr("2.0 s, 5.0 s left")) << "a batch takes a second";
  show = nullptr;
  EXPECT_EQ(screen.written.back(), "\n") << "the line ends with the work";
}

TEST(LongWork, IsSilentWhereItIsShortOrNobodySeesIt) {
  Screen screen;
  const auto show = progress_on_terminal("evaluating", "batches", screen.output());
  show(1, 2);
  screen.now += 60;
  show(2, 2);  // all that is left is the output itself
  Screen file{.columns = 0};
  EXPECT_FALSE(progress_on_terminal("evaluating", "batches", file.output()));
  say_on_terminal("measuring", file.output());
  EXPECT_THAT(screen.written, IsEmpty());
  EXPECT_THAT(file.written, IsEmpty());
  say_on_terminal("measuring \x1b[2J", screen.output());
  EXPECT_THAT(screen.written, ElementsAre("measuring \\x1b[2J\n"));
}

/// A run, its configuration, and long texts that end every command at their first byte, which is not UTF-8.
class LongWorkOfCommands : public ::testing::Test {
 protected:
  LongWorkOfCommands() {
    write_corpora(dir);
    dir.write("tiny.yaml", R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}
training: {steps: 4, batch_size: 2, evaluate_every: 2, checkpoint_every: 2, keep_checkpoints: 2, threads: 1}
generation: {max_new_tokens: 20}
)");
    dir.write("long.txt", "\xff" + std::string(4'000'000, 'a'));
    dir.write("longer.txt", "\xff" + std::string(30'000'000, 'a'));
  }
  void train() const {
    const auto outcome = run_zoo(dir, "train tiny.yaml --device cpu --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(Not(HasSubstr("learning")), Not(HasSubstr("reading")))) << "a short text";
  }
  /// Runs a command that says `line` and then finds that the text is damaged.
  void expect_said(const std::string& arguments, const std::string& line) const {
    const auto outcome = run_zoo(dir, arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, AllOf(StartsWith(line + "\n"), HasSubstr("not UTF-8"))) << arguments;
  }

  std::string path(const std::string& name) const { return (dir / name).string(); }

  TempDir dir;
};

TEST_F(LongWorkOfCommands, IsAnnouncedBeforeAVocabularyIsLearnt) {
  const std::string learning =
                        fmt::format("learning a vocabulary of 300 tokens from {} (4.0 MB)", path("long.txt")),
                    keys = " --set data.train=long.txt --set 'data.tokenizer={type: bpe, vocab_size: 300}'";
  expect_said("train tiny.yaml --device cpu" + keys, learning);
  expect_said("compare tiny.yaml --device cpu" + keys, learning);
  expect_said("bench tiny.yaml --device cpu" + keys, learning);
  const auto made = run_zoo(dir, "tokenizer train long.txt --type bpe --vocab-size 300 --out made");
  EXPECT_THAT(made.err, AllOf(HasSubstr("learning a vocabulary of 300 tokens from "),
                              HasSubstr("/long.txt (4.0 MB)\nzoo: ")));
  const auto small = run_zoo(dir, "tokenizer train text.txt --type bpe --vocab-size 300 --out small");
  EXPECT_EQ(small.code, 0);
  EXPECT_THAT(small.err, Not(HasSubstr("learning")));
}

TEST_F(LongWorkOfCommands, IsAnnouncedBeforeACorpusIsRead) {
  train();
  const auto reading = [&](const std::string& name) { return fmt::format("reading {} (30.0 MB)", name); };
  expect_said("train tiny.yaml --device cpu --set data.train=longer.txt --set data.tokenizer.type=byte",
              reading(path("longer.txt")));
  expect_said("evaluate run --device cpu --data longer.txt", reading("longer.txt"));
}

TEST_F(LongWorkOfCommands, IsShownOnATerminal) {
  train();
  const auto shown = [&](const std::string& arguments) {
    const auto outcome = TerminalSession(dir, arguments).finish();
    EXPECT_EQ(outcome.code, 0) << outcome.out;
    return outcome.out;
  };
  EXPECT_THAT(shown("average run --device cpu"),
              AllOf(HasSubstr("evaluating run\n"), HasSubstr("averaging 2 checkpoints\n"),
                    HasSubstr("evaluating the mean\n")));
  EXPECT_THAT(shown("bench run --device cpu --seconds 0.01 --scaling"),
              AllOf(HasSubstr("measuring training\n"), HasSubstr("measuring the reading of prompts\n"),
                    HasSubstr("measuring the writing of tokens\n"),
                    HasSubstr("measuring attention at growing lengths\n"),
                    HasSubstr("measuring model at growing lengths\n")));
  EXPECT_THAT(shown("generate run --device cpu --prompt to --num-samples 100"),
              HasSubstr("writing 100 texts of up to 20 tokens\n"));
  EXPECT_THAT(shown("generate run --device cpu --prompt to --num-samples 99"), Not(HasSubstr("writing")));
}

// A message before the first step comes before the number of steps is known.
TEST_F(LongWorkOfCommands, DoesNotChangeTheNumberOfStepsThatIsShown) {
  const auto trained = run_zoo(dir,
                               "train tiny.yaml --device cpu --set training.epochs=1 --set "
                               "'data.tokenizer={type: bpe, vocab_size: 5000}'");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("too few pieces for a vocabulary of 5000"));
  const auto at = trained.err.rfind(" steps in ");
  ASSERT_NE(at, trained.err.npos) << trained.err;
  const auto begin = trained.err.rfind(' ', at - 1) + 1;
  const auto steps = trained.err.substr(begin, at - begin);
  EXPECT_THAT(trained.err, HasSubstr(fmt::format("tiny {}/{} steps", steps, steps)));
  EXPECT_THAT(trained.err, Not(HasSubstr("tiny 0/")));
}

}  // namespace
}  // namespace zoo::testing
