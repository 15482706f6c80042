// Every documented command, end to end: from a corpus and a configuration to a run, and all uses of a run.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/text_width.h"
#include "tests/cli/support.h"
#include "tests/cli/terminal.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A directory with corpora and a configuration for each task.
class Commands : public ::testing::Test {
 protected:
  Commands() {
    write_corpora(dir_);
    dir_.write("common.yaml", R"(
data: {sequence_length: 24, tokenizer: {type: char}}
model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32, dropout: 0.1}
training: {steps: 4, batch_size: 4, evaluate_every: 2, checkpoint_every: 2, threads: 1}
generation: {max_new_tokens: 6}
)");
    const auto config = [&](const char* name, const char* task, const char* architecture,
                            const char* corpus) {
      dir_.write(
          fmt::format("{}.yaml", name),
          fmt::format("extends: common.yaml\ntask: {}\nmodel: {{architecture: {}}}\ndata: {{train: {}}}\n",
                      task, architecture, corpus));
    };
    config("writer", "language_modeling", "decoder", "text.txt");
    config("filler", "masked_language_modeling", "encoder", "text.txt");
    config("translator", "text_to_text", "encoder_decoder", "pairs");
    config("classifier", "text_classification", "encoder", "table.tsv");
  }

  Outcome zoo(const std::string& arguments, std::string_view input = "") const {
    return run_zoo(dir_, arguments, {.input = input});
  }
  /// The output of a command, which must succeed and print nothing on stderr, except that the model has
  /// learnt nothing: these models are hardly trained.
  std::string output(const std::string& arguments, std::string_view input = "") const {
    const auto outcome = zoo(arguments, input);
    EXPECT_EQ(outcome.code, 0) << arguments;
    if (!outcome.err.starts_with("note: the loss ")) {
      EXPECT_EQ(outcome.err, "") << arguments;
    }
    EXPECT_LE(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.out;
  }
  /// The document that a command prints with --json.
  json document(const std::string& arguments, std::string_view input = "") const {
    return json::parse(output(arguments + " --json", input));
  }
  void train(const std::string& arguments) const {
    const auto outcome = zoo("train --device cpu " + arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  fs::path path(std::string_view name) const { return dir_ / name; }
  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
};

TEST_F(Commands, WorkOnALanguageModel) {
  const auto trained = zoo("train writer.yaml --device cpu");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, AllOf(HasSubstr("writer"), HasSubstr("step 2: validation"),
                                 HasSubstr("4 steps in"), HasSubstr("best validation loss")));
  // Neither --out nor a name: the run gets the name of its configuration.
  const std::string run = "runs/writer";
  for (const char* file : {"config.yaml", "model.safetensors", "tokenizer.json", "metrics.jsonl",
                           "samples.txt", "checkpoints/step-4/model.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(path(run) / file)) << file;
  }

  const auto scores = document("evaluate " + run);
  EXPECT_THAT(keys(scores), ElementsAre("bits_per_byte", "data", "loss", "perplexity", "tokens", "weights",
                                        "word_perplexity"));
  const double loss = scores["loss"];
  EXPECT_NEAR(scores["perplexity"], std::exp(loss), 1e-6);
  EXPECT_NEAR(scores["bits_per_byte"], loss / std::numbers::ln2, 1e-6) << "a character of ASCII is a byte";
  EXPECT_TRUE(scores["tokens"].is_number_integer());
  EXPECT_THAT(output("evaluate " + run), HasSubstr(fmt::format("{:.4f}\n", loss)));
  dir().write("other.txt",
              "is that the question to be or to be not that\nis the question that is not to be\n");
  const auto other = document("evaluate " + run + " --data other.txt");
  EXPECT_NE(other["loss"], scores["loss"]);
  EXPECT_LT(other["tokens"], scores["tokens"]);

  const auto generated = document("generate " + run + " --prompt 'to be'");
  ASSERT_THAT(keys(generated), ElementsAre("results", "weights"));
  ASSERT_THAT(keys(generated["results"][0]), ElementsAre("outputs", "prompt", "prompt_ids"));
  EXPECT_THAT(keys(generated["results"][0]["outputs"][0]),
              ElementsAre("end", "ids", "logprobs", "score", "text"));

  const auto cost = document("inspect " + run);
  EXPECT_THAT(keys(cost), AllOf(::testing::Contains("parameters"), ::testing::Contains("flops_per_token"),
                                ::testing::Contains("layers")));
  int64_t parameters = 0;
  for (const auto& layer : cost["layers"]) parameters += layer["parameters"].get<int64_t>();
  EXPECT_EQ(cost["parameters"], parameters);
  EXPECT_GT(cost["flops_per_token"], parameters);
  EXPECT_EQ(cost["name"], "writer");
  EXPECT_THAT(output("inspect " + run), HasSubstr("feed_forward"));
  EXPECT_EQ(document("inspect writer.yaml --length 24"), document("inspect " + run + " --length 24"));

  EXPECT_EQ(output("config " + run), read_file(path(run) / "config.yaml"));
}

// Layers that remember sums: what a sequence costs, and what cannot be shown.
TEST_F(Commands, WorkOnAWriterWithRunningStates) {
  const std::string attention = " --set 'model.attention=[delta, full]' --set model.n_layers=2";
  const auto memory = document("inspect writer.yaml" + attention)["memory"];
  EXPECT_GT(memory["state_bytes"], 0);
  EXPECT_EQ(document("inspect writer.yaml")["memory"]["state_bytes"], 0);
  EXPECT_THAT(output("inspect writer.yaml" + attention), HasSubstr("B per sequence (all float32)"));
  EXPECT_THAT(output("inspect writer.yaml"), HasSubstr("to generate (all float32)"));
  train("writer.yaml --out sums" + attention);
  EXPECT_THAT(keys(document("generate sums --prompt 'to be'")), ElementsAre("results", "weights"));
  const auto outcome = zoo("attention sums --text 'to be'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err,
      "zoo: the model has no attention maps: layer 0 is of the type delta, which remembers a sum of the "
      "past and has no weights of tokens: choose another run\n");
}

TEST_F(Commands, WorkOnATranslator) {
  train("translator.yaml --out run");
  const auto evaluated = zoo("evaluate run --json");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(keys(json::parse(evaluated.out)), ElementsAre("bits_per_byte", "bleu", "chrf", "data", "loss",
                                                            "perplexity", "tokens", "weights"));
  const auto results = document("generate run", "das ist\ngut\n")["results"];
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1]["prompt"], "gut");

  EXPECT_THAT(output("attention run --text 'das ist gut' --target 'that is good'"),
              HasSubstr("attention maps: run/attention.html\n"));
  const auto page = read_file(path("run/attention.html"));
  EXPECT_THAT(page, AllOf(StartsWith("<!doctype html>"), HasSubstr("</html>")));
  // The page loads nothing from elsewhere, so it can be sent by mail.
  for (const char* outside : {"http:", "https:", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  const auto maps = document("attention run --text 'das ist gut' --target 'that is good'");
  std::set<std::string> kinds;
  for (const auto& layer : maps["layers"]) {
    kinds.insert(layer["kind"]);
    EXPECT_EQ(layer["heads"].size(), 2U);
  }
  EXPECT_THAT(kinds, ElementsAre("cross", "decoder", "encoder"));
  ASSERT_EQ(maps["predictions"].size(), maps["target_tokens"].size());
  for (const auto& likeliest : maps["predictions"]) {
    ASSERT_EQ(likeliest.size(), 5U);
    EXPECT_THAT(keys(likeliest[0]), ElementsAre("probability", "token"));
  }

  const auto table = output("attention run --text 'das ist gut' --target 'that is good' --heads");
  const auto cell = [](const json& value) {
    return value.is_null() ? std::string("-") : fmt::format("{:.2f}", value.get<double>());
  };
  std::string expected = "attention layer head entropy distance first previous itself off-diagonal\n";
  ASSERT_EQ(maps["heads"].size(), 6U);
  for (const auto& head : maps["heads"]) {
    expected += fmt::format("{} {} {} {} {} {} {} {} {}\n", head["kind"].get<std::string>(),
                            head["layer"].get<int>(), head["head"].get<int>(), cell(head["entropy"]),
                            cell(head["distance"]), cell(head["first"]), cell(head["previous"]),
                            cell(head["itself"]), cell(head["alignment_error"]));
  }
  std::istringstream lines(table);
  std::string narrow;  // with one blank between cells
  std::set<size_t> widths;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string row;
    for (std::string word; words >> word;) row += (row.empty() ? "" : " ") + word;
    narrow += row + "\n";
    if (!line.starts_with("“") && !line.starts_with("attention maps")) widths.insert(line.size());
  }
  EXPECT_THAT(narrow, HasSubstr(expected));
  EXPECT_EQ(widths.size(), 1U) << "columns are aligned\n" << table;
  ASSERT_EQ(maps["rollout"].size(), 3U);
  EXPECT_EQ(maps["rollout"][2]["kind"], "cross");
}

TEST_F(Commands, WorkOnAMaskedLanguageModel) {
  train("filler.yaml --out run");
  EXPECT_THAT(keys(document("evaluate run")), ::testing::IsSupersetOf({"loss", "perplexity", "tokens"}));
  EXPECT_THAT(output("generate run --prompt 'to <mask>e or'"), HasSubstr("\n  <mask>: "));
  output("attention run --text 'to be' --out maps.html");
  EXPECT_TRUE(fs::exists(path("maps.html")));
  const auto maps = document("attention run --text 'to be'");
  EXPECT_EQ(maps["predictions"].size(), maps["source_tokens"].size());
}

TEST_F(Commands, WorkOnAClassifier) {
  train("classifier.yaml --out run");
  const auto scores = document("evaluate run");
  EXPECT_THAT(keys(scores), ::testing::IsSupersetOf({"accuracy", "f1", "loss", "tokens"}));
  for (const char* part : {"accuracy", "f1"}) {
    EXPECT_GE(scores[part], 0.0);
    EXPECT_LE(scores[part], 1.0);
  }
  EXPECT_TRUE(document("attention run --text 'to be'")["predictions"].empty());
  dir().write("unknown.tsv", "sentence\tlabel\nthat is good\tenvy\n");
  EXPECT_THAT(zoo("evaluate run --data unknown.tsv").err, HasSubstr("'envy'"));
  dir().write("named.tsv", "review\tSentiment\nthat is good\tenvy\n");
  EXPECT_THAT(zoo("evaluate run --data named.tsv").err, HasSubstr("'envy'"));
}

TEST_F(Commands, ProposeTokensThatChangeNoGreedyText) {
  train("writer.yaml --out large");
  train("writer.yaml --out small --set model.d_model=8");
  train("writer.yaml --out windowed --set model.attention=window");
  train("filler.yaml --out filler");
  const std::string options = " --prompt 'to be or not to be' --temperature 0 --max-new-tokens 20";
  const auto first_output = [&](const std::string& how) {
    return document("generate large" + options + how)["results"][0]["outputs"][0];
  };
  const auto plain = first_output("");
  for (const auto* const how : {" --draft small", " --draft large --draft-tokens 6",
                                " --draft large --draft-weights int8", " --prompt-lookup 3"}) {
    const auto found = first_output(how);
    EXPECT_EQ(found["ids"], plain["ids"]) << how;
    EXPECT_EQ(found["logprobs"], plain["logprobs"]) << how;
  }
  const auto itself = first_output(" --draft large");
  EXPECT_GT(itself["proposed"], 10);
  EXPECT_EQ(itself["accepted"], itself["proposed"]);
  EXPECT_EQ(output("generate large" + options + " --draft small"),
            output("generate large" + options + " --stream"));

  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"large --draft filler", "another vocabulary"},
           {"large --draft small --prompt-lookup 2", "in one way"},
           {"large --draft small --beam 2", "--beam 1"},
           {"large --prompt-lookup 2 --beam 2", "prompt_lookup"},
           {"windowed --prompt-lookup 2", "windows"},
           {"large --draft windowed", "the draft model"},
           {"large --draft-tokens 2", "belong to --draft"},
           {"large --prompt-lookup 7", "--prompt-lookup"},
           {"filler --draft small", "leave it out"}}) {
    const auto outcome = zoo("generate " + arguments + " --prompt 'to be'");
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
}

