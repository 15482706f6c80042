// LoRA and pairs of texts in the program.

#include <csignal>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTiny = R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 2, n_heads: 2, max_positions: 32, dropout: 0.1}
training: {steps: 6, batch_size: 2, evaluate_every: 3, checkpoint_every: 3, threads: 1}
generation: {max_new_tokens: 12, temperature: 0}
)";
constexpr const char* kTuned = R"(init_from: base
data: {train: text.txt}
training: {steps: 40, batch_size: 4, evaluate_every: 10, checkpoint_every: 1, threads: 1,
           optimizer: {lr: 0.01}, lora: {rank: 4, dropout: 0.1}}
generation: {max_new_tokens: 12, temperature: 0}
)";

class FineTuningProgram : public ::testing::Test {
 protected:
  FineTuningProgram() {
    write_corpora(dir);
    dir.write("tiny.yaml", kTiny);
    dir.write("tuned.yaml", kTuned);
    run("train tiny.yaml --device cpu --out base");
  }
  std::string run(const std::string& arguments, int code = 0) const {
    const auto outcome = run_zoo(dir, arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
    return code == 0 ? outcome.out : outcome.err;
  }

  TempDir dir;
};

TEST_F(FineTuningProgram, KilledAdaptersGoOnAndAreMerged) {
  run("train tuned.yaml --device cpu --out whole");
  for (const int64_t step : {0, 7, 22}) {
    ZooProcess process(dir, "train tuned.yaml --device cpu --out run --resume");
    const auto reached = [&] {
      const auto checkpoint = newest_checkpoint(dir / "run");
      return checkpoint && *step_of(*checkpoint) >= step;
    };
    for (int i = 0; i < 60000 && step > 0 && !reached(); ++i) ::usleep(1000);
    process.kill(SIGKILL);
    process.finish();
  }
  run("train tuned.yaml --device cpu --out run --resume");
  EXPECT_THAT(lasting_differences(dir / "run", dir / "whole"), IsEmpty());

  EXPECT_THAT(run("merge run merged"), HasSubstr("merged: 4 adapters merged"));
  const auto generated = [&](const std::string& name) {
    return json::parse(run("generate " + name + " --prompt 'to be' --device cpu --json"))
        .at("results")
        .dump();
  };
  EXPECT_NE(generated("run"), generated("base"));
  const auto loss = [&](const std::string& name) {
    return json::parse(run("evaluate " + name + " --device cpu --json")).at("loss").get<double>();
  };
  EXPECT_NEAR(loss("run"), loss("merged"), 1e-5);
  EXPECT_LT(loss("run"), loss("base"));
  EXPECT_THAT(run("merge run merged", 2), HasSubstr("merged: exists already"));
  EXPECT_THAT(run("merge base other", 2), HasSubstr("base: has no adapters"));
  EXPECT_THAT(run("train tuned.yaml --set init_from=run --device cpu --out x", 2), HasSubstr("zoo merge"));
  for (const auto* command : {"inspect", "bench --seconds 0.1"}) run(std::string(command) + " run");
  run("average run --last 2 --out mean --device cpu");
  EXPECT_TRUE(fs::exists(dir / "mean/base.safetensors"));
}

TEST_F(FineTuningProgram, TwoProcessesTrainTheSameAdapters) {
  run("train tuned.yaml --device cpu --out one --set model.dropout=0 --set training.lora.dropout=0");
  run("train tuned.yaml --device cpu --out two --nproc 2 --set model.dropout=0 --set training.lora.dropout=0 "
      "--set training.parallel.shard_optimizer=true");
  const auto loss = [&](const std::string& name) {
    return json::parse(run("evaluate " + name + " --device cpu --json")).at("loss").get<double>();
  };
  EXPECT_NEAR(loss("one"), loss("two"), 1e-4);
  EXPECT_EQ(read_file(dir / "one/base.safetensors"), read_file(dir / "two/base.safetensors"));
}

TEST_F(FineTuningProgram, MistakesAreOneLine) {
  const auto refused = [&](const std::string& set) {
    return run("train tuned.yaml --device cpu --out refused --set '" + set + "'", 2);
  };
  EXPECT_THAT(refused("training.lora.targets=[\"*.query\"]"),
              HasSubstr("no linear map of the model matches '*.query'"));
  EXPECT_THAT(refused("training.freeze=[x]"), HasSubstr("has no meaning beside lora"));
  EXPECT_THAT(refused("training.lora.rank=0"), HasSubstr("training.lora.rank must be between 1"));
  EXPECT_THAT(refused("data.pair_column=x"), HasSubstr("data.pair_column"));
}

TEST_F(FineTuningProgram, PairsAreClassified) {
  // The label says whether both texts are the same, so neither text alone tells it.
  std::string table = "one\tother\tlabel\n";
  for (int i = 0; i < 240; ++i) {
    const char* const a = i % 2 ? "x" : "y";
    const char* const b = i / 2 % 2 ? "x" : "y";
    table += fmt::format("{}\t{}\t{}\n", a, b, *a == *b ? "same" : "different");
  }
  dir.write("pairs.tsv", table);
  dir.write("pairs.yaml", R"(task: text_classification
data: {train: pairs.tsv, text_column: one, pair_column: [second, other], sequence_length: 8,
       tokenizer: {type: char}}
model: {architecture: encoder, d_model: 32, n_layers: 2, n_heads: 2, n_segments: 2, dropout: 0,
        max_positions: 16, init_std: 0.1}
training: {steps: 200, batch_size: 16, evaluate_every: 100, threads: 1, optimizer: {lr: 3.0e-3}}
)");
  run("train pairs.yaml --device cpu --out pairs");
  EXPECT_EQ(json::parse(run("evaluate pairs --device cpu --json")).at("accuracy"), 1.0);
  const auto label = [&](const std::string& arguments) {
    const auto results = json::parse(run("predict pairs --device cpu --json " + arguments)).at("results");
    std::string labels;
    for (const auto& result : results)
      labels += result.at("labels").at(0).at("label").get<std::string>() + " ";
    return labels;
  };
  EXPECT_EQ(label("--text x --pair x --text x --pair y"), "same different ");
  dir.write("lines.txt", "y\ty\ny\tx\n");
  EXPECT_EQ(label("--input lines.txt"), "same different ");
  dir.write("more.tsv", "other\tone\nx\ty\n");
  EXPECT_EQ(label("--input more.tsv"), "different ");
  EXPECT_THAT(run("predict pairs --device cpu --text x", 2),
              AllOf(HasSubstr("text 1: "), HasSubstr("one tab")));
  EXPECT_THAT(run("predict pairs --device cpu --text x --pair x --pair y", 2),
              HasSubstr("--pair: there are 2"));
  // With one segment, or none, the model tells the texts apart by the token between them.
  run("train pairs.yaml --device cpu --out x --set model.n_segments=1 --set training.steps=2");
  EXPECT_THAT(
      run("train pairs.yaml --device cpu --out x --set model.architecture=decoder --set model.n_segments=0",
          2),
      HasSubstr("data.pair_column"));
}

}  // namespace
}  // namespace zoo::testing
