// zoo score, and the forms of outputs that zoo generate is asked for, as users run them.

#include <algorithm>
#include <cmath>
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

/// A directory with a decoder "writer", an encoder-decoder "translator" and an encoder "filler".
class Score : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_corpora(*dir_);
    dir_->write("common.yaml", R"(
data: {sequence_length: 20, tokenizer: {type: char}}
model: {d_model: 16, n_layers: 1, n_heads: 2, max_positions: 32, dropout: 0, init_std: 0.2}
training: {steps: 2, batch_size: 4, evaluate_every: 2, threads: 1}
)");
    train("writer", "--set task=language_modeling --set data.train=text.txt --set data.valid=text.txt");
    train("translator",
          "--set task=text_to_text --set model.architecture=encoder_decoder --set data.train=pairs --set "
          "data.valid=pairs");
    train("filler",
          "--set task=masked_language_modeling --set model.architecture=encoder --set data.train=text.txt "
          "--set data.valid=text.txt");
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static void train(const std::string& run, const std::string& overrides) {
    const auto outcome = zoo(fmt::format("train common.yaml --out {} {}", run, overrides));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static Outcome zoo(const std::string& arguments, std::string_view input = "") {
    return run_zoo(*dir_, arguments + " --device cpu", {.input = input});
  }
  /// The output of a command, which must succeed and print nothing on stderr.
  static std::string output(const std::string& arguments, std::string_view input = "") {
    const auto outcome = zoo(arguments, input);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.out;
  }
  static json results(const std::string& arguments, std::string_view input = "") {
    return json::parse(output(arguments + " --json", input))["results"];
  }
  static void expect_error(const std::string& arguments, const std::string& problem,
                           std::string_view input = "") {
    SCOPED_TRACE(arguments);
    const auto outcome = zoo(arguments, input);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(StartsWith("zoo: "), HasSubstr(problem)));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  static const TempDir& dir() { return *dir_; }

 private:
  static inline TempDir* dir_ = nullptr;
};

TEST_F(Score, PrintsTheDocumentedJson) {
  const auto found = results("score writer", "to be\n\nnot\n");
  ASSERT_EQ(found.size(), 3U);
  const auto& first = found[0];
  EXPECT_THAT(keys(first),
              ElementsAre("bits_per_byte", "ids", "logprobs", "perplexity", "text", "tokens", "total"));
  EXPECT_EQ(first["text"], "to be");
  EXPECT_EQ(first["tokens"], 5);
  EXPECT_EQ(first["ids"].size(), 5U);
  double total = 0;
  for (const double logprob : first["logprobs"]) total += logprob;
  EXPECT_NEAR(first["total"].get<double>(), total, 1e-9);
  EXPECT_NEAR(first["perplexity"].get<double>(), std::exp(-total / 5), 1e-9);
  EXPECT_NEAR(first["bits_per_byte"].get<double>(), -total / 5 / std::log(2), 1e-9);
  EXPECT_EQ(found[1]["tokens"], 0);
  EXPECT_TRUE(found[1]["perplexity"].is_null());

  const auto pair = results("score translator --text 'das ist gut\tthat is'")[0];
  EXPECT_EQ(pair["source"], "das ist gut");
  EXPECT_EQ(pair["text"], "that is");
  EXPECT_EQ(pair["tokens"], 8) << "with the end token";
}

TEST_F(Score, PrintsALineForEachText) {
  dir().write("texts.txt", "to be\nnot\n");
  const auto lines = output("score writer --input texts.txt");
  EXPECT_THAT(lines, MatchesRegex("-[0-9.]+\t5\t[0-9.]+\tto be\n-[0-9.]+\t3\t[0-9.]+\tnot\n"));
  EXPECT_EQ(output("score writer --text 'to be' --text not"), lines);
  EXPECT_THAT(output("score translator", "gut\tgood\n"), MatchesRegex("-[0-9.]+\t5\t[0-9.]+\tgut\tgood\n"));
}

TEST_F(Score, GivesTheLogprobsOfGeneratedTexts) {
  const auto generated = results("generate writer --prompt '' --max-new-tokens 50 --seed 2")[0]["outputs"][0];
  dir().write("generated.txt", generated["text"].get<std::string>() + "\n");
  const auto scored = results("score writer --input generated.txt")[0];
  if (scored["text"] != generated["text"]) return;  // a line break was drawn
  ASSERT_GE(generated["ids"].size(), scored["ids"].size());
  for (size_t i = 0; i < scored["ids"].size(); ++i) {
    EXPECT_EQ(scored["ids"][i], generated["ids"][i]);
    EXPECT_NEAR(scored["logprobs"][i].get<double>(), generated["logprobs"][i].get<double>(), 1e-5);
  }
}

TEST_F(Score, RefusesWhatItCannotScore) {
  expect_error("score filler --text to", "this run writes no texts");
  expect_error("score translator --text gut", "text 1: this model answers texts: write the source, one tab");
  expect_error("score translator", "text 2: this model answers", "gut\tgood\na\tb\tc\n");
  expect_error("score translator", "text 1: the target has 41 tokens", "gut\t" + std::string(40, 'g') + "\n");
  expect_error("score writer --text to --input texts.txt", "--text and --input contradict each other");
  expect_error("score writer --input missing.txt", "missing.txt");
  expect_error("score writer --text z", "text 1: ");
  expect_error("score writer", "standard input is empty");
  expect_error("score writer", "text 1: ", "\xFF\n");
}

TEST_F(Score, ReadsTables) {
  dir().write("rows.csv", "id,Note,Text\n1,\"a, b\",to be\n2,,\"or not to\"\n");
  dir().write("rows.txt", "to be\nor not to\n");
  const auto scores = zoo("score writer --input rows.csv");
  EXPECT_EQ(scores.code, 0) << scores.err;
  EXPECT_EQ(scores.out, zoo("score writer --input rows.txt").out);
  expect_error("score translator --input rows.csv",
               "rows.csv: write lines with the source, one tab and the target");
}

TEST_F(Score, OutputsHaveTheFormThatIsAskedFor) {
  const auto outputs_of = [&](const std::string& arguments) {
    return results("generate writer --prompt 'to be' --max-new-tokens 20 --num-samples 8 " +
                   arguments)[0]["outputs"];
  };
  for (const auto& output : outputs_of("--regex '(to|be)( or)?'")) {
    EXPECT_THAT(output["text"].get<std::string>(), MatchesRegex("(to|be)( or)?"));
    EXPECT_EQ(output["end"], "complete") << "this vocabulary has no end token";
  }
  dir().write("schema.json", R"({"enum": ["to", "be"]})");
  expect_error("generate writer --json-schema schema.json",
               "json_schema: no text matches that this vocabulary");
  dir().write("schema.json", R"({"enum": ["to", true]})");
  for (const auto& output : outputs_of("--json-schema schema.json")) EXPECT_EQ(output["text"], "true");

  expect_error("generate writer --regex 'a(b'", "regex: character 2: a ( without its )");
  expect_error("generate writer --regex 'zz'", "no text matches");
  expect_error("generate writer --json-schema schema.json --regex a", "--regex");
  expect_error("generate writer --json-schema missing.json", "missing.json");
  expect_error("generate filler --prompt '<mask>' --regex a", "--regex: this run fills masks");
}

}  // namespace
}  // namespace zoo::testing