TEST_F(Commands, TuneWhatIsTrainedAlready) {
  train("filler.yaml --out pretrained");
  dir().write("tuned.yaml", R"(
extends: pretrained/config.yaml
init_from: pretrained
name: tuned
task: text_classification
data: {train: table.tsv}
training: {best_by: last}
)");
  const auto trained = zoo("train tuned.yaml --device cpu");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto pretrained = path("pretrained").string();
  EXPECT_THAT(trained.err, HasSubstr(fmt::format("starts from {}/model.safetensors: ", pretrained)));
  EXPECT_THAT(output("config tuned.yaml"), HasSubstr(fmt::format("\ninit_from: {}\n", pretrained)));
  EXPECT_GT(document("inspect tuned.yaml")["parameters"], 0);

  // A comparison with a model that is trained from scratch reports this.
  dir().write("study.yaml",
              "base: tuned.yaml\nvariants: {tuned: {}, scratch: {init_from: null}}\nseeds: 1\n"
              "speed_seconds: 0\nscaling: false\n");
  const auto compared = zoo("compare study.yaml --out study --device cpu");
  ASSERT_EQ(compared.code, 0) << compared.err;
  const auto results = json::parse(read_file(path("study/results.json")));
  EXPECT_EQ(results["differences"], json({"init_from"}));
  EXPECT_EQ(results["notices"][0]["text"],
            fmt::format("Not the same for all: init_from: {} (tuned), null (scratch)", pretrained));
  EXPECT_EQ(results["runs"][0]["seeds"][0]["valid_loss"], document("evaluate runs/tuned")["loss"]);
  EXPECT_NE(results["runs"][1]["seeds"][0]["valid_loss"], results["runs"][0]["seeds"][0]["valid_loss"]);

  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {"--set model.d_model=24", "init_from: model.d_model is 24, but 16 in " + pretrained},
           {"--set init_from=nowhere", "init_from: nowhere: no such run"}}) {
    const auto refused = zoo("train tuned.yaml --out refused " + arguments);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr(words));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
  fs::rename(path("pretrained/config.yaml"), path("tuned-base.yaml"));
  fs::remove_all(path("pretrained"));
  fs::create_directory(path("pretrained"));
  fs::rename(path("tuned-base.yaml"), path("pretrained/config.yaml"));  // which tuned.yaml extends
  train("tuned.yaml --resume --set training.steps=6");
}

