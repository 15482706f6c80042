// zoo generate as users run it: its output and its errors.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using zoo::testing::keys;
using zoo::testing::Outcome;
using zoo::testing::run_zoo;
using zoo::testing::TempDir;

/// The program and its runs, made once for all tests.
class Workplace {
 public:
  static Workplace& get() {
    static Workplace workplace;
    return workplace;
  }

  Outcome zoo(const std::string& arguments, std::string_view input = "") const {
    return run_zoo(dir_, arguments, {.input = input});
  }

  /// Trains the run `name` unless it exists already.
  void train(const std::string& name, std::string_view config) {
    if (!trained_.emplace(name, true).second) return;
    dir_.write(name + ".yaml", config);
    const auto outcome = zoo(fmt::format("train {0}.yaml --out {0} --device cpu", name));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  const TempDir& dir() const { return dir_; }

 private:
  Workplace() {
    std::string text, source, target;
    for (int i = 0; i < 60; ++i) {
      text += "to be or not to be that is the question\n";
      source += "das ist gut\n";
      target += "that is good\n";
    }
    dir_.write("text.txt", text);
    dir_.write("pairs.de", source);
    dir_.write("pairs.en", target);
  }

  TempDir dir_;
  std::map<std::string, bool> trained_;
};

constexpr std::string_view kModel =
    "d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 48, dropout: 0";
constexpr std::string_view kTraining =
    "training: {steps: 2, batch_size: 2, evaluate_every: 2, checkpoint_every: 2}\n";

void train_decoder() {
  auto& w = Workplace::get();
  w.train(
      "decoder",
      fmt::format(
          "name: decoder\ntask: language_modeling\n"
          "data: {{train: {}/text.txt, documents: none, sequence_length: 16, tokenizer: {{type: char}}}}\n"
          "model: {{architecture: decoder, {}}}\n{}generation: {{max_new_tokens: 12}}\n",
          w.dir().path().string(), kModel, kTraining));
}

void train_translator() {
  auto& w = Workplace::get();
  w.train("translator",
          fmt::format("name: translator\ntask: text_to_text\n"
                      "data: {{train: {}/pairs, sequence_length: 16, tokenizer: {{type: char}}}}\n"
                      "model: {{architecture: encoder_decoder, {}}}\n{}"
                      "generation: {{max_new_tokens: 12, beam: 3}}\n",
                      w.dir().path().string(), kModel, kTraining));
}

void train_masked() {
  auto& w = Workplace::get();
  w.train(
      "masked",
      fmt::format(
          "name: masked\ntask: masked_language_modeling\n"
          "data: {{train: {}/text.txt, documents: line, sequence_length: 16, tokenizer: {{type: char}}}}\n"
          "model: {{architecture: encoder, {}}}\n{}",
          w.dir().path().string(), kModel, kTraining));
}

Outcome generate(const std::string& arguments, std::string_view input = "", const std::string& sink = "") {
  return Workplace::get().zoo("generate " + arguments + " --device cpu " + sink, input);
}

nlohmann::json generate_json(const std::string& arguments, std::string_view input = "") {
  const auto outcome = generate(arguments + " --json", input);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return nlohmann::json::parse(outcome.out);
}

void expect_one_line(const Outcome& outcome, const std::string& problem) {
  EXPECT_EQ(outcome.code, 2) << problem;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(problem));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
}

TEST(Generate, PrintsTheDocumentedJson) {
  train_decoder();
  const auto document = generate_json("decoder --num-samples 2", "to be\nor\n");
  ASSERT_EQ(keys(document), std::vector<std::string>{"results"});
  ASSERT_EQ(document["results"].size(), 2U);
  for (const auto& result : document["results"]) {
    EXPECT_EQ(keys(result), (std::vector<std::string>{"outputs", "prompt", "prompt_ids"}));
    EXPECT_EQ(result["prompt_ids"].size(), result["prompt"].get<std::string>().size());
    ASSERT_EQ(result["outputs"].size(), 2U);
    for (const auto& output : result["outputs"]) {
      EXPECT_EQ(keys(output), (std::vector<std::string>{"ids", "logprobs", "score", "text"}));
      EXPECT_EQ(output["ids"].size(), 12U);
      EXPECT_EQ(output["logprobs"].size(), 12U);
      EXPECT_EQ(output["text"].get<std::string>().size(), 12U);
      double total = 0;
      for (const double logprob : output["logprobs"]) total += logprob;
      EXPECT_NEAR(output["score"].get<double>(), total / 12, 1e-6);
    }
  }
  EXPECT_EQ(document["results"][1]["prompt"], "or");
}

TEST(Generate, PrintsTheTextAloneStreamedOrNot) {
  train_decoder();
  const auto text = generate_json("decoder --prompt 'to be' --seed 3")["results"][0]["outputs"][0]["text"]
                        .get<std::string>();
  EXPECT_EQ(generate("decoder --prompt 'to be' --seed 3").out, text + "\n");
  EXPECT_EQ(generate("decoder --prompt 'to be' --seed 3 --stream").out, text + "\n");
  EXPECT_NE(generate("decoder --prompt 'to be' --seed 4").out, text + "\n");
  const auto many = generate("decoder --num-samples 2 --seed 3", "to be\nor\n");
  EXPECT_EQ(many.out.substr(0, text.size() + 2), text + "\n\n");
  EXPECT_EQ(generate("decoder --num-samples 2 --seed 3 --stream", "to be\nor\n").out, many.out);
  Workplace::get().dir().write("prompts.txt", "to be\r\nor");
  EXPECT_EQ(generate("decoder --num-samples 2 --seed 3 --input prompts.txt").out, many.out);
}

