// Questions with choices on the command line: zoo evaluate --choices and zoo compare --choices; and the
// slices of texts on which finished language models are compared. (The rule of lm-evaluation-harness:
// tests/parity/choices_test.py.)

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Two language models, a translator and a classifier, and questions.
class Choices : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_corpora(*dir_);
    dir_->write("common.yaml", R"(
task: language_modeling
data: {train: text.txt, sequence_length: 24, tokenizer: {type: byte}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 48, dropout: 0}
training: {steps: 4, batch_size: 8, evaluate_every: 2, threads: 1}
)");
    train("one", "");
    train("other",
          "--set training.seed=2 --set model.norm=rms_norm --set data.tokenizer.type=bpe --set "
          "data.tokenizer.vocab_size=290");
    train("answers",
          "--set task=text_to_text --set data.train=pairs --set model.architecture=encoder_decoder");
    train("classes",
          "--set task=text_classification --set data.train=table.tsv --set model.architecture=encoder");
    std::string questions;
    for (int i = 0; i < 12; ++i)
      questions += fmt::format(
          "{{\"context\": \"Question {}: yes?\\nAnswer:\", \"choices\": [\"yes\", \"no\", \"perhaps\"], "
          "\"answer\": {}}}\n",
          i, i % 3);
    dir_->write("asked.jsonl", questions);
    dir_->write("shots.jsonl", "{\"context\": \"Q\", \"choices\": [\"a\", \"b\"], \"answer\": 0}\n");
    std::string text;
    for (int i = 0; i < 400; ++i) text += fmt::format("line {} of the text, and words\n", i);
    dir_->write("new.txt", text);
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static void train(const std::string& run, const std::string& overrides) {
    const auto outcome = zoo(fmt::format("train common.yaml --device cpu --out {} {}", run, overrides));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static Outcome zoo(const std::string& arguments) { return run_zoo(*dir_, arguments); }
  static json document(const std::string& arguments) {
    const auto outcome = zoo(arguments + " --device cpu --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  static void expect_error(const std::string& arguments, const std::string& problem) {
    SCOPED_TRACE(arguments);
    const auto outcome = zoo(arguments + " --device cpu");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(StartsWith("zoo: "), HasSubstr(problem)));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  static std::vector<json> lines_of(const std::string& file) {
    std::vector<json> lines;
    std::istringstream text(read_file(*dir_ / file));
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
  }

  static inline TempDir* dir_ = nullptr;
};

TEST_F(Choices, AreAskedOfAnyModelThatWrites) {
  for (const char* const run : {"one", "other", "answers"}) {
    SCOPED_TRACE(run);
    const auto scores =
        document(fmt::format("evaluate {} --choices asked.jsonl --examples {}.jsonl", run, run));
    EXPECT_EQ(scores["data"], "asked.jsonl");
    const auto examples = lines_of(fmt::format("{}.jsonl", run));
    ASSERT_EQ(examples.size(), 12U);
    double right = 0;
    for (const auto& example : examples) {
      const auto likelihoods = example["log_likelihoods"].get<std::vector<double>>();
      ASSERT_EQ(likelihoods.size(), 3U);
      EXPECT_EQ(example["chosen"], std::ranges::max_element(likelihoods) - likelihoods.begin());
      EXPECT_EQ(example["right"], example["chosen"] == example["answer"]);
      right += example["right"].get<bool>() ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(scores["acc"], right / 12);
    for (const char* const key : {"acc_norm", "acc_norm_stderr", "acc_stderr", "bits_per_byte",
                                  "bits_per_byte_stderr", "loss", "tokens"})
      EXPECT_TRUE(scores.contains(key)) << key;
  }
  const auto shot = document("evaluate one --choices asked.jsonl --shots 1 --shots-from shots.jsonl");
  const auto other = document(
      "evaluate one --choices asked.jsonl --shots 1 --shots-from shots.jsonl --delimiter ': ' --separator "
      "';'");
  EXPECT_NE(shot["loss"], document("evaluate one --choices asked.jsonl")["loss"]);
  EXPECT_NE(shot["loss"], other["loss"]);
}

TEST_F(Choices, ThatCannotBeAskedAreOneLine) {
  expect_error("evaluate classes --choices asked.jsonl", "use a decoder or an encoder-decoder");
  expect_error("evaluate one --choices nowhere.jsonl", "nowhere.jsonl");
  expect_error("evaluate one --choices new.txt", "NAME.jsonl");
  expect_error("evaluate one --choices asked.jsonl --shots 1", "--shots-from");
  expect_error("evaluate one --choices asked.jsonl --shots-from shots.jsonl", "--shots");
  expect_error("evaluate one --choices asked.jsonl --shots 2 --shots-from shots.jsonl",
               "1 questions, and data.choices.shots asks for 2");
  expect_error("evaluate one --choices asked.jsonl --data new.txt", "--data");
  expect_error("evaluate one --shots 1", "--choices");
  expect_error("compare one classes --choices asked.jsonl --out none", "--choices is for models that write");
  expect_error("compare one other --choices asked.jsonl --shots 1 --out none", "--shots-from");
  expect_error("compare one other --choices asked.jsonl --data new.txt --out none", "--choices");
  expect_error("compare common.yaml --choices asked.jsonl --out none", "--choices is for finished runs");
}

TEST_F(Choices, RankFinishedModels) {
  const auto results = document(
      "compare one other answers --choices asked.jsonl --shots 1 --shots-from shots.jsonl --no-speed --out "
      "ranked");
  EXPECT_EQ(results["task"], "choices");
  EXPECT_EQ(results["metric"]["key"], "acc");
  ASSERT_EQ(results["runs"].size(), 3U);
  constexpr const char* compared[] = {"one", "other", "answers"};
  for (size_t i = 0; i < 3; ++i) {
    const auto& run = results["runs"][i];
    const auto alone = document(
        fmt::format("evaluate {} --choices asked.jsonl --shots 1 --shots-from shots.jsonl", compared[i]));
    EXPECT_EQ(run["metric"]["mean"], alone["acc"]) << compared[i];
    EXPECT_EQ(run["seeds"][0]["valid"]["acc_norm"], alone["acc_norm"]);
    if (i > 0) {
      EXPECT_EQ(run["versus_baseline"]["over"], "examples");
      EXPECT_EQ(run["versus_baseline"]["n"], 12);
    }
  }
  EXPECT_THAT(results["command"], HasSubstr("--choices asked.jsonl --shots 1 --shots-from shots.jsonl"));
  EXPECT_THAT(read_file(*dir_ / "ranked/report.md"), HasSubstr("accuracy"));
}

TEST_F(Choices, QuestionsOfAnArticleCountAsOne) {
  std::string questions;
  int64_t n = 0;
  for (auto question : lines_of("asked.jsonl")) {
    question["article"] = n++ / 3;
    questions += question.dump() + "\n";
  }
  dir_->write("articles.jsonl", questions);
  const auto results =
      document("compare one other --choices articles.jsonl --documents article --no-speed --out articles");
  const auto& versus = results["runs"][1]["versus_baseline"];
  EXPECT_EQ(versus["over"], "documents");
  EXPECT_EQ(versus["n"], 4);
  EXPECT_THAT(results["command"], HasSubstr("--documents article"));
  EXPECT_THAT(read_file(*dir_ / "articles/report.md"), HasSubstr("4 documents"));
  // Notes about the trainings come first.
  const auto none =
      zoo("compare one other --choices articles.jsonl --documents chapter --out none --device cpu");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err,
              HasSubstr("articles.jsonl: no column \"chapter\"; there are: answer, article, choices"));
  expect_error("compare one other --documents article --out none", "--data or --choices");
  dir_->write("tasks.yaml", "tasks: {short: writer.yaml}\nvariants: {plain: {}}\n");
  expect_error("compare tasks.yaml --documents article --out none", "--data or --choices");
}

TEST_F(Choices, TextsAreComparedInSlices) {
  const auto results = document("compare one other --data new.txt --no-speed --out sliced");
  ASSERT_EQ(results["runs"].size(), 2U);
  // How long they were trained is known. How frequent the targets of their training were, is not.
  EXPECT_GT(results["budget"]["amount"], 0);
  for (const auto& notice : results["notices"])
    EXPECT_THAT(notice["text"].get<std::string>(), ::testing::Not(HasSubstr("No checkpoint shows")));
  EXPECT_TRUE(results["runs"][0]["seeds"][0]["learnt"].is_null());
  const auto& slices = results["runs"][1]["slices"];
  std::vector<std::string> kinds;
  for (const auto& slice : slices) {
    if (kinds.empty() || kinds.back() != slice["kind"]) kinds.push_back(slice["kind"]);
    EXPECT_TRUE(slice.contains("verdict") && slice.contains("low") && slice.contains("p_corrected")) << slice;
    EXPECT_NEAR(slice["value"].get<double>() - slice["baseline_value"].get<double>(), slice["difference"],
                1e-9);
  }
  EXPECT_THAT(kinds, ::testing::ElementsAre("position", "frequency", "novelty", "characters", "length"));
  double of_characters = 0, share = 0;
  for (const auto& slice : slices) {
    if (slice["kind"] != "characters") continue;
    of_characters += slice["share"].get<double>() * slice["value"].get<double>();
    share += slice["share"].get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(of_characters, results["runs"][1]["metric"]["mean"], 0.01) << "but for the first token";
  EXPECT_THAT(read_file(*dir_ / "sliced/report.md"), HasSubstr("## Where they differ"));
  EXPECT_THAT(read_file(*dir_ / "sliced/report.html"), HasSubstr("words seen in the 1,000 bytes before"));
}

}  // namespace
}  // namespace zoo::testing