TEST_F(Commands, PathsAreFoundBesideTheConfigurationAndTheRunKeepsThem) {
  fs::create_directories(path("study"));
  fs::rename(path("text.txt"), path("study/own.txt"));
  dir().write("study/own.yaml",
              "extends: writer.yaml\ndata: {train: own.txt}\n");  // writer.yaml: the data root
  const auto trained = zoo("train study/own.yaml --device cpu");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto loss = document("evaluate runs/own --device cpu")["loss"];

  // From another working directory, with another data root.
  const TempDir elsewhere;
  const auto run = path("runs/own").string();
  const auto evaluated = run_zoo(elsewhere, fmt::format("evaluate {} --device cpu --json", run));
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(json::parse(evaluated.out)["loss"], loss);
  const auto again = run_zoo(elsewhere, fmt::format("train {}/config.yaml --device cpu --out again", run));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(lasting_differences(run, elsewhere / "again"), IsEmpty());

  // The same data may be moved.
  fs::rename(path("study"), path("moved"));
  train("moved/own.yaml --resume --set training.steps=6 --out runs/own");
  dir().write("moved/own.txt", read_file(path("moved/own.txt")) + "to be\n");
  const auto changed =
      zoo("train moved/own.yaml --resume --set training.steps=8 --device cpu --out runs/own");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("data have changed"));
}

