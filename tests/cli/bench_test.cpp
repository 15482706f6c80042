// zoo bench: its output and its errors.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"
#include "tests/support/environment.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A directory with configurations of a language model, an encoder-decoder and a classifier.
class Bench : public ::testing::Test {
 protected:
  Bench() {
    write_corpora(dir_);
    std::filesystem::create_directory(dir_ / "tmp");
    const auto config = [&](const char* name, const char* task, const char* architecture,
                            const char* corpus) {
      dir_.write(fmt::format("{}.yaml", name), fmt::format(R"(
task: {}
data: {{train: {}, sequence_length: 24, tokenizer: {{type: char}}}}
model: {{architecture: {}, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}}
training: {{steps: 2, batch_size: 4, evaluate_every: 2, checkpoint_every: 2, threads: 1}}
)",
                                                           task, corpus, architecture));
    };
    config("writer", "language_modeling", "decoder", "text.txt");
    config("translator", "text_to_text", "encoder_decoder", "pairs");
    config("tagger", "token_classification", "encoder", "none.tsv");
    config("classifier", "text_classification", "encoder", "table.tsv");
  }

  Outcome zoo(const std::string& arguments) const { return run_zoo(dir_, arguments); }
  std::string bench(const std::string& arguments) const {
    const auto outcome = zoo("bench --device cpu --seconds 0.05 " + arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.out;
  }
  void expect_error(const std::string& arguments, const std::vector<std::string>& parts) const {
    SCOPED_TRACE("zoo bench " + arguments);
    const auto outcome = zoo("bench " + arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("zoo: "));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const auto& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part));
  }
  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
  ScopedEnvironment temporary_{"TMPDIR", (dir_ / "tmp").string()};
};

void expect_training(const json& document) {
  EXPECT_THAT(keys(document["train"]), ElementsAre("peak_memory_bytes", "step_ms", "tokens_per_second"));
  EXPECT_TRUE(document["train"]["peak_memory_bytes"].is_number_integer());
  for (const auto& value : document["train"]) EXPECT_GT(value.get<double>(), 0);
  EXPECT_THAT(keys(document["prompt"]), ElementsAre("tokens_per_second"));
  EXPECT_THAT(keys(document["decode"]),
              ElementsAre("cache_bytes_per_token", "first_token_ms", "state_bytes", "tokens_per_second"));
}

TEST_F(Bench, GivesTheFieldsThatAreFixed) {
  for (const char* config : {"writer.yaml", "translator.yaml --length 32"}) {
    SCOPED_TRACE(config);
    const auto document = json::parse(bench(fmt::format("{} --json", config)));
    EXPECT_THAT(keys(document), ElementsAre("decode", "prompt", "train"));
    expect_training(document);
    EXPECT_GT(document["prompt"]["tokens_per_second"].get<double>(), 0);
    EXPECT_GT(document["decode"]["tokens_per_second"].get<double>(), 0);
    EXPECT_GT(document["decode"]["first_token_ms"].get<double>(), 0);
  }
}

TEST_F(Bench, OfAClassifierHasNullForWhatItCannotDo) {
  const auto document = json::parse(bench("classifier.yaml --json"));
  expect_training(document);
  EXPECT_TRUE(document["prompt"]["tokens_per_second"].is_null());
  EXPECT_TRUE(document["decode"]["tokens_per_second"].is_null());
  EXPECT_TRUE(document["decode"]["first_token_ms"].is_null());
  EXPECT_THAT(bench("classifier.yaml"), AllOf(HasSubstr("training"), Not(HasSubstr("decoding"))));
}

