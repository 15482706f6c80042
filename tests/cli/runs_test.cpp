// zoo runs.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Runs, AreListedAsATableAndAsJson) {
  TempDir dir;
  write_corpora(dir);
  dir.write("tiny.yaml", R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}
training: {steps: 2, batch_size: 2, threads: 1}
)");
  for (const std::string width : {"16", "24"}) {
    const auto trained =
        run_zoo(dir, "train tiny.yaml --device cpu --set model.d_ff=" + width + " --out runs/" + width);
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  dir.write("runs/bad/config.yaml", "name: [");
  std::filesystem::create_directory(dir / "runs/x\x1b[2J");
  std::filesystem::copy_file(dir / "runs/16/config.yaml", dir / "runs/x\x1b[2J/config.yaml");
  std::filesystem::create_directory(dir / "runs/\xff");
  std::filesystem::copy_file(dir / "runs/16/config.yaml", dir / "runs/\xff/config.yaml");

  const auto table = run_zoo(dir, "runs");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("what differs"));
  EXPECT_THAT(table.out, HasSubstr("d_ff=24"));
  EXPECT_THAT(table.out, HasSubstr("damaged"));
  EXPECT_THAT(table.out, HasSubstr("finished  2/2"));
  EXPECT_THAT(table.out, Not(HasSubstr("\x1b")));

  const auto document = json::parse(run_zoo(dir, "runs runs --json").out);
  ASSERT_EQ(document.at("runs").size(), 5U);
  for (const auto& run : document["runs"]) {
    if (run["run"] != "24") continue;
    EXPECT_EQ(run["state"], "finished");
    EXPECT_EQ(run["architecture"], "decoder");
    EXPECT_EQ(run["differs"], json({{"model.d_ff", "24"}}));
    EXPECT_GT(run["best"], 0);
  }
  const auto missing = run_zoo(dir, "runs nowhere");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("there is no such directory"));
}

TEST(Runs, AreLeftAtACheckpoint) {
  TempDir dir;
  write_corpora(dir);
  dir.write("tiny.yaml", R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}
training: {steps: 4, batch_size: 2, log_every: 1, checkpoint_every: 2, keep_checkpoints: 3, threads: 1}
)");
  ASSERT_EQ(run_zoo(dir, "train tiny.yaml --device cpu").code, 0);
  const std::string lr = " --set training.optimizer.lr=0.5 --device cpu";
  const auto forked = run_zoo(dir, "train runs/tiny/ --from-step 2" + lr);
  ASSERT_EQ(forked.code, 0) << forked.err;
  EXPECT_THAT(forked.err, HasSubstr("goes on after step 2 of 4"));
  EXPECT_TRUE(std::filesystem::exists(dir / "runs/tiny-from-2/model.safetensors"));
  const auto again = run_zoo(dir, "train runs/tiny --from-step 2" + lr);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  EXPECT_EQ(run_zoo(dir, "train runs/tiny --from-step 2 --overwrite --out runs/tiny-from-2" + lr).code, 0);
  const auto missing = run_zoo(dir, "train runs/tiny --from-step 3" + lr);
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("no checkpoint of step 3, but of 2, 4"));
  EXPECT_EQ(run_zoo(dir, "train tiny.yaml --from-step 2").code, 2);
  EXPECT_THAT(run_zoo(dir, "train runs/gone --from-step 2").err, HasSubstr("runs/gone: no such run"));
  const auto processes = run_zoo(dir, "train runs/tiny --from-step 2 --nproc 2 --out runs/both" + lr);
  ASSERT_EQ(processes.code, 0) << processes.err;
  EXPECT_THAT(processes.err, HasSubstr("goes on after step 2 of 4"));
  const auto no_gpu = run_zoo(dir, "train runs/tiny --from-step 2 --out runs/no-gpu --device cuda:99");
  EXPECT_EQ(no_gpu.code, 2) << no_gpu.err;
  EXPECT_FALSE(std::filesystem::exists(dir / "runs/no-gpu"));
}

}  // namespace
}  // namespace zoo::testing