TEST_F(Commands, ARunIsNotReplacedByOneThatExtendsItsConfiguration) {
  dir().write("base.yaml", "extends: writer.yaml\nname: base\n");
  dir().write("wide.yaml", "extends: base.yaml\nmodel: {d_ff: 40}\n");
  train("base.yaml");
  const auto before = files_below(path("runs/base"));
  train("wide.yaml --overwrite");
  EXPECT_THAT(differences(before, files_below(path("runs/base"))), IsEmpty());
  EXPECT_TRUE(fs::exists(path("runs/wide/model.safetensors")));
}

TEST_F(Commands, ATooLargeVocabularyShrinksWithANote) {
  const std::string vocabulary = "'data.tokenizer={type: sentencepiece, vocab_size: 5000}'";
  const auto trained = zoo("train writer.yaml --device cpu --set " + vocabulary);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err,
              HasSubstr("the training text has too few pieces for a vocabulary of 5000: it has "));
  const auto resumed =
      zoo("train writer.yaml --device cpu --resume --set training.steps=6 --set " + vocabulary);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const auto made = zoo("tokenizer train text.txt --out vocabulary --vocab-size 5000 --json");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("too few pieces for a vocabulary of 5000"));
  EXPECT_LT(json::parse(made.out)["vocab_size"], 5000);
}

TEST_F(Commands, InspectCountsFeedForwardsAsThePapers) {
  dir().write(
      "wide.yaml",
      "model: {vocab_size: 100, d_model: 4096, n_layers: 1, n_heads: 32, bias: false, activation: gelu}\n");
  const auto feed_forward = [&](const std::string& overrides) {
    const auto cost = document("inspect wide.yaml " + overrides);
    int64_t parameters = 0;
    for (const auto& layer : cost["layers"]) {
      if (layer["kind"] == "feed-forward") parameters += layer["parameters"].get<int64_t>();
    }
    return parameters;
  };
  EXPECT_EQ(feed_forward("--set model.d_ff=11008"), int64_t{2} * 4096 * 11008);
  EXPECT_EQ(feed_forward("--set model.d_ff=11008 --set model.activation=swiglu"), int64_t{3} * 4096 * 11008);
  // 8/3 of 4096, rounded: 134.2 million parameters, as many as without a gate at four times the width.
  EXPECT_EQ(feed_forward("--set model.d_ff=10923 --set model.activation=swiglu"), int64_t{3} * 4096 * 10923);
}

