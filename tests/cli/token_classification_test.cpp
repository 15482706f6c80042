// zoo train, predict and evaluate where each word or character of a text has a label.

#include <algorithm>
#include <string>

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
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Two runs that learnt their data by heart: "names" labels words, "letters" labels characters.
class TokenLabels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    std::string names = "sentence\tlabel\n", letters = "sequence\tstructure\n";
    for (int i = 0; i < 30; ++i) {
      names += i % 2 ? "Ada Byron met Babbage\tB-PER I-PER O B-PER\n" : "he met nobody\tO - O\n";
      letters += i % 2 ? "MKKVV\tHHHE-\n" : "VMK\tEHH\n";
    }
    dir_->write("names.tsv", names);
    dir_->write("letters.tsv", letters);
    dir_->write("test.conll", "he O\nmet -\nAda B-PER\n\nBabbage B-PER\n");
    dir_->write("names.yaml", R"(
task: token_classification
data: {train: names.tsv, valid: names.tsv, sequence_length: 24, tokenizer: {type: char}}
model: {architecture: encoder, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 32, dropout: 0, init_std: 0.2}
training: {steps: 100, batch_size: 15, optimizer: {lr: 0.02}, schedule: {warmup_steps: 5}, evaluate_every: 50,
           best_by: entity_f1, threads: 1}
)");
    train("names", "names.yaml");
    train(
        "letters",
        "names.yaml --set data.train=letters.tsv --set data.valid=letters.tsv --set "
        "data.text_column=sequence "
        "--set data.label_column=structure --set training.best_by=accuracy --set model.architecture=decoder");
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static void train(const std::string& run, const std::string& arguments) {
    const auto outcome = zoo(fmt::format("train {} --device cpu --out {}", arguments, run));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static Outcome zoo(const std::string& arguments, std::string_view input = "") {
    return run_zoo(*dir_, arguments, {.input = input});
  }
  static std::string output(const std::string& arguments, std::string_view input = "") {
    const auto outcome = zoo(arguments + " --device cpu", input);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.out;
  }
  static void expect_error(const std::string& arguments, const std::string& problem) {
    SCOPED_TRACE(arguments);
    const auto outcome = zoo(arguments + " --device cpu");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(StartsWith("zoo: "), HasSubstr(problem)));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }

  static inline TempDir* dir_ = nullptr;
};

TEST_F(TokenLabels, PredictPrintsTheDocumentedJson) {
  const auto all =
      json::parse(output("predict names --json --text 'Ada Byron met Babbage' --text '' --text he"));
  EXPECT_THAT(keys(all), ElementsAre("results", "weights"));
  ASSERT_THAT(all["results"], SizeIs(3));
  EXPECT_THAT(keys(all["results"][0]), ElementsAre("input", "tokens"));
  EXPECT_EQ(all["results"][0]["input"], "Ada Byron met Babbage");
  std::string labels;
  for (const auto& token : all["results"][0]["tokens"]) {
    EXPECT_THAT(keys(token), ElementsAre("label", "probability", "token"));
    EXPECT_GT(token["probability"], 0.5);
    labels += token["token"].get<std::string>() + ":" + token["label"].get<std::string>() + " ";
  }
  EXPECT_EQ(labels, "Ada:B-PER Byron:I-PER met:O Babbage:B-PER ");
  EXPECT_THAT(all["results"][1]["tokens"], SizeIs(0));
  EXPECT_THAT(all["results"][2]["tokens"], SizeIs(1));
}

TEST_F(TokenLabels, PredictPrintsALineForEachWordOrCharacter) {
  EXPECT_THAT(
      output("predict names --text 'he met nobody'"),
      ::testing::MatchesRegex("he\tO\t[01]\\.[0-9]+\nmet\tO\t[01]\\.[0-9]+\nnobody\tO\t[01]\\.[0-9]+\n\n"));
  EXPECT_THAT(output("predict letters", "VMK\nMKK\n"),
              ::testing::MatchesRegex("V\tE\t.*\nM\tH\t.*\nK\tH\t.*\n\nM\tH\t.*\nK\tH\t.*\nK\tH\t.*\n\n"));
}

TEST_F(TokenLabels, PredictWritesAPage) {
  const auto outcome = zoo("predict letters --input letters.tsv --out page.html --device cpu");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("texts with labels: page.html"));
  const auto page = read_file(*dir_ / "page.html");
  EXPECT_THAT(page, HasSubstr(R"("truth":["H","H","H","E","-"])"));
  EXPECT_EQ(zoo("predict letters --text VMK --out page.html --device cpu").code, 0);
  EXPECT_THAT(read_file(*dir_ / "page.html"), HasSubstr(R"("truth":null)"));
}