TEST(Generate, ReadsPromptsAsIds) {
  train_decoder();
  const auto by_text = generate_json("decoder --prompt 'to be' --temperature 0")["results"][0];
  std::vector<int64_t> ids = by_text["prompt_ids"];
  const auto by_ids = fmt::format("decoder --prompt-ids {} --temperature 0", fmt::join(ids, ","));
  EXPECT_EQ(generate_json(by_ids)["results"][0], by_text);
  EXPECT_EQ(generate("decoder --prompt ''").code, 0) << "a decoder can begin from nothing";
}

TEST(Generate, TranslatesLineByLineWithTheDefaultsOfTheRun) {
  train_translator();
  const auto document = generate_json("translator --num-samples 3", "das ist\ngut\n");
  for (const auto& result : document["results"]) {
    ASSERT_EQ(result["outputs"].size(), 3U) << "beams";
    EXPECT_GE(result["outputs"][0]["score"], result["outputs"][1]["score"]);
    EXPECT_GE(result["outputs"][1]["score"], result["outputs"][2]["score"]);
  }
  const auto best = [&](size_t i) { return document["results"][i]["outputs"][0]["text"].get<std::string>(); };
  EXPECT_EQ(generate("translator", "das ist\ngut\n").out, best(0) + "\n" + best(1) + "\n");
  expect_one_line(generate("translator --prompt das --stream"), "add --beam 1");
  expect_one_line(generate("translator --prompt das --temperature 0.5"), "does not sample");
  expect_one_line(generate("translator --prompt das --num-samples 4"), "more than the 3 beams");
  expect_one_line(generate("translator --prompt ''"), "the prompt is empty");
  expect_one_line(generate("translator --prompt " + std::string(48, 'a')), "at most 48");
  EXPECT_EQ(generate("translator --prompt das --stream --beam 1").code, 0);
}

TEST(Generate, FillsMasks) {
  train_masked();
  const auto text = generate("masked --prompt 'to <mask>e or'");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\n  <mask>: "));
  const auto result = generate_json("masked --prompt 'to <mask>e or' --num-samples 4")["results"][0];
  EXPECT_EQ(result["prompt"], "to <mask>e or");
  ASSERT_EQ(result["outputs"].size(), 4U);
  EXPECT_EQ(text.out.substr(0, text.out.find("\n  <mask>")), result["outputs"][0]["text"].get<std::string>());
  expect_one_line(generate("masked --prompt 'to be'"), "there is no <mask>");
  expect_one_line(generate("masked --prompt '<mask>' --stream"), "--stream");
  expect_one_line(generate("masked --prompt '<mask>' --temperature 0.5"),
                  "--temperature: this run fills masks");
  expect_one_line(generate("masked --prompt '" + std::string(60, 'a') + "<mask>'"), "at most 48");
}

TEST(Generate, SaysWhatIsWrongInOneLine) {
  train_decoder();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"decoder --prompt a --prompt-ids 1", "contradict"},
      {"decoder --prompt a --input stdin", "contradict"},
      {"decoder --prompt a --stream --json", "--stream contradicts --json"},
      {"decoder --prompt a --stream --beam 2", "--stream contradicts beam search"},
      {"decoder --prompt-ids 1,99", "99 is not a token id"},
      {"decoder --prompt-ids=-1", "-1 is not a token id"},
      {"decoder --prompt-ids 1,,2", "--prompt-ids: '' is not a token id"},
      {"decoder --prompt-ids 99999999999999999999", "is not a token id"},
      {"decoder --prompt \"$(printf 'a\\377')\"", "prompt 1: text is not UTF-8 at byte 1"},
      {"decoder --prompt Ω", "prompt 1: the character \"Ω\""},
      {"decoder", "standard input is empty"},
      {"decoder --input nowhere.txt", "nowhere.txt"},
      {"decoder --input cache/../stdin", "the file is empty"},
      {"decoder --prompt a --top-p 0", "top_p is 0"},
      {"decoder --prompt a --max-new-tokens 010", "'010' is not a whole number"},
      {"decoder --prompt a --max-new-tokens 99999999999999999999", "not a whole number"},
      {"decoder --prompt a --beam 0", "--beam: '0' is not a whole number"},
      {"decoder --prompt a --max-new-tokens 0", "--max-new-tokens: '0' is not a whole number"},
      {"decoder --prompt a --temperature x", "--temperature"},
      {"nowhere --prompt a", "nowhere: no such run"},
  };
  for (const auto& [arguments, problem] : cases) expect_one_line(generate(arguments), problem);
  expect_one_line(generate("decoder", "to be\nto \xFF\n"), "prompt 2: text is not UTF-8");
}

TEST(Generate, NoticesThatNobodyReads) {
  train_decoder();
  // The program ends at once instead of generating for minutes.
  const std::string endless = "decoder --prompt to --max-new-tokens 10000000 --stream";
  const auto full = generate(endless, "", ">/dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write to standard output"));
  const auto piped = generate(endless, "", "| head -c 5");
  EXPECT_EQ(piped.out.size(), 5U);
  EXPECT_EQ(piped.err, "");
}

}  // namespace
}  // namespace zoo