TEST_F(Commands, ConfigExplainsAndResolves) {
  const auto reference = output("config");
  for (const char* key :
       {"name:", "task:", "data:", "model:", "training:", "generation:", "  d_model:", "  steps:"}) {
    EXPECT_THAT(reference, HasSubstr(key));
  }
  const auto resolved = output("config writer.yaml --set training.steps=7");
  EXPECT_THAT(resolved, AllOf(StartsWith("name: writer\n"), HasSubstr("  steps: 7\n")));
  dir().write("resolved.yaml", resolved);
  EXPECT_EQ(output("config resolved.yaml"), resolved);
  dir().write("reference.yaml", reference);
  dir().write("nothing.yaml", "{}");
  EXPECT_EQ(output("config reference.yaml --set name=x"), output("config nothing.yaml --set name=x"))
      << "the reference shows the defaults";
}

TEST_F(Commands, ConfigExplainsOneKey) {
  const auto lr = output("config training.optimizer.lr");
  EXPECT_THAT(lr, AllOf(StartsWith("    lr: "), HasSubstr("# Peak learning rate")));
  EXPECT_EQ(output("config lr"), lr);
  const auto group = output("config model.rotary");
  EXPECT_THAT(group, AllOf(StartsWith("  rotary:"), HasSubstr("    theta: "), Not(HasSubstr("d_model"))));
  EXPECT_THAT(output("config n_queries"), HasSubstr("n_queries: 100"));
  EXPECT_THAT(output("config patience"), HasSubstr("evaluations in a row"));
  EXPECT_EQ(zoo("config patiense").code, 2);
  EXPECT_THAT(output("config --list"),
              AllOf(HasSubstr("\nmodels\n"), HasSubstr("  gpt2 "), HasSubstr("  GPT-2 124M\n")));
}

TEST_F(Commands, ProbeSaysWhatHoldsForAPart) {
  const auto shown =
      zoo("probe \"attention={type: window, size: 4}\" --no-costs --json --out card.html");  // says: page: …
  EXPECT_EQ(shown.code, 0);
  const auto card = json::parse(shown.out);
  EXPECT_EQ(card["name"], "window");
  EXPECT_TRUE(card["scaling"].empty());
  for (const auto& check : card["checks"]) EXPECT_NE(check["holds"], false) << check;
  EXPECT_THAT(read_file(path("card.html")), HasSubstr("\"name\":\"window\""));
  EXPECT_THAT(output("probe norm=rms_norm"),
              AllOf(HasSubstr("causal     holds"), HasSubstr("norm          64 to")));
  const auto refused = [&](const std::string& arguments) {
    const auto outcome = zoo("probe " + arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(refused("window"), HasSubstr("'window' is not a part: write KEY=TYPE"));
  EXPECT_THAT(refused("norm"), HasSubstr("'norm' is not a part: write KEY=TYPE"));
  EXPECT_THAT(refused("norm=rms"), HasSubstr("norm must be one of layer_norm"));
  EXPECT_THAT(refused("attention=mlp"), HasSubstr("mlp needs the number of tokens"));
  EXPECT_THAT(refused("norm=rms_norm --set training.steps=3"), HasSubstr("name one"));
  // The task of the fixture, trained with another norm. Its progress is on stderr.
  const auto trained = zoo("probe norm=rms_norm --no-costs --json --task writer.yaml --set training.steps=2");
  const auto scores = json::parse(trained.out)["scores"];
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0]["task"], "writer");
  EXPECT_EQ(scores[0]["steps"], 2);
  dir().write("tasks.yaml",
              "tasks: {short: writer.yaml, long: {extends: writer.yaml, training: {seed: 3}}}\n"
              "variants: {full: {}, other: {model: {norm: layer_norm}}}\nbudget: {steps: 3}\n");
  const auto several =
      json::parse(zoo("probe norm=rms_norm --no-costs --json --task tasks.yaml").out)["scores"];
  ASSERT_EQ(several.size(), 2U);
  EXPECT_EQ(several[0]["task"], "short");
  EXPECT_EQ(several[1]["task"], "long");
  EXPECT_EQ(several[1]["steps"], 3);
  const auto shorter = json::parse(
      zoo("probe norm=rms_norm --no-costs --json --task tasks.yaml --set training.steps=2").out)["scores"];
  EXPECT_EQ(shorter[1]["steps"], 2);
}