TEST_F(TokenLabels, EvaluateReadsTablesAndSentences) {
  const auto names = json::parse(output("evaluate names --json"));
  EXPECT_EQ(names["accuracy"], 1);
  EXPECT_EQ(names["f1"], 1);
  EXPECT_EQ(names["entity_f1"], 1);
  EXPECT_EQ(names["tokens"], 15 * 4 + 15 * 2);
  EXPECT_EQ(names["confusion"]["labels"], json({"O", "B-PER", "I-PER"}));
  const auto outside = json::parse(output("evaluate names --json --data test.conll"));
  EXPECT_EQ(outside["tokens"], 3);
  const auto letters = json::parse(output("evaluate letters --json --data letters.tsv"));
  EXPECT_EQ(letters["accuracy"], 1);
  EXPECT_EQ(letters["tokens"], 15 * 4 + 15 * 3);
  EXPECT_FALSE(letters.contains("entity_f1"));
}

TEST_F(TokenLabels, ProblemsAreOneLine) {
  dir_->write("short.tsv", "sentence\tlabel\nhe met nobody\tO O\n");
  dir_->write("strange.tsv", "sentence\tlabel\nhe met\tO B-LOC\n");
  expect_error("evaluate names --data short.tsv", "short.tsv:2: 3 words, but 2 labels");
  expect_error("evaluate names --data strange.tsv", "strange.tsv:2: the label 'B-LOC' does not occur");
  expect_error("predict names --text he --top 2", "--top: this run gives each word or character one label");
  expect_error("train names.yaml --out other --set training.best_by=bleu",
               "which has loss, accuracy, f1, entity_f1");
  expect_error("train names.yaml --out other --set data.label_unit=letter", "data.label_unit");
  expect_error("contacts letters --text MKV", "has no regression from attention to contacts");
}

/// Two strands beside each other, of n / 2 residues each: residue i touches residue n - 1 - i.
std::string hairpin(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    text += fmt::format("ATOM  {:>5}  CB  ALA A{:>4}    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00           C\n",
                        i + 1, i + 1, 3.3 * (i < n / 2 ? i : n - 1 - i), i < n / 2 ? 0.0 : 6.0, 0.0);
  }
  return text;
}

TEST_F(TokenLabels, ContactsAreFittedAndMeasured) {
  for (const std::string name : {"a", "b", "c"}) dir_->write("hairpins/" + name + ".pdb", hairpin(28));
  dir_->write("hairpins/readme.txt", "no structure");
  const auto measured = [](const std::string& options) {
    const auto outcome = zoo("contacts letters --fit hairpins --device cpu " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto lines = measured("--chains 2 --test hairpins");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 21) << lines;
  EXPECT_THAT(lines, HasSubstr("run\tlong\tL/5\t"));
  EXPECT_THAT(lines, HasSubstr("random\tshort\tL\t"));
  // Of 10 pairs at least 24 apart 2 face each other, and 4 lie beside those on a diagonal, 6.85 Å apart.
  EXPECT_THAT(lines, HasSubstr("chance\tlong\tall\t0.6000\t0.6000\t0.6000\t3\n")) << lines;
  const auto document = json::parse(measured("--test hairpins --json"));
  EXPECT_THAT(document["precision"], SizeIs(21));
  const auto pairs = measured("--text MKVAAAAAAAA --top 2");
  EXPECT_EQ(std::ranges::count(pairs, '\n'), 2) << pairs;
  dir_->write("hairpins/long.pdb", hairpin(40));  // the model reads 32 tokens
  const auto some = zoo("contacts letters --fit hairpins/a.pdb --test hairpins");
  EXPECT_THAT(some.out, HasSubstr("run\tlong\tL\t"));
  EXPECT_THAT(some.err, HasSubstr("note: 1 of 4 chains is longer than the model reads, and is left out"));
  expect_error("contacts letters --fit hairpins/long.pdb --test hairpins",
               "all chains are longer than the model reads");
  expect_error("contacts letters --test hairpins", "fit one to known structures (--fit)");
  expect_error("contacts letters --fit hairpins", "give either --text, a protein, or --test");
  expect_error("contacts letters --chains 2 --text MKV", "--chains: is for --fit");
  expect_error("contacts letters --fit hairpins --test hairpins --top 2", "--top: is for --text");
  expect_error("contacts letters --fit missing --text MKV", "missing");
}

TEST_F(TokenLabels, OtherCommandsTakeTheRun) {
  EXPECT_THAT(json::parse(output("embed letters --json --text MKV"))["embeddings"], SizeIs(1));
  EXPECT_EQ(zoo("inspect names").code, 0);
  output("attention names --text 'he met' --json");
  EXPECT_EQ(zoo("bench names --device cpu --seconds 0.05").code, 0);
}

}  // namespace
}  // namespace zoo::testing
