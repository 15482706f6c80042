// zoo average, and the averages of zoo train.

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Average : public ::testing::Test {
 protected:
  Average() {
    write_corpora(dir);
    dir.write("tiny.yaml", R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}
training: {steps: 6, batch_size: 2, evaluate_every: 3, checkpoint_every: 2, keep_checkpoints: 3, threads: 1}
generation: {max_new_tokens: 4}
)");
  }
  Outcome train(const std::string& arguments) const {
    const auto outcome = run_zoo(dir, "train tiny.yaml --device cpu " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }

  TempDir dir;
};

TEST_F(Average, MakesARunToWorkWith) {
  train("--out run");
  const auto before = files_below(dir / "run");
  const auto outcome = run_zoo(dir, "average run --last 2 --device cpu --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = json::parse(outcome.out);
  EXPECT_EQ(document.at("run"), "run-average");
  EXPECT_EQ(document.at("steps"), json({6, 4}));
  EXPECT_THAT(differences(before, files_below(dir / "run")), IsEmpty());

  const auto loss = [&](const std::string& run) {
    return json::parse(run_zoo(dir, "evaluate " + run + " --device cpu --json").out).at("loss").get<double>();
  };
  EXPECT_DOUBLE_EQ(loss("run"), document.at("loss_before").get<double>());
  EXPECT_DOUBLE_EQ(loss("run-average"), document.at("loss").get<double>());
  const auto generated = run_zoo(dir, "generate run-average --prompt 'to be' --device cpu");
  EXPECT_EQ(generated.code, 0) << generated.err;

  const auto text = run_zoo(dir, "average run --out mean --device cpu");
  EXPECT_THAT(text.out, AllOf(HasSubstr("run: validation loss "), HasSubstr("mean: validation loss "),
                              HasSubstr("the mean of steps 6, 4, 2\n")));
}

TEST_F(Average, ProblemsAreOneLine) {
  train("--out run");
  const auto expect_error = [&](const std::string& arguments, const std::string& part) {
    const auto outcome = run_zoo(dir, "average " + arguments + " --device cpu");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("zoo: "), HasSubstr(part)));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  };
  expect_error("", "RUN is required");
  expect_error("nowhere", "nowhere: no such run");
  expect_error("run --last 4", "run: has kept 3 checkpoints, not 4: average 3 or fewer (--last)");
  expect_error("run --last 1", "--last 1");
  expect_error("run --out run", "run: exists already");
}

// A run can have too few checkpoints for several reasons, and each needs another advice.
TEST_F(Average, AdvisesWhatWouldHelp) {
  const auto problem = [&](const std::string& run) {
    const auto outcome = run_zoo(dir, fmt::format("average {} --device cpu", run));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  train("--out rarely --set training.checkpoint_every=100");
  EXPECT_EQ(problem("rarely"),
            "zoo: rarely: has one checkpoint, and a mean needs at least two: train with "
            "training.checkpoint_every of at most 3 instead of 100, or longer\n");
  train("--out newest --set training.keep_checkpoints=1");
  EXPECT_THAT(problem("newest"), HasSubstr("train with training.keep_checkpoints of at least 2\n"));
  train("--out run");
  ASSERT_EQ(run_zoo(dir, "average run --device cpu").code, 0);
  EXPECT_EQ(
      problem("run-average"),
      "zoo: run-average: has no checkpoints to average: give a trained run that still has its directory "
      "checkpoints\n");
  for (const char* step : {"2", "4"}) fs::remove_all(dir / "run/checkpoints" / fmt::format("step-{}", step));
  EXPECT_THAT(problem("run --out other"), HasSubstr("the others were deleted\n"));
  // A run that was stopped.
  auto config = read_file(dir / "run/config.yaml");
  config.replace(config.find("steps: 6"), 8, "steps: 9");
  dir.write("run/config.yaml", config);
  EXPECT_THAT(problem("run --out other"), HasSubstr("stopped after step 6: go on with it (--resume)\n"));
}

TEST_F(Average, OfTheLastCheckpointsIsTriedAtTheEndOfTraining) {
  const auto outcome = train("--out run --set training.average_last=3");
  EXPECT_THAT(outcome.err, HasSubstr("mean of the weights at steps 6, 4, 2: validation  bits_per_byte "));
}

}  // namespace
}  // namespace zoo::testing