TEST_F(Commands, ShellsCompleteCommands) {
  const auto words_after = [&](const std::string& line) {
    dir().write("complete.sh", output("completion bash") + fmt::format(R"(
COMP_WORDS=({} ""); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
[[ ${{COMP_WORDS[COMP_CWORD-1]}} == *_ ]] && {{ unset "COMP_WORDS[COMP_CWORD]"; COMP_CWORD=$((COMP_CWORD - 1));
  COMP_WORDS[COMP_CWORD]="${{COMP_WORDS[COMP_CWORD]%_}}"; }}
_zoo; printf '%s\n' "${{COMPREPLY[@]}}"
)",
                                                                       line));
    const auto place = path("complete.out").string();
    EXPECT_EQ(std::system(fmt::format("bash '{}' > '{}'", path("complete.sh").string(), place).c_str()), 0);
    return read_file(place);
  };
  EXPECT_EQ(words_after("zoo tra_"), "train\n");
  EXPECT_EQ(words_after("zoo train --over_"), "--overwrite\n");
  EXPECT_EQ(words_after("zoo train x.yaml --set training.pati_"), "training.patience=\n");
  EXPECT_EQ(words_after("zoo inspect gpt2-x_"), "gpt2-xl\n");
  EXPECT_EQ(words_after("zoo tokenizer enc_"), "encode\n");
  EXPECT_THAT(output("completion zsh"), StartsWith("autoload -U +X bashcompinit && bashcompinit\n"));
}

TEST_F(Commands, HelpAndVersionAreCommands) {
  EXPECT_EQ(output("help"), output("--help"));
  EXPECT_EQ(output("help train"), output("train --help"));
  EXPECT_EQ(output("help tokenizer encode"), output("tokenizer encode --help"));
  EXPECT_EQ(output("version"), output("--version"));
  EXPECT_THAT(output("help generate"), HasSubstr("\nExamples:\nzoo generate "));
  const auto fish = output("completion fish");
  EXPECT_THAT(fish, HasSubstr("complete -c zoo -n '__fish_use_subcommand' -f -a train -d 'Train the model"));
  EXPECT_THAT(fish, HasSubstr("complete -c zoo -n '__fish_seen_subcommand_from train' -l overwrite -d"));
  EXPECT_THAT(fish, HasSubstr("complete -c zoo -n '__fish_seen_subcommand_from train' -l set -r -d"));
}

TEST_F(Commands, HelpFitsTheTerminal) {
  const auto shown = TerminalSession(dir(), "help train", 60).finish().out;
  std::istringstream lines(shown);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, count_code_points(line));
  EXPECT_LE(longest, 60u) << shown;
  EXPECT_THAT(shown, HasSubstr("\n" + std::string(30, ' ') + "Continue the run"));
}

TEST_F(Commands, ShortFormsAreTheirKeys) {
  train("writer.yaml --out short --steps 3 --lr 0.002 --batch-size 3");
  train(
      "writer.yaml --out long --set training.steps=3 --set training.optimizer.lr=0.002 --set "
      "training.batch_size=3");
  EXPECT_EQ(lasting_differences(path("short"), path("long")), std::vector<std::string>());
  train("writer.yaml --out tuned --steps 2 --init-from short");
  EXPECT_THAT(read_file(path("tuned/config.yaml")),
              HasSubstr(fmt::format("init_from: {}\n", path("short").string())));
  EXPECT_EQ(output("generate short --device cpu --prompt 'to be' --max-tokens 3"),
            output("generate short --device cpu --prompt 'to be' --max-new-tokens 3"));
}

// Each checkpoint is the run with other weights.
TEST_F(Commands, AnyCheckpointCanBeUsed) {
  train(
      "writer.yaml --out run --set training.steps=4 --set training.checkpoint_every=2 --set "
      "training.evaluate_every=2");
  const auto copy = [&](const std::string& name, const std::string& weights) {
    fs::copy(path("run"), path(name), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::copy_file(path("run/checkpoints") / weights / "model.safetensors", path(name) / "model.safetensors",
                  fs::copy_options::overwrite_existing);
  };
  copy("early", "step-2");
  copy("late", "step-4");
  const auto losses = [&](const std::string& arguments) {
    return document("evaluate " + arguments + " --device cpu")["loss"].get<double>();
  };
  EXPECT_EQ(losses("run --checkpoint step-2"), losses("early"));
  EXPECT_EQ(losses("run --checkpoint last"), losses("late"));
  EXPECT_EQ(losses("run --checkpoint best"), losses("run"));
  EXPECT_NE(losses("early"), losses("late"));
  EXPECT_EQ(losses("run/checkpoints/step-2"), losses("early"));
  EXPECT_EQ(output("generate run --checkpoint step-2 --prompt 'to be' --temperature 0 --device cpu"),
            output("generate early --prompt 'to be' --temperature 0 --device cpu"));
  output("export run exported --checkpoint step-2");
  output("export early expected");
  EXPECT_EQ(read_file(path("exported/model.safetensors")), read_file(path("expected/model.safetensors")));
}

TEST_F(Commands, InspectFoldsBlocksThatAreAlike) {
  const auto table = output("inspect resnet-50");
  EXPECT_THAT(table, HasSubstr("stages.2.1-5.layers.1.convolution"));
  EXPECT_THAT(table, Not(HasSubstr("stages.2.3.")));
  EXPECT_LT(std::ranges::count(table, '\n'), 60);
  std::istringstream lines(table);
  std::set<size_t> widths;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find('%'); at != line.npos && line.find("network.") != line.npos)
      widths.insert(width_of(line.substr(0, at)));
  }
  EXPECT_EQ(widths.size(), 1U) << "the columns stand below each other";
}

