// zoo generate as users run it: its output and its errors.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/cli/support.h"
#include "tests/cli/terminal.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using zoo::testing::keys;
using zoo::testing::Outcome;
using zoo::testing::run_zoo;
using zoo::testing::TempDir;
using zoo::testing::TerminalSession;

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
  ASSERT_EQ(keys(document), (std::vector<std::string>{"results", "weights"}));
  EXPECT_EQ(document["weights"], "fp32");
  ASSERT_EQ(document["results"].size(), 2U);
  for (const auto& result : document["results"]) {
    EXPECT_EQ(keys(result), (std::vector<std::string>{"outputs", "prompt", "prompt_ids"}));
    EXPECT_EQ(result["prompt_ids"].size(), result["prompt"].get<std::string>().size());
    ASSERT_EQ(result["outputs"].size(), 2U);
    for (const auto& output : result["outputs"]) {
      EXPECT_EQ(keys(output), (std::vector<std::string>{"end", "ids", "logprobs", "score", "text"}));
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

TEST(Generate, ShowsAPromptBeforeItsContinuationStreamedOrNot) {
  train_decoder();
  const auto text = generate_json("decoder --prompt 'to be' --seed 3")["results"][0]["outputs"][0]["text"]
                        .get<std::string>();
  EXPECT_EQ(generate("decoder --prompt 'to be' --seed 3").out, "to be" + text + "\n");
  EXPECT_EQ(generate("decoder --prompt 'to be' --seed 3 --stream").out, "to be" + text + "\n");
  EXPECT_NE(generate("decoder --prompt 'to be' --seed 4").out, "to be" + text + "\n");
  EXPECT_EQ(generate("decoder --prompt 'to be' --seed -1").out,
            generate("decoder --prompt 'to be' --seed=-1 --stream").out);
  expect_one_line(generate("decoder --prompt 'to be' --seed x"), "'x' is not a whole number of 64 bits");
  EXPECT_EQ(generate("decoder --prompt-ids 1,2 --max-new-tokens 1 --temperature 0").out.size(), 4U);
}

TEST(Generate, NumbersSeveralOutputs) {
  train_decoder();
  const auto results = generate_json("decoder --num-samples 2 --seed 3", "to be\nor\n")["results"];
  const auto text = [&](size_t p, size_t s) {
    return results[p]["prompt"].get<std::string>() + results[p]["outputs"][s]["text"].get<std::string>();
  };
  const auto both = fmt::format(
      "=== prompt 1, sample 1\n{}\n\n=== prompt 1, sample 2\n{}\n\n"
      "=== prompt 2, sample 1\n{}\n\n=== prompt 2, sample 2\n{}\n",
      text(0, 0), text(0, 1), text(1, 0), text(1, 1));
  const auto prompts = fmt::format("=== prompt 1\n{}\n\n=== prompt 2\n{}\n", text(0, 0), text(1, 0));
  const auto samples = fmt::format("=== sample 1\n{}\n\n=== sample 2\n{}\n", text(0, 0), text(0, 1));
  for (const std::string stream : {"", " --stream"}) {
    EXPECT_EQ(generate("decoder --num-samples 2 --seed 3" + stream, "to be\nor\n").out, both);
    EXPECT_EQ(generate("decoder --prompt 'to be' --prompt or --num-samples 2 --seed 3" + stream).out, both);
    EXPECT_EQ(generate("decoder --prompt 'to be' --prompt or --seed 3" + stream).out, prompts);
    EXPECT_EQ(generate("decoder --prompt 'to be' --num-samples 2 --seed 3" + stream).out, samples);
  }
  Workplace::get().dir().write("prompts.txt", "to be\r\nor");
  EXPECT_EQ(generate("decoder --num-samples 2 --seed 3 --input prompts.txt").out, both);
}

TEST(Generate, TakesEveryPromptLiterally) {
  train_decoder();
  // Brackets, braces and commas have no meaning of their own. None of these is in the vocabulary.
  for (const std::string prompt : {"[to,be]", "{}", ",", "--json", "-1"}) {
    expect_one_line(generate(fmt::format("decoder --prompt '{}'", prompt)),
                    fmt::format("prompt 1: the character \"{}\"", prompt.front()));
  }
}

TEST(Generate, EndsBeforeAStopText) {
  train_decoder();
  const auto whole = generate_json("decoder --prompt to --seed 5")["results"][0]["outputs"][0];
  const auto text = whole["text"].get<std::string>();
  const auto stop = text.substr(6, 2);
  const auto expected = text.substr(0, text.find(stop));
  const auto arguments = fmt::format("decoder --prompt to --seed 5 --stop '{}' --stop XYZ", stop);
  const auto output = generate_json(arguments)["results"][0]["outputs"][0];
  EXPECT_EQ(output["text"], expected);
  EXPECT_EQ(output["ids"].size(), expected.size() + 2) << "up to the end of the stop text";
  EXPECT_EQ(generate(arguments).out, "to" + expected + "\n");
  EXPECT_EQ(generate(arguments + " --stream").out, "to" + expected + "\n");
  expect_one_line(generate("decoder --prompt to --stop ''"), "stop: has an empty text");
  // As a key of the configuration.
  auto& w = Workplace::get();
  std::filesystem::copy(w.dir() / "decoder", w.dir() / "stopping", std::filesystem::copy_options::recursive);
  auto config = read_file(w.dir() / "stopping/config.yaml");
  config.replace(config.find("  stop: []"), 10, fmt::format("  stop: [\"{}\"]", stop));
  w.dir().write("stopping/config.yaml", config);
  EXPECT_EQ(generate("stopping --prompt to --seed 5").out, "to" + expected + "\n");
}

TEST(Generate, KnowsTheRulesAgainstRepetition) {
  train_decoder();
  const auto ids_of = [](const std::string& arguments) {
    return generate_json("decoder --prompt to --max-new-tokens 10 " +
                         arguments)["results"][0]["outputs"][0]["ids"]
        .get<std::vector<int64_t>>();
  };
  const auto n_different = [](std::vector<int64_t> ids) {
    std::ranges::sort(ids);
    return std::ranges::unique(ids).begin() - ids.begin();
  };
  for (const std::string mode : {"--temperature 0 ", "--temperature 0.1 ", "--beam 2 "}) {
    const auto before = n_different(ids_of(mode));
    EXPECT_LT(before, 10) << mode;
    for (const char* rule : {"--repetition-penalty 1000", "--presence-penalty 90", "--frequency-penalty 90"})
      EXPECT_GT(n_different(ids_of(mode + rule)), before) << mode << rule;
    EXPECT_EQ(n_different(ids_of(mode + "--no-repeat-ngram-size 1")), 10) << mode;
  }
  EXPECT_EQ(ids_of("--min-p 1 --temperature 2"), ids_of("--temperature 0"));
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
  // The n best stand below their source.
  const auto list = generate("translator --num-samples 2", "das ist\ngut\n").out;
  EXPECT_TRUE(list.starts_with(fmt::format("das ist\n  1. {}\n  2. ", best(0)))) << list;
  EXPECT_THAT(list, HasSubstr(fmt::format("\n\ngut\n  1. {}\n  2. ", best(1))));
  expect_one_line(generate("translator --prompt das --min-p 0.5"), "does not sample");
  expect_one_line(generate("translator --prompt das --stream"), "add --beam 1");
  expect_one_line(generate("translator --prompt das --temperature 0.5"), "does not sample");
  expect_one_line(generate("translator --prompt das --num-samples 4"), "more than the 3 beams");
  expect_one_line(generate("translator --prompt ''"), "the prompt is empty");
  expect_one_line(generate("translator --prompt " + std::string(48, 'a')), "at most 48");
  EXPECT_EQ(generate("translator --prompt das --stream --beam 1").code, 0);
}

// Lines keep their places: nothing in, nothing out.
TEST(Generate, AnswersAnEmptyLineWithAnEmptyLine) {
  train_translator();
  const auto alone = generate("translator", "das\n").out;
  EXPECT_EQ(generate("translator", "das\n\ndas\n").out, alone + "\n" + alone);
  EXPECT_EQ(generate("translator --beam 1 --temperature 0 --stream", "\ndas\n").out.substr(0, 1), "\n");
  const auto results = generate_json("translator", "\ndas\n")["results"];
  EXPECT_EQ(results[0], nlohmann::json::parse(
                            R"({"prompt": "", "prompt_ids": [],
                                "outputs": [{"text": "", "ids": [], "logprobs": [], "score": 0.0, "end": "end_token"}]})"));
  train_decoder();
  EXPECT_NE(generate_json("decoder", "to\n\n")["results"][1]["outputs"][0]["text"], "")
      << "a text may begin from nothing";
}

// A terminal is needed for both: nothing is redirected, and the screen shows input and output.
TEST(Generate, AnswersWhatIsTyped) {
  train_decoder();
  const auto results = generate_json("decoder --seed 3", "to be\nor\n")["results"];
  const auto text_of = [&](const std::string& prompt) {
    const auto& result = results[prompt == "or" ? 1 : 0];
    return prompt + result["outputs"][0]["text"].get<std::string>() + "\n";
  };
  TerminalSession session(Workplace::get().dir(), "generate decoder --seed 3 --device cpu");
  EXPECT_EQ(session.wait_for("\n> "), "Type the beginning of a text and press Enter; Ctrl-D ends.\n> ");
  session.type("to be\n");
  EXPECT_EQ(session.wait_for("\n> "), text_of("to be") + "> ");
  session.type("or\n");
  EXPECT_EQ(session.wait_for("\n> "), text_of("or") + "> ");
  session.type("Ω\n");
  EXPECT_THAT(session.wait_for("\n> "), StartsWith("zoo: the character \"Ω\""));
  session.type("\x04");
  EXPECT_EQ(session.finish().code, 0);
}

TEST(Generate, AnswersWhatIsTypedWithEveryKindOfModel) {
  train_translator();
  TerminalSession translator(Workplace::get().dir(), "generate translator --device cpu");
  EXPECT_THAT(translator.wait_for("\n> "), StartsWith("Type a text to answer"));
  translator.type("das\n");
  EXPECT_EQ(translator.wait_for("\n> "), generate("translator", "das\n").out + "> ");
  translator.type("\n");
  EXPECT_EQ(translator.wait_for("\n> "), "\n> ");
  translator.type("\x04");
  EXPECT_EQ(translator.finish().code, 0);

  train_masked();
  TerminalSession masked(Workplace::get().dir(), "generate masked --device cpu");
  EXPECT_THAT(masked.wait_for("\n> "), StartsWith("Type a text with <mask>"));
  masked.type("to b<mask>\n");
  EXPECT_EQ(masked.wait_for("\n> "), generate("masked", "to b<mask>\n").out + "> ");
  masked.type("to be\n");
  EXPECT_THAT(masked.wait_for("\n> "), StartsWith("zoo: there is no <mask> in the text"));
  masked.type("\x04");
  EXPECT_EQ(masked.finish().code, 0);
}

TEST(Generate, DoesNotWaitForATypistWhoGavePrompts) {
  train_decoder();
  const auto& dir = Workplace::get().dir();
  const auto expected = generate("decoder --prompt to --seed 3").out;
  EXPECT_EQ(TerminalSession(dir, "generate decoder --prompt to --seed 3 --device cpu").finish().out,
            expected);
  // One document at the end, as from a file.
  TerminalSession json(dir, "generate decoder --json --device cpu");
  json.type("to\n\x04");
  const auto outcome = json.finish();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["results"][0]["prompt"], "to");
}

// A vocabulary with the control characters of terminals, from a corpus that somebody else has made.
TEST(Generate, ATerminalIsNotControlledByAVocabulary) {
  auto& w = Workplace::get();
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\x1b[2J\x7f\n";
  w.dir().write("evil.txt", text);
  w.train("evil", fmt::format("name: evil\ntask: language_modeling\n"
                              "data: {{train: {}/evil.txt, sequence_length: 16, tokenizer: {{type: char}}}}\n"
                              "model: {{architecture: decoder, {}}}\n{}generation: {{max_new_tokens: 40}}\n",
                              w.dir().path().string(), kModel, kTraining));
  const std::string arguments = "generate evil --prompt '[2J' --seed 1 --device cpu";
  const auto exact = w.zoo(arguments).out;
  ASSERT_THAT(exact, HasSubstr("\x1b")) << "files and pipes get every byte";
  const auto shown = TerminalSession(w.dir(), arguments).finish().out;
  EXPECT_EQ(shown, printable(exact));
  EXPECT_EQ(TerminalSession(w.dir(), arguments + " --stream").finish().out, shown);
  EXPECT_EQ(TerminalSession(w.dir(), "tokenizer decode evil --ids 0,1,2,3").finish().out,
            printable(w.zoo("tokenizer decode evil --ids 0,1,2,3").out));
  EXPECT_EQ(TerminalSession(w.dir(), arguments + " > file.txt").finish().out, "");
  EXPECT_EQ(read_file(w.dir() / "file.txt"), exact);
}

TEST(Generate, RefusesAtOnceWhatIsTooMuch) {
  train_decoder();
  auto& w = Workplace::get();
  const auto expect_early = [](const Outcome& outcome, const std::string& problem) {
    expect_one_line(outcome, problem);
    EXPECT_LT(outcome.peak_bytes, int64_t{1} << 30);
  };
  constexpr size_t size = 20'000'000;
  w.dir().write("long.txt", std::string(size, 'o'));
  for (const char* input : {"--input long.txt", "<long.txt", "</dev/zero"}) {
    expect_early(generate(std::string("decoder ") + input),
                 "line 1 has more than 1048576 bytes, which is more than the model can read");
  }
  std::filesystem::remove(w.dir() / "long.txt");
  expect_early(generate("decoder --prompt a --num-samples 1000000000"),
               "--num-samples: '1000000000' is not a whole number from 1 to 10000");
  train_masked();
  expect_early(generate("masked --prompt '<mask><mask>' --num-samples 1000000000"), "--num-samples");
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
  for (const char* option :
       {"--temperature 0.5", "--stop a", "--min-p 0.5", "--repetition-penalty 2", "--presence-penalty 1",
        "--frequency-penalty 1", "--no-repeat-ngram-size 2", "--top-k 3", "--beam 2", "--seed 1"}) {
    expect_one_line(generate(fmt::format("masked --prompt '<mask>' {}", option)),
                    ": this run fills masks with the likeliest tokens: leave it out");
  }
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
      {"decoder --input nowhere.txt", "nowhere.txt"},
      {"decoder --input cache/../stdin", "the file is empty"},
      {"decoder --prompt a --top-p 0", "top_p is 0"},
      {"decoder --prompt a --max-new-tokens 010", "'010' is not a whole number"},
      {"decoder --prompt a --max-new-tokens 99999999999999999999", "not a whole number"},
      {"decoder --prompt a --beam-groups 2", "--beam N of 2 or more"},
      {"decoder --prompt a --beam 4 --beam-groups 3", "beam_groups: 3 groups do not divide 4 beams"},
      {"decoder --prompt a --beam 4 --diversity-penalty 1", "set beam_groups"},
      {"decoder --prompt a --beam 0", "--beam: '0' is not a whole number"},
      {"decoder --prompt a --max-new-tokens 0", "--max-new-tokens: '0' is not a whole number"},
      {"decoder --prompt a --temperature x", "--temperature: 'x' is not a number"},
      {"decoder --prompt a --min-p 2", "min_p is 2, and must be between 0 and 1"},
      {"decoder --prompt a --repetition-penalty 0",
       "repetition_penalty is 0, and must be > 0 and <= 1000000"},
      {"nowhere --prompt a", "nowhere: no such run"},
  };
  for (const auto& [arguments, problem] : cases) expect_one_line(generate(arguments), problem);
  // Beams do not sample, and an option that is given as "off" does not ask for it.
  expect_one_line(generate("decoder --prompt a --beam 2 --top-k 3"), "--top-k contradicts beam search");
  expect_one_line(generate("decoder --prompt a --beam 2 --top-k 0 --min-p 0.1"), "--min-p contradicts");
  EXPECT_EQ(generate("decoder --prompt a --beam 2 --top-k 0 --top-p 1 --temperature 0").code, 0);
  expect_one_line(generate("decoder", "to be\nto \xFF\n"), "prompt 2: text is not UTF-8");
  train_translator();
  expect_one_line(generate("translator"), "standard input is empty");
  EXPECT_EQ(generate("decoder --seed 4").out, generate("decoder --seed 4 --prompt ''").out);
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

TEST(Generate, CtrlCEndsItAtOnce) {
  train_decoder();
  TerminalSession session(Workplace::get().dir(),
                          "generate decoder --prompt to --max-new-tokens 10000000 --stream --device cpu");
  session.wait_for("to");
  session.type("\x03");
  const auto outcome = session.finish();
  EXPECT_EQ(outcome.code, -SIGINT);
  EXPECT_EQ(outcome.out.find("zoo: "), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace zoo
