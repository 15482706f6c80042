// zoo predict and zoo embed: classes and vectors of new texts.

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"
#include "tests/cli/terminal.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::array kFamilies{"encoder", "decoder", "encoder_decoder"};

/// A directory with corpora, a classifier of each family, named like the family, and runs that do not
/// classify: "writer", "filler", "translator".
class Predict : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_corpora(*dir_);
    std::string table = "sentence\tlabel\n", test = "label\tsentence\n";
    for (int i = 0; i < 45; ++i) {
      table += i % 3 == 0   ? "good good good\tpraise\n"
               : i % 3 == 1 ? "bad bad\tblame\n"
                            : "so so so so\tdark doubt\n";
      test += fmt::format("{}\t{}\n",
                          i % 4 == 0   ? "praise"
                          : i % 4 == 1 ? "blame"
                                       : "dark doubt",
                          i % 3 == 0   ? "good good"
                          : i % 3 == 1 ? "bad good bad"
                                       : "so good so so so so so so");
    }
    dir_->write("three.tsv", table);
    dir_->write("test.tsv", test);
    dir_->write("common.yaml", R"(
task: text_classification
data: {train: three.tsv, valid: three.tsv, sequence_length: 20, tokenizer: {type: char}}
model: {d_model: 16, n_layers: 1, n_heads: 2, max_positions: 32, dropout: 0, init_std: 0.2}
training: {steps: 100, batch_size: 15, optimizer: {lr: 0.01}, schedule: {warmup_steps: 5}, evaluate_every: 30,
           threads: 1}
)");
    for (const std::string family : kFamilies) train(family, "--set model.architecture=" + family);
    train("writer", "--set task=language_modeling --set data.train=text.txt --set data.valid=text.txt");
    train("filler",
          "--set task=masked_language_modeling --set model.architecture=encoder --set data.train=text.txt "
          "--set "
          "data.valid=text.txt");
    train("translator",
          "--set task=text_to_text --set model.architecture=encoder_decoder --set data.train=pairs --set "
          "data.valid=pairs");
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static void train(const std::string& run, const std::string& overrides) {
    const auto steps = overrides.find("task=") == overrides.npos ? "" : "--set training.steps=2";
    const auto outcome =
        zoo(fmt::format("train common.yaml --device cpu --out {} {} {}", run, overrides, steps));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static Outcome zoo(const std::string& arguments, std::string_view input = "") {
    return run_zoo(*dir_, arguments, {.input = input});
  }
  /// The output of a command, which must succeed and print nothing on stderr.
  static std::string output(const std::string& arguments, std::string_view input = "") {
    const auto outcome = zoo(arguments + " --device cpu", input);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.out;
  }
  static json document(const std::string& arguments, std::string_view input = "") {
    return json::parse(output(arguments + " --json", input));
  }
  static void expect_error(const std::string& arguments, const std::string& problem,
                           std::string_view input = "") {
    SCOPED_TRACE(arguments);
    const auto outcome = zoo(arguments + " --device cpu", input);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(StartsWith("zoo: "), HasSubstr(problem)));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  static const TempDir& dir() { return *dir_; }

 private:
  static inline TempDir* dir_ = nullptr;
};

/// The second column of test.tsv without its header, and the first.
std::vector<std::string> column(const std::string& table, size_t index) {
  std::vector<std::string> result;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    result.push_back(index == 0 ? line.substr(0, tab) : line.substr(tab + 1));
  }
  result.erase(result.begin());
  return result;
}