TEST_F(Commands, FindConfigurationsThatComeWithTheProgram) {
  EXPECT_THAT(output("config gpt2"), AllOf(StartsWith("name: gpt2\n"), HasSubstr("  d_model: 768\n")));
  EXPECT_THAT(output("inspect gpt2.yaml"), HasSubstr("124,439,808"));
  dir().write("mine.yaml", "extends: [gpt2, common.yaml]\ndata: {train: text.txt}\n");
  const auto mine = output("config mine");
  EXPECT_THAT(mine, AllOf(StartsWith("name: mine\n"), HasSubstr("  d_model: 16\n"),
                          HasSubstr("tie_embeddings: true")));
  EXPECT_EQ(zoo("train mine --device cpu --out mine").code, 0);
  EXPECT_THAT(zoo("compare head").err, HasSubstr("did you mean 'heads'?"));
  dir().write("gpt2.yaml", "model: {d_model: 24, n_heads: 2}\n");
  EXPECT_THAT(output("config gpt2"), HasSubstr("  d_model: 24\n"));
}

TEST_F(Commands, TokenizersEncodeAndDecode) {
  const std::string line = "to be or not to be";
  for (const std::string kind :
       {"--type char", "--type byte", "--vocab-size 22 --no-byte-fallback", "--vocab-size 280 --model bpe",
        "--vocab-size 22 --no-byte-fallback --normalization nfkc"}) {
    SCOPED_TRACE(kind);
    fs::remove_all(path("vocabulary"));
    const auto made = document("tokenizer train --documents line --out vocabulary text.txt " + kind);
    EXPECT_THAT(keys(made), ElementsAre("path", "special", "type", "vocab_size"));
    const auto encoded = document("tokenizer encode vocabulary --text '" + line + "'")["results"][0];
    EXPECT_THAT(keys(encoded), ElementsAre("ids", "text", "tokens"));
    const std::vector<int64_t> ids = encoded["ids"];
    EXPECT_EQ(encoded["tokens"].size(), ids.size());
    for (const int64_t id : ids) EXPECT_LT(id, made["vocab_size"].get<int64_t>());

    const auto text_ids = fmt::format("{}\n", fmt::join(ids, ","));
    EXPECT_EQ(output("tokenizer encode vocabulary", line + "\n" + line + "\n"), text_ids + text_ids);
    EXPECT_EQ(output("tokenizer decode vocabulary", text_ids), line + "\n");
    EXPECT_EQ(document(fmt::format("tokenizer decode vocabulary --ids {}", fmt::join(ids, ",")))["results"],
              json::parse(fmt::format(R"([{{"ids": [{}], "text": "{}"}}])", fmt::join(ids, ","), line)));
  }
}

