// Directories in Hugging Face's form, in the commands: out of a run, into a run, and side by side.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/files.h"
#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What GPT-2 computes, with a vocabulary that transformers can read.
constexpr const char* kLikeGpt2 = R"(
name: tiny
task: language_modeling
data: {train: train.txt, valid: valid.txt, sequence_length: 24,
       tokenizer: {type: byte}}
model: {architecture: decoder, d_model: 16, n_layers: 2, n_heads: 2, max_positions: 32, dropout: 0,
        position: learned, activation: gelu_tanh, norm_placement: pre, tie_embeddings: true}
training: {steps: 3, batch_size: 4, threads: 1}
)";

class HubDirectories : public ::testing::Test {
 protected:
  HubDirectories() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the ship came home at night and nobody heard the bell\n";
    for (const char* name : {"train.txt", "valid.txt", "other.txt"}) dir.write(name, text);
    dir.write("tiny.yaml", kLikeGpt2);
    run("train tiny.yaml --device cpu --out tiny");
    run("export tiny hub");
  }
  std::string run(const std::string& arguments, int code = 0) const {
    const auto outcome = run_zoo(dir, arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
    return code == 0 ? outcome.out : outcome.err;
  }

  TempDir dir;
};

TEST_F(HubDirectories, AreComparedOnFilesOfTheUser) {
  const auto results = json::parse(run("compare hub tiny --data other.txt --out side --json --device cpu"));
  ASSERT_EQ(results["runs"].size(), 2);
  const auto scores = results["runs"][0]["seeds"][0]["valid"];
  for (const auto& one : results["runs"]) {
    EXPECT_EQ(one["seeds"][0]["end"], "elsewhere");
    EXPECT_NEAR(one["seeds"][0]["valid"]["loss"].get<double>(), scores["loss"].get<double>(), 1e-5);
  }
  EXPECT_EQ(results["budget"]["amount"], 0);
  // The report has no budget, and the directory of the Hub has no new files.
  const auto report = read_file(dir / "side/report.md", Follow::nothing);
  EXPECT_THAT(report, AllOf(HasSubstr("Seeds"), Not(HasSubstr("Budget of a run"))));
  EXPECT_FALSE(fs::exists(dir / "hub/evaluation.json"));
  // Nothing is removed that no comparison wrote.
  dir.write("side/models/mine.txt", "mine");
  EXPECT_THAT(run("compare hub tiny --data other.txt --out side --overwrite --device cpu", 2),
              HasSubstr("mine.txt"));
}

// A comparison copies models from elsewhere. The copy follows its source, and its scores follow the data.
TEST_F(HubDirectories, AreComparedAsTheyAreNow) {
  const auto loss = [&](const std::string& option) {
    const auto results =
        json::parse(run("compare hub --data other.txt --out side --json --device cpu" + option));
    return results["runs"][0]["seeds"][0]["valid"]["loss"].get<double>();
  };
  const double before = loss("");
  run("train tiny.yaml --device cpu --out longer --set training.steps=30");
  fs::remove_all(dir / "hub");
  run("export longer hub");
  const double after = loss(" --overwrite");
  EXPECT_LT(after, before - 0.01);
  dir.write("other.txt",
            "Quite another text, of which a model knows nothing: 1234567890, and so on & so forth.\n");
  EXPECT_GT(loss(" --resume"), after + 0.01);
}

// A model alone: ids go in and out, and what imports can be exported again.
TEST_F(HubDirectories, WithoutATokenizerDoWhatNeedsNoText) {
  const auto ids_of = [&](const std::string& place) {
    const auto written = json::parse(run("generate " + place +
                                         " --prompt-ids 5,9,77 --max-new-tokens 6 --temperature 0 --json "
                                         "--device cpu"));
    return written["results"][0]["outputs"][0]["ids"];
  };
  const auto expected = ids_of("hub");
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) fs::remove(dir / "hub" / name);
  EXPECT_EQ(ids_of("hub"), expected);
  run("import hub again");
  EXPECT_EQ(ids_of("again"), expected);
  run("export again again.hf");
  EXPECT_FALSE(fs::exists(dir / "again.hf/tokenizer.json"));
  EXPECT_EQ(ids_of("again.hf"), expected);
  run("inspect hub");
  EXPECT_THAT(run("generate hub --prompt ship --json --device cpu", 2), HasSubstr("has no tokenizer"));
  EXPECT_THAT(run("generate hub --prompt-ids 5,9 --device cpu", 2), HasSubstr("--json"));
}

// A published model has no part that training alone needs.
TEST_F(HubDirectories, HaveExpertsWithoutTheLoadsOfTraining) {
  run("train tiny.yaml --device cpu --out mixture --set model.position=rotary --set model.activation=swiglu "
      "--set model.norm=rms_norm --set model.bias=false --set model.tie_embeddings=false "
      "--set \"model.experts={count: 4, d_ff: 16, balance_over: step, capacity: 1.5}\"");
  run("export mixture mixture.hf");
  const auto likely = [&](const std::string& model) {
    return run("score " + model + " --text \"the ship\"");
  };
  EXPECT_EQ(likely("mixture"), likely("mixture.hf"));
}

TEST_F(HubDirectories, NeedDataForAComparison) {
  EXPECT_THAT(run("compare hub tiny --out x --device cpu", 2), HasSubstr("--data FILE"));
  EXPECT_THAT(run("compare tiny.yaml --data other.txt --out x --device cpu", 2),
              HasSubstr("tiny.yaml: --data is for finished runs"));
  EXPECT_THAT(run("compare hub --data missing.txt --out x --device cpu", 2), HasSubstr("missing.txt"));
}

}  // namespace
}  // namespace zoo::testing