TEST_F(Bench, MeasuresLongerSequencesWhereAsked) {
  const auto document = json::parse(bench("writer.yaml --scaling --json"));
  ASSERT_EQ(document["scaling"].size(), 6U);
  for (const auto& curve : document["scaling"]) {
    EXPECT_THAT(keys(curve),
                ElementsAre("bytes", "bytes_exponent", "bytes_exponent_high", "bytes_exponent_low", "flops",
                            "flops_exponent", "flops_exponent_high", "flops_exponent_low", "lengths", "order",
                            "part", "seconds", "seconds_exponent", "seconds_exponent_high",
                            "seconds_exponent_low", "seconds_high", "seconds_low"));
    EXPECT_GE(curve["lengths"].size(), 4U);
    EXPECT_EQ(curve["lengths"][0], 64);
    EXPECT_TRUE(curve["seconds_exponent"].is_number());
  }
}

TEST_F(Bench, TellsAPerson) {
  const auto text = bench("writer.yaml --scaling --set model.position=rotary");
  EXPECT_THAT(text, StartsWith("writer (decoder, cpu)\n"));
  for (const char* part : {"training  ", "prompts  ", "decoding  ", " tokens/s ", " ms per step of 96 tokens",
                           "8 prompts of 24 tokens at once", "after a prompt of 12", "O(n²d)", "feed-forward",
                           "n=128", "Megabytes"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(Bench, MeasuresUpToALengthWhereAsked) {
  const auto curves = json::parse(
      bench("writer.yaml --scaling --longest 128 --json --set model.max_positions=128"))["scaling"];
  for (const auto& curve : curves) EXPECT_EQ(curve["lengths"], json({64, 128}));
  expect_error("writer.yaml --longest 128", {"--longest", "--scaling"});
}

TEST_F(Bench, OfARunNeedsItsVocabularyAndData) {
  ASSERT_EQ(zoo("train classifier.yaml --device cpu --out run").code, 0);
  const auto before = files_below(dir() / "run");
  expect_training(json::parse(bench("run --json")));
  EXPECT_EQ(files_below(dir() / "run"), before);
  expect_error("run --set model.n_layers=2", {"--set", "not a run"});
  std::filesystem::remove(dir() / "run/tokenizer.json");
  expect_error("run", {"run/tokenizer"});
}

// A model can be measured before its data are there.
TEST_F(Bench, UsesRandomTokensWithoutData) {
  const auto measure = [&](const std::string& arguments) {
    const auto outcome = zoo("bench --device cpu --seconds 0.05 --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("note: "));
    EXPECT_THAT(outcome.err, HasSubstr("; the model is measured with random tokens, 24 in a sequence"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    const auto document = json::parse(outcome.out);
    EXPECT_EQ(document["data"], "random tokens");
    expect_training(document);
    return outcome.err;
  };
  for (const char* task : {"writer", "translator", "classifier", "tagger"}) {
    EXPECT_THAT(measure(fmt::format("{}.yaml --set data.train=nowhere", task)), HasSubstr("nowhere"));
    EXPECT_THAT(measure(fmt::format("{}.yaml --set data.train=[]", task)), HasSubstr("names no files"));
  }
  EXPECT_THAT(measure("writer.yaml --set data.train=nowhere.txt --set model.vocab_size=500"),
              HasSubstr("out of a vocabulary of 500\n"));
  // The characters of the text are not known: as many tokens as bytes, and the seven special tokens.
  EXPECT_THAT(measure("writer.yaml --set data.train=nowhere.txt"), HasSubstr("out of a vocabulary of 263\n"));
  measure(
      "writer.yaml --set data.train=nowhere.txt --set training.batch_size=auto "
      "--set training.effective_batch_size=4");
  measure(
      "writer.yaml --set data.train=nowhere.txt --set task=masked_language_modeling --set "
      "model.architecture=encoder");
  measure("translator.yaml --set data.train=nowhere --set training.batch_tokens=200");
  EXPECT_THAT(zoo("bench writer.yaml --device cpu --seconds 0.05 --set data.train=nowhere.txt").out,
              StartsWith("writer (decoder, cpu, random tokens)\n"));
  // A run has its vocabulary, but its data may be gone.
  ASSERT_EQ(zoo("train writer.yaml --device cpu --out run").code, 0);
  std::filesystem::rename(dir() / "text.txt", dir() / "elsewhere.txt");
  measure("run");
  EXPECT_TRUE(std::filesystem::is_empty(dir() / "tmp")) << "its files are removed";
}

TEST_F(Bench, MeasuresAnswersToPromptsOfAFile) {
  ASSERT_EQ(zoo("train translator.yaml --device cpu --out run").code, 0);
  dir().write("prompts.txt", "a b c\nb c\nc a b\n");
  const std::string prompts = "run --input prompts.txt --max-new-tokens 4 ";
  const auto greedy = json::parse(bench(prompts + "--beam 1 --batch-size 1 2 8 --json"))["generation"];
  ASSERT_EQ(greedy.size(), 3U);
  for (const auto& [place, n] : std::map<size_t, int>{{0, 1}, {1, 2}, {2, 3}}) {
    const auto& measured = greedy[place];
    EXPECT_THAT(keys(measured), ElementsAre("batch_size", "first_output_ids", "first_token_ms", "prompts",
                                            "seconds", "tokens_per_second"));
    EXPECT_EQ(measured["prompts"], n);
    EXPECT_EQ(measured["first_output_ids"], greedy[0]["first_output_ids"]);
    EXPECT_GT(measured["seconds"].get<double>(), 0);
  }
  EXPECT_EQ(greedy[0]["first_output_ids"].size(), 4U);
  const auto beams = json::parse(bench(prompts + "--beam 2 --batch-size 2 --weights int8 --json"));
  EXPECT_EQ(beams["generation"][0]["prompts"], 3);
  EXPECT_THAT(bench(prompts + "--beam 2"), HasSubstr("3 prompts, 2 beams, 4 tokens each"));

  dir().write("empty.txt", "");
  expect_error("run --input empty.txt", {"empty.txt: the file is empty"});
  expect_error("run --input nowhere.txt", {"nowhere.txt"});
  expect_error("run --input prompts.txt --length 8", {"--length", "--input"});
  expect_error("run --input prompts.txt --scaling", {"--scaling", "--input"});
  expect_error("run --batch-size 2", {"--batch-size", "--input"});
  ASSERT_EQ(zoo("train classifier.yaml --device cpu --out classifier").code, 0);
  expect_error("classifier --input prompts.txt", {"--input", "does not write"});
}

TEST_F(Bench, OfDataThatAreDamagedIsAnError) {
  dir().write("empty.txt", "");
  expect_error("writer.yaml --set data.train=empty.txt", {"empty.txt: the file is empty"});
}

TEST_F(Bench, RefusesWhatMakesNoSense) {
  expect_error("", {"CONFIG|RUN is required (see zoo bench --help)"});
  expect_error("nowhere.yaml", {"nowhere.yaml", "No such file"});
  std::filesystem::create_directory(dir() / "hollow");
  expect_error("hollow", {"hollow: not a run: there is no config.yaml"});
  expect_error("writer.yaml --set model.n_layer=2", {"unknown key", "did you mean 'model.n_layers'?"});
  expect_error("writer.yaml --device cpu --length 33", {"33", "model.max_positions, 32", "shorter"});
  for (const char* length : {"0", "-3", "many"})
    expect_error(fmt::format("writer.yaml --length {}", length), {"--length"});
  expect_error("writer.yaml --seconds -1", {"--seconds"});
  expect_error("writer.yaml --device gpu", {"unknown device 'gpu'"});
}

TEST_F(Bench, HelpDescribesItsOptions) {
  EXPECT_THAT(zoo("bench --help").out, AllOf(HasSubstr("--length"), HasSubstr("--seconds"),
                                             HasSubstr("--scaling"), HasSubstr("--json")));
}

}  // namespace
}  // namespace zoo::testing