TEST_F(Commands, TakeTokenizersOfTheHub) {
  dir().write("there/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nto\nbe\nor\nnot\n##s\n,\n");
  const auto encoded = document("tokenizer encode there --text 'To be, or nots [SEP]'")["results"][0];
  EXPECT_EQ(encoded["ids"], json::parse("[5, 6, 10, 7, 8, 9, 3]"));
  EXPECT_EQ(encoded["tokens"], json::parse(R"(["to", "be", ",", "or", "not", "##s", "[SEP]"])"));
  EXPECT_EQ(output("tokenizer decode there --ids 5,6,10,7,8,9,3"), "to be, or nots\n");

  train("classifier.yaml --set data.tokenizer.type=hub --set data.tokenizer.path=there");
  EXPECT_TRUE(fs::exists(path("runs/classifier/hub/vocab.txt")));
  EXPECT_EQ(output("tokenizer encode runs/classifier --text 'to be'"), "5,6\n");
  const auto refused = zoo("tokenizer train --type hub --out vocabulary text.txt");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("take char, byte, sentencepiece, bpe or wordpiece"));
}

/// Waits until `file` exists; false if that takes too long.
bool appears(const fs::path& file) {
  for (int i = 0; i < 240'000; ++i) {
    if (fs::exists(file)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// transformers would add the segments of BERT's vocabulary to the tokens of a decoder.
TEST_F(Commands, ADecoderIsExportedWithoutSegments) {
  dir().write("there/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nto\nbe\nor\nnot\n");
  dir().write("there/tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  train("writer.yaml --set data.tokenizer.type=hub --set data.tokenizer.path=there");
  output("export runs/writer exported");
  const auto settings = json::parse(read_file(path("exported/tokenizer_config.json")));
  EXPECT_EQ(settings["model_input_names"], json({"input_ids", "attention_mask"}));
}

TEST_F(Commands, TrainGoesOnAfterAnyDeath) {
  const std::string long_training =
      "writer.yaml --set training.steps=200 --set training.evaluate_every=100 --set "
      "training.checkpoint_every=7"
      " --resume --out ";
  train(long_training + "whole");

  ZooProcess killed(dir(), "train --device cpu " + long_training + "run");
  ASSERT_TRUE(appears(path("run/checkpoints/last")));
  killed.kill(SIGKILL);
  ASSERT_EQ(killed.finish().code, -SIGKILL) << "it was done before it could be killed";

  ZooProcess stopped(dir(), "train --device cpu " + long_training + "run");
  // The second part of the run has begun when there is another checkpoint.
  const auto first = fs::read_symlink(path("run/checkpoints/last"));
  for (int i = 0; i < 240'000 && fs::read_symlink(path("run/checkpoints/last")) == first; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stopped.kill(SIGTERM);
  const auto outcome = stopped.finish();
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("goes on after step"), HasSubstr("run: stopped and saved after step"),
                    HasSubstr("--resume goes on\n")));

  train("run --resume");  // a run goes on by its name
  EXPECT_THAT(lasting_differences(path("whole"), path("run")), ::testing::IsEmpty());
  const auto refused = zoo("train run");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("run is a run: --resume goes on with it"));
}

// A training that ends by the clock says so from its first line on.
TEST_F(Commands, TrainShowsUnitsAndWhatIsLeft) {
  const auto outcome =
      zoo("train writer.yaml --device cpu --out run --set training.steps=1000000 --set training.log_every=1 "
          "--set training.evaluate_every=1000000 --set training.max_seconds=1.5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto first = outcome.err.substr(0, outcome.err.find('\n'));
  EXPECT_THAT(first, StartsWith("writer 1/1000000 steps  loss "));
  EXPECT_THAT(first, AllOf(HasSubstr(" k tokens/s  "), HasSubstr(" ms/step  ")));
  ASSERT_TRUE(first.ends_with(" s left")) << first;
  EXPECT_LE(std::stod(first.substr(first.rfind(", ") + 2)), 1.5);
  EXPECT_THAT(outcome.err, Not(HasSubstr("min ")));
}

TEST_F(Commands, HelpDescribesEveryOption) {
  for (const std::string command : {"",
                                    "train",
                                    "generate",
                                    "predict",
                                    "embed",
                                    "score",
                                    "evaluate",
                                    "average",
                                    "merge",
                                    "inspect",
                                    "runs",
                                    "verify",
                                    "attention",
                                    "lens",
                                    "heads",
                                    "ablate",
                                    "patch",
                                    "attribute",
                                    "contacts",
                                    "structure",
                                    "config",
                                    "tokenizer",
                                    "tokenizer train",
                                    "tokenizer encode",
                                    "tokenizer decode",
                                    "bench",
                                    "compare",
                                    "completion"}) {
    SCOPED_TRACE("zoo " + command + " --help");
    const auto help = output(command + " --help");
    EXPECT_THAT(help, HasSubstr("Usage: zoo"));
    std::istringstream lines(help);
    bool described = true;
    std::string entry;
    for (std::string line; std::getline(lines, line);) {
      // Names begin in column 2, descriptions in column 30; after a long name on the next line.
      const bool is_description = line.starts_with(std::string(30, ' '));
      EXPECT_TRUE(described || is_description) << entry;
      if (line.starts_with("  ") && !is_description) entry = line;
      described = !line.starts_with("  ") || is_description ||
                  (line.size() > 30 && line[29] == ' ' && line[30] != ' ');
    }
    EXPECT_TRUE(described) << entry;
  }
  EXPECT_THAT(output("--help-all"), HasSubstr("--max-new-tokens"));
}

}  // namespace
}  // namespace zoo::testing
