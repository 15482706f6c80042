// zoo evaluate of a translator: its output, its files and its errors. (Other tasks: commands_test.cpp.)

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A directory with corpora, translators of both families, "two_sides" and "one_stream", that have memorised
/// them, and a language model, "writer".
class Evaluate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_corpora(*dir_);
    dir_->write("common.yaml", R"(
task: text_to_text
data: {train: pairs, test: other, sequence_length: 24, tokenizer: {type: char}}
model: {architecture: encoder_decoder, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 48, dropout: 0}
training: {steps: 150, batch_size: 16, optimizer: {lr: 0.01}, schedule: {warmup_steps: 10}, evaluate_every: 50,
           threads: 1}
generation: {beam: 2, max_new_tokens: 24}
)");
    dir_->write("other.de", "das ist gut\ndas war nicht gut\ndas ist gut\n");
    dir_->write("other.en", "that is good\nthat was not very good\nthat is really good\n");
    train("two_sides", "");
    train("one_stream", "--set model.architecture=decoder");
    train("writer",
          "--set model.architecture=decoder --set task=language_modeling --set data.train=text.txt "
          "--set training.steps=2");
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
  /// The document of --json; stderr must have nothing but progress and notes.
  static json document(const std::string& arguments) {
    const auto outcome = zoo("evaluate " + arguments + " --device cpu --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream lines(outcome.err);
    for (std::string line; std::getline(lines, line);)
      EXPECT_THAT(line, AnyOf(StartsWith("translating "), StartsWith("note: the loss ")));
    return json::parse(outcome.out);
  }
  static void expect_error(const std::string& arguments, const std::string& problem, int code = 2) {
    SCOPED_TRACE(arguments);
    const auto outcome = zoo("evaluate " + arguments + " --device cpu");
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(StartsWith("zoo: "), HasSubstr(problem)));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  static const TempDir& dir() { return *dir_; }

 private:
  static inline TempDir* dir_ = nullptr;
};

TEST_F(Evaluate, TranslatesWithBothFamilies) {
  for (const std::string run : {"two_sides", "one_stream"}) {
    SCOPED_TRACE(run);
    const auto scores = document(run);
    std::vector<std::string> keys;
    for (const auto& [key, value] : scores.items()) keys.push_back(key);
    EXPECT_THAT(keys, ElementsAre("bits_per_byte", "bleu", "chrf", "data", "loss", "perplexity", "tokens",
                                  "weights"));
    EXPECT_EQ(scores["data"], "valid: 10 % of " + (dir() / "pairs").string());
    EXPECT_NEAR(scores["bleu"], 100, 1e-9);
    EXPECT_NEAR(scores["chrf"], 100, 1e-9);

    auto test = document(run + " --split test --translations written.txt");
    EXPECT_EQ(read_file(dir() / "written.txt"), "that is good\nthat was not good\nthat is good\n");
    EXPECT_GT(test["bleu"], 0.0);
    EXPECT_LT(test["bleu"], 100.0);
    EXPECT_LT(test["chrf"], 100.0);
    auto other = document(run + " --data other --beam 1");
    EXPECT_EQ(other["data"], "other");
    other["data"] = test["data"];
    EXPECT_EQ(other, test) << "the same data; it knows them by heart";
    EXPECT_LT(document(run + " --split test --max-new-tokens 4")["chrf"], test["chrf"]);

    const auto text = zoo("evaluate " + run + " --split test --device cpu");
    EXPECT_THAT(text.out, HasSubstr(fmt::format("bleu           {:.4f}\n", test["bleu"].get<double>())));
    EXPECT_THAT(text.out, HasSubstr("data           test: "));
    EXPECT_THAT(text.err, HasSubstr("translating 3/3"));
  }
}

TEST_F(Evaluate, SaysWhatIsWrongInOneLine) {
  expect_error("two_sides --beam 0", "not a whole number from 1 to 1024");
  expect_error("two_sides --max-new-tokens 0", "--max-new-tokens: '0' is not a whole number");
  expect_error("two_sides --beam 1 --length-penalty 0.6",
               "--length-penalty is for beam search: add --beam N");
  expect_error("two_sides --length-penalty x", "--length-penalty");
  expect_error("two_sides --data nowhere", "nowhere.de");
  expect_error("two_sides --translations nowhere/written.txt", "cannot write 'nowhere/written.txt'", 1);
  expect_error("two_sides --translations .", "cannot write '.'", 1);
  for (const char* option :
       {"--beam 2", "--length-penalty 1", "--max-new-tokens 3", "--translations x.txt"}) {
    const std::string name(option, std::string_view(option).find(' '));
    expect_error(std::string("writer ") + option,
                 name + " is for text_to_text, and this run's task is language_modeling");
  }
  EXPECT_FALSE(fs::exists(dir() / "x.txt"));
}

TEST_F(Evaluate, WeightsOfFewerBitsGiveNearlyTheSameNumbers) {
  const double exact = document("two_sides --weights fp32")["loss"];
  EXPECT_EQ(document("two_sides")["loss"], exact);
  for (const auto& [format, share] : {std::pair("bf16", 0.001), std::pair("fp16", 0.001),
                                      std::pair("int8", 0.001), std::pair("int4", 0.02)}) {
    const double loss = document(fmt::format("two_sides --weights {}", format))["loss"];
    EXPECT_NE(loss, exact) << format;
    EXPECT_NEAR(std::exp(loss - exact), 1, share) << format;  // the ratio of the perplexities
    const auto text =
        zoo(fmt::format("generate two_sides --device cpu --prompt 'das ist gut' --weights {}", format));
    EXPECT_EQ(text.code, 0) << text.err;
  }
  expect_error("two_sides --weights int3", "int3");
}

}  // namespace
}  // namespace zoo::testing