TEST_F(Predict, PrintsTheDocumentedJson) {
  for (const std::string family : kFamilies) {
    SCOPED_TRACE(family);
    const auto all = document("predict " + family + " --text 'good good good' --text 'bad bad'");
    EXPECT_THAT(keys(all), ::testing::ElementsAre("results", "weights"));
    ASSERT_THAT(all["results"], SizeIs(2));
    const auto& first = all["results"][0];
    EXPECT_THAT(keys(first), ::testing::ElementsAre("input", "labels"));
    EXPECT_EQ(first["input"], "good good good");
    ASSERT_THAT(first["labels"], SizeIs(3));
    EXPECT_EQ(first["labels"][0]["label"], "praise");
    EXPECT_EQ(all["results"][1]["labels"][0]["label"], "blame");
    double sum = 0, before = 1;
    for (const auto& label : first["labels"]) {
      EXPECT_THAT(keys(label), ::testing::ElementsAre("label", "probability"));
      const double probability = label["probability"];
      EXPECT_LE(probability, before);
      before = probability;
      sum += probability;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_THAT(document("predict " + family + " --text so --top 2")["results"][0]["labels"], SizeIs(2));
  }
}

TEST_F(Predict, PrintsALineForEachText) {
  const std::string input = "good good good\r\n\nso so so so\n";
  const auto lines = output("predict encoder", input);
  EXPECT_THAT(lines,
              ::testing::MatchesRegex("praise\t0\\.[0-9]+\t[^\n]*\n\ndark doubt\t0\\.[0-9]+\t[^\n]*\n"));
  EXPECT_EQ(std::ranges::count(lines, '\t'), 10) << "three labels with probabilities, twice";
  EXPECT_THAT(output("predict encoder --top 1", input),
              ::testing::MatchesRegex("praise\t0\\.[0-9]+\n\ndark doubt\t0\\.[0-9]+\n"));
  dir().write("lines.txt", input);
  dir().write("more.txt", "bad bad\n");
  EXPECT_EQ(output("predict encoder --input lines.txt"), lines);
  // Texts of the command line come first, then the files.
  const auto all = document("predict encoder --input lines.txt more.txt --text 'bad bad'")["results"];
  ASSERT_THAT(all, SizeIs(5));
  EXPECT_EQ(all[0], all[4]);
  EXPECT_EQ(all[1]["input"], "good good good");
  EXPECT_EQ(all[2], json({{"input", ""}, {"labels", json::array()}}));
}

// The same texts have the same classes in an evaluation. Some texts of the table are cut.
TEST_F(Predict, AgreesWithTheEvaluation) {
  const auto labels = column(read_file(dir() / "test.tsv"), 0);
  for (const std::string family : kFamilies) {
    SCOPED_TRACE(family);
    const auto outcome = zoo("predict " + family + " --input test.tsv --json --device cpu");
    EXPECT_EQ(outcome.err, "note: 15 of 45 texts cut to 20 tokens, as in training (data.sequence_length)\n");
    const auto results = json::parse(outcome.out)["results"];
    ASSERT_THAT(results, SizeIs(45));
    double right = 0;
    for (size_t i = 0; i < labels.size(); ++i) right += results[i]["labels"][0]["label"] == labels[i];
    EXPECT_GT(right, 5.0);
    EXPECT_LT(right, 40.0);
    EXPECT_DOUBLE_EQ(document("evaluate " + family + " --data test.tsv")["accuracy"], right / 45);
  }
}

TEST_F(Predict, AnswersWhatIsTyped) {
  TerminalSession predict(dir(), "predict encoder --device cpu");
  EXPECT_EQ(predict.wait_for("> "), "Type a text to classify; Ctrl-D ends.\n> ");
  predict.type("that is good\n");
  EXPECT_EQ(predict.wait_for("\n> "), zoo("predict encoder --device cpu --text 'that is good'").out + "> ");
  predict.type("\n");
  EXPECT_THAT(predict.wait_for("\n> "), HasSubstr("the line is empty: type a text"));
  predict.type("\x04");
  EXPECT_EQ(predict.finish().code, 0);

  TerminalSession embed(dir(), "embed encoder --device cpu");
  embed.wait_for("Type a text to embed; Ctrl-D ends.\n> ");
  embed.type("that is good\n");
  EXPECT_EQ(embed.wait_for("\n> "), zoo("embed encoder --device cpu --text 'that is good'").out + "> ");
  embed.type("\x04");
  EXPECT_EQ(embed.finish().code, 0);
}

TEST_F(Predict, ShowsProgressOverManyTexts) {
  std::string many;
  for (int i = 0; i < 600; ++i) many += "good bad so\n";
  const auto outcome = zoo("predict encoder --json --device cpu", many);
  EXPECT_THAT(json::parse(outcome.out)["results"], SizeIs(600));
  EXPECT_THAT(outcome.err, HasSubstr("predicting 600/600"));
}

TEST_F(Predict, WeightsOfFewerBitsGiveNearlyTheSame) {
  const auto exact = document("predict encoder --text 'good good good'")["results"][0]["labels"][0];
  EXPECT_EQ(document("predict encoder --text 'good good good' --weights fp32")["results"][0]["labels"][0],
            exact);
  const auto rough =
      document("predict encoder --text 'good good good' --weights int8")["results"][0]["labels"][0];
  EXPECT_NE(rough["probability"], exact["probability"]);
  EXPECT_NEAR(rough["probability"], exact["probability"].get<double>(), 0.1);
}

TEST_F(Predict, SaysWhatIsWrongInOneLine) {
  expect_error(
      "predict writer --text x",
      "writer: the task language_modeling has no labels to predict: zoo generate writes text with it");
  expect_error("predict translator --text x", "zoo generate writes text with it");
  expect_error("predict filler", "zoo generate fills masks with it");
  expect_error("predict encoder", "standard input is empty: write one text per line, or give --text TEXT");
  expect_error("predict encoder", "standard input is empty", "\n\r\n");
  expect_error("predict encoder", "standard input:2: not UTF-8 at byte 5", "good\n\xFF\n");
  expect_error("predict encoder --text \"$(printf 'a\\377')\"", "--text: not UTF-8 at byte 1: \\xff");
  expect_error("predict encoder --input nowhere.txt", "nowhere.txt");
  expect_error("predict encoder --top 0", "--top: '0' is not a whole number of at least 1");
  expect_error("predict nowhere --text x", "nowhere: no such run");
  expect_error("predict encoder --image x.png", "--image: encoder reads texts: use --text");
  expect_error("attention encoder --image x.png", "--image: encoder reads texts: use --text");
  expect_error("predict encoder --text x --min-score 0.5",
               "--min-score: encoder classifies, it finds no objects");
}

TEST_F(Predict, TextsAsVectors) {
  for (const std::string run : {"encoder", "decoder", "encoder_decoder", "writer", "filler", "translator"}) {
    SCOPED_TRACE(run);
    const auto document = this->document("embed " + run, "to be\nor\nthe question\nor");
    EXPECT_THAT(keys(document), ::testing::ElementsAre("embeddings", "weights"));
    const auto& vectors = document["embeddings"];
    ASSERT_THAT(vectors, SizeIs(4));
    EXPECT_THAT(vectors, Each(SizeIs(16)));
    EXPECT_NE(vectors[0], vectors[1]);
    for (size_t d = 0; d < 16; ++d)
      EXPECT_NEAR(vectors[1][d].get<double>(), vectors[3][d].get<double>(), 1e-5);
  }
}

TEST_F(Predict, VectorsByPooling) {
  std::vector<json> vectors;
  for (const std::string pooling : {"mean", "cls", "last", "pooler"}) {
    vectors.push_back(document("embed encoder --text 'good so' --pooling " + pooling)["embeddings"][0]);
    for (size_t i = 0; i + 1 < vectors.size(); ++i) EXPECT_NE(vectors[i], vectors.back()) << pooling;
  }
  EXPECT_EQ(document("embed encoder --text 'good so'")["embeddings"][0], vectors[0]) << "mean";
  EXPECT_EQ(document("embed decoder --text 'good so'"),
            document("embed decoder --text 'good so' --pooling last"));
}

TEST_F(Predict, VectorsAsLinesOfNumbers) {
  const auto lines = output("embed encoder --normalize", "good bad\nso\n");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 2);
  EXPECT_EQ(std::ranges::count(lines, '\t'), 30);
  const auto vectors = document("embed encoder --normalize", "good bad\nso\n")["embeddings"];
  std::istringstream numbers(lines);
  for (const auto& vector : vectors) {
    double square = 0;
    for (const double expected : vector) {
      double number = 0;
      numbers >> number;
      EXPECT_EQ(number, expected);
      square += number * number;
    }
    EXPECT_NEAR(square, 1, 1e-6);
  }
  const auto cut = zoo("embed encoder --device cpu --text 'so good so so so so so so' --text so");
  EXPECT_EQ(cut.err, "note: 1 of 2 texts cut to 20 tokens, as in training (data.sequence_length)\n");
  EXPECT_EQ(cut.code, 0);
}

TEST_F(Predict, VectorsThatCannotBeAreOneLine) {
  for (const std::string run : {"decoder", "filler"})
    expect_error("embed " + run + " --text or --pooling pooler", "this model has no pooler");
  expect_error("embed encoder", "text 2: there are no tokens", "good\n\nbad\n");
  expect_error("embed encoder --text x --pooling softest", "--pooling");
  expect_error("embed encoder", "standard input is empty");
}

}  // namespace
}  // namespace zoo::testing
