// zoo compare as users run it: configurations in, a table, results.json and a report out.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::ordered_json;

/// Three very short trainings: two equal ones with different names, and one that hardly learns.
class Compare : public ::testing::Test {
 protected:
  Compare() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += fmt::format("{} sheep, {} goats. ", i % 7, (i * i) % 5);
    dir_.write("text.txt", text);
    dir_.write("base.yaml", R"(
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 16, dropout: 0.0}
training:
  {steps: 60, batch_size: 8, optimizer: {lr: 0.005}, schedule: {warmup_steps: 5}, log_every: 5, evaluate_every: 20,
   checkpoint_every: 4, threads: 1}
generation: {max_new_tokens: 8}
)");
    dir_.write("study.yaml", R"(
title: Sheep
folklore: Slow learners learn slowly.
base: base.yaml
variants:
  one: {}
  two: {}
  slow: {training: {optimizer: {lr: 0.00005}}}
seeds: 3
speed_seconds: 0
scaling: false
inputs: ["3 sheep"]
)");
  }

  Outcome run(const std::string& arguments) const { return run_zoo(dir_, "compare " + arguments); }
  Json results(const std::string& name) const { return Json::parse(read_file(dir_ / name / "results.json")); }

  TempDir dir_;
};

/// Without the values that docs/comparison.md marks as measured times.
Json timeless(Json document) {
  document["created"] = nullptr;
  for (auto& run : document["runs"]) {
    std::erase(run["best_in"].get_ref<Json::array_t&>(), Json("seconds"));
    for (auto& seed : run["seeds"]) {
      seed["seconds"] = seed["peak_resident_bytes"] = nullptr;
      seed["curve"]["seconds"] = nullptr;
      seed["train_curve"]["seconds"] = nullptr;
    }
  }
  return document;
}

/// Waits for what a process does, however busy the machine is.
void wait_until(const std::function<bool()>& is_done) {
  for (int i = 0; i < 12'000 && !is_done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_done());
}

void wait_for_file(const std::filesystem::path& path) {
  SCOPED_TRACE(path);
  wait_until([&] { return std::filesystem::exists(path); });
}

/// How many files of this name are below a directory that a process is writing.
size_t n_below(const std::filesystem::path& dir, const std::string& name) {
  std::error_code error;
  size_t n = 0;
  for (std::filesystem::recursive_directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error))
    n += at->path().filename() == name;
  return n;
}

TEST_F(Compare, AStudyIsVerifiedByTrainingItAgain) {
  dir_.write("tuned.yaml", R"(
base: base.yaml
variants: {plain: {}, wide: {model: {d_ff: 40}}, cut: {ablate: {of: wide, parts: [0.1]}}}
tune: {grid: {training.optimizer.lr: [0.005, 0.001]}, share: 0.2}
seeds: 2
budget: {steps: 20}
speed_seconds: 0
scaling: false
)");
  const auto study = run("tuned.yaml --out study --device cpu");
  ASSERT_EQ(study.code, 0) << study.err;
  EXPECT_THAT(study.out, HasSubstr("of 2 seeds")) << "the ablation";
  const auto verify = [&](const std::string& arguments) {
    return run_zoo(dir_, "verify study --device cpu " + arguments);
  };
  const auto same = verify("--run wide --seed 2");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("same       wide, seed 2: "));
  EXPECT_EQ(std::count(same.out.begin(), same.out.end(), '\n'), 1);

  const auto original = results("study");
  const auto write = [&](const Json& changed) { dir_.write("study/results.json", changed.dump()); };
  auto changed = original;
  auto& loss = changed["runs"][0]["seeds"][0]["train_curve"]["train_loss"][1];
  loss = std::nextafter(loss.get<double>(), 100.0);
  write(changed);
  const auto different = verify("");
  EXPECT_EQ(different.code, 1) << different.err;
  EXPECT_THAT(different.out, HasSubstr("the first is train_curve.train_loss[1] (step "));
  changed = original;
  changed["runs"][0]["metric"]["mean"] = 1.5;
  write(changed);
  EXPECT_THAT(verify("--json").out, HasSubstr(R"("place":"metric.mean")"));

  changed = original;
  changed["runs"][0]["seeds"][0]["peak_memory_bytes"] = 7;
  write(changed);
  EXPECT_THAT(verify("").out, HasSubstr("the first is peak_memory_bytes"));
  changed["versions"]["commit"] = "other-sources";
  write(changed);
  EXPECT_EQ(verify("").code, 0) << "other sources may need other memory";

  write(original);
  const auto base = read_file(dir_ / "base.yaml"), text = read_file(dir_ / "text.txt");
  const auto reason_for = [&](const std::string& file, const std::string& content) {
    dir_.write(file, content);
    return verify("").out;
  };
  EXPECT_THAT(reason_for("base.yaml", base + "# a remark\n"), HasSubstr("same "));
  auto wider = base;
  wider.replace(wider.find("d_model: 16"), 11, "d_model: 18");
  EXPECT_THAT(reason_for("base.yaml", wider),
              AllOf(HasSubstr("the first is config.model.d_model: \"16\" in the study, \"18\" here"),
                    HasSubstr("configuration: config.model.d_model is set at base.yaml:4:"),
                    Not(HasSubstr("data:"))));
  dir_.write("base.yaml", base);
  EXPECT_THAT(
      reason_for("text.txt", text + "7 sheep, 5 goats. "),
      AllOf(HasSubstr("different"), HasSubstr("data: other than in the study: "), HasSubstr("text.txt")));
  dir_.write("text.txt", text);
  changed = original;
  changed["runs"][0]["config"]["data.train"] = "[elsewhere/text.txt]";
  write(changed);
  EXPECT_EQ(verify("").code, 0);
  changed["runs"][0]["parameters"] = 7;
  write(changed);
  EXPECT_THAT(verify("").out, HasSubstr("the first is parameters: 7 in the study"));

  write(original);
  const auto third = verify("--run third");
  EXPECT_EQ(third.code, 2);
  EXPECT_THAT(third.err, HasSubstr("it has plain, seed 1; plain, seed 2; wide, seed 1"));
  const auto ablated = verify("--run cut");
  EXPECT_EQ(ablated.code, 2);
  EXPECT_THAT(ablated.err, HasSubstr("no such training"));
  dir_.write("tuned.yaml", "base: base.yaml\n");
  const auto moved = verify("");
  EXPECT_EQ(moved.code, 2);
  EXPECT_THAT(moved.err, HasSubstr("has changed since the study was made"));
  changed["command"] = "rm -rf x";
  write(changed);
  EXPECT_THAT(verify("").err, HasSubstr("is no command of zoo compare"));
  for (const std::string wrong : {"[]", "7", "{", "{\"runs\": 7}"}) {
    dir_.write("study/results.json", wrong);
    EXPECT_EQ(verify("").code, 2) << wrong;
    EXPECT_THAT(verify("").err, HasSubstr("study/results.json: ")) << wrong;
  }
}

TEST_F(Compare, TellsTheWorseFromTheEqual) {
  const auto outcome = run("study.yaml --out c");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::AllOf(HasSubstr("bits per byte"), HasSubstr("same, p < 0.001"),
                                            HasSubstr("report   c/report.html")));
  const auto document = results("c");
  EXPECT_EQ(document["schema"], "transformer-zoo/comparison/2");
  EXPECT_TRUE(document["fair"]);
  EXPECT_EQ(document["seeds"], Json({1, 2, 3}));
  EXPECT_EQ(document["differences"], Json({"training.optimizer.lr"}));
  EXPECT_EQ(document["command"], "zoo compare study.yaml");
  EXPECT_EQ(document["yaml"], read_file(dir_ / "study.yaml"));
  EXPECT_EQ(document["variants"], Json({"one", "two", "slow"}));
  EXPECT_TRUE(document["grid"].empty());
  ASSERT_EQ(document["runs"].size(), 3u);

  const auto& one = document["runs"][0];
  EXPECT_TRUE(one["versus_baseline"].is_null());
  EXPECT_EQ(one["metric"]["n"], 3);
  EXPECT_LT(one["metric"]["low"], one["metric"]["mean"]);
  EXPECT_EQ(one["samples"][0]["input"], "3 sheep");
  EXPECT_EQ(one["attention"]["source_tokens"].size(), 7u);
  EXPECT_FALSE(one.contains("confusion")) << "it does not classify";
  for (const auto& seed : one["seeds"]) {
    EXPECT_EQ(seed["end"], "all_steps");
    EXPECT_EQ(seed["steps"], 60);
    EXPECT_EQ(seed["tokens"], 60 * 8 * 16);
    EXPECT_EQ(seed["curve"]["step"], Json({0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60}));
    const auto curve = seed["curve"]["metric"].get<std::vector<double>>();
    EXPECT_EQ(std::ranges::min(curve), seed["valid"]["bits_per_byte"]);  // of the best weights
    EXPECT_EQ(curve.front(), std::ranges::max(curve)) << "before the first step";
    const auto& train = seed["train_curve"];
    EXPECT_EQ(train["grad_norm"].size(), train["step"].size());
    EXPECT_GT(train["grad_norm"].back(), 0.0);
    EXPECT_GT(train["lr"].back(), 0.0);
    EXPECT_EQ(seed["flops"], 3 * one["flops_per_token"].get<double>() * 60 * 8 * 16);
  }
  EXPECT_EQ(document["runs"][1]["versus_baseline"]["verdict"], "same");
  EXPECT_EQ(document["runs"][1]["versus_baseline"]["difference"], 0.0);
  EXPECT_EQ(document["runs"][1]["metric"], one["metric"]);
  EXPECT_EQ(document["runs"][2]["versus_baseline"]["verdict"], "worse");
  EXPECT_LT(document["runs"][2]["versus_baseline"]["p_corrected"], 0.05);
  EXPECT_THAT(document["measured"].get<std::string>(), HasSubstr("is worse than one (slow)"));
  EXPECT_THAT(read_file(dir_ / "c/report.html"), HasSubstr("Sheep"));
  EXPECT_THAT(read_file(dir_ / "c/report.md"), HasSubstr("Slow learners learn slowly."));
}

TEST_F(Compare, ReportsAreMadeOfTheResultsAlone) {
  ASSERT_EQ(run("study.yaml --out c --seeds 1 --set training.steps=4").code, 0);
  const auto remade = run("c/results.json --out again");
  ASSERT_EQ(remade.code, 0) << remade.err;
  EXPECT_EQ(remade.out, "report   again/report.html\n");
  for (const std::string name : {"report.html", "report.md"})
    EXPECT_EQ(read_file(dir_ / "again" / name), read_file(dir_ / "c" / name)) << name;
  dir_.write("other.json", "{\"mine\": 1}");
  const auto refused = run("other.json --out e");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("other.json: no results of a comparison: "));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "e"));
  EXPECT_EQ(run("c/results.json --out again").code, 0) << "its own reports are replaced";
  dir_.write("mine/report.md", "kept");
  const auto kept = run("c/results.json --out mine");
  EXPECT_EQ(kept.code, 2);
  EXPECT_THAT(kept.err, HasSubstr("mine/report.md: no comparison has written this: move it away"));
  EXPECT_EQ(read_file(dir_ / "mine/report.md"), "kept");
}

TEST_F(Compare, SeveralTasksHaveOnePage) {
  dir_.write("twice.yaml", "extends: base.yaml\ndata: {sequence_length: 12}\n");
  dir_.write("tasks.yaml", R"(
tasks:
  long: base.yaml
  broken: {extends: base.yaml, data: {train: later.txt}}
  short: twice.yaml
variants: {one: {}, slow: {training: {optimizer: {lr: 0.00005}}}}
budget: {steps: 12}
seeds: 2
speed_seconds: 0
scaling: false
)");
  const auto early = run("tasks.yaml --out out");
  EXPECT_EQ(early.code, 2) << "nothing is trained where a file is missing";
  EXPECT_THAT(early.err, HasSubstr("task broken: later.txt does not exist"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out"));
  dir_.write("later.txt", "\xff\xfe no text");
  const auto first = run("tasks.yaml --out out");
  EXPECT_EQ(first.code, 1) << "a task failed";
  EXPECT_THAT(first.out, HasSubstr("mean of standardised results"));
  EXPECT_THAT(first.err, HasSubstr("later.txt:1: not UTF-8"));
  const auto all = results("out");
  EXPECT_EQ(all["schema"], "transformer-zoo/tasks/1");
  EXPECT_EQ(all["tasks"][0]["runs"].size(), 2U);
  EXPECT_THAT(all["tasks"][1]["error"].get<std::string>(), HasSubstr("not UTF-8"));
  EXPECT_EQ(all["overall"][1]["tasks"], 2);
  EXPECT_EQ(results("out/short")["of_task"], "short");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "out/long/report.html"));
  // The same command goes on where it was, and trains nothing again.
  dir_.write("later.txt", read_file(dir_ / "text.txt"));
  const auto again = run("tasks.yaml --out out --resume");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("long: one, seed 1: trained")));
  EXPECT_THAT(again.err, HasSubstr("broken: one, seed 1: trained"));
  EXPECT_EQ(results("out")["overall"][1]["tasks"], 3);
  EXPECT_EQ(run("tasks.yaml --out out").code, 2) << "it is there";
  // Reports are made of the results alone.
  const auto page = read_file(dir_ / "out/report.md");
  std::filesystem::remove(dir_ / "out/report.md");
  EXPECT_EQ(run("out/results.json").code, 0);
  EXPECT_EQ(read_file(dir_ / "out/report.md"), page);
  // A study of one task is verified by itself.
  const auto verified = run_zoo(dir_, "verify out/short");
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("have the same bits"));
  const auto whole = run_zoo(dir_, "verify out");
  EXPECT_EQ(whole.code, 2);
  EXPECT_THAT(whole.err, HasSubstr("name the directory of one of them"));
  const auto changed = run("tasks.yaml --out out --resume --set training.label_smoothing=0.1");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("long: out/long/runs/one/seed-1 was trained with another configuration: "
                                     "give --overwrite or another --out"));
}

TEST_F(Compare, FinishedRunsAreOnlyEvaluated) {
  ASSERT_EQ(run("study.yaml --out c --seeds 1 --set training.steps=4").code, 0);
  const auto evaluated = run("c/runs/one/seed-1 c/runs/slow/seed-1 --out d --no-speed --json");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const auto again = Json::parse(evaluated.out);
  EXPECT_EQ(again["runs"][0]["seeds"][0]["valid_loss"], results("c")["runs"][0]["seeds"][0]["valid_loss"]);
  EXPECT_EQ(again["runs"][1]["versus_baseline"]["verdict"], "untested");  // one seed
  EXPECT_FALSE(std::filesystem::exists(dir_ / "d/runs"));
  // One run is a page about it.
  const auto alone = run("c/runs/one/seed-1 --out alone --no-speed");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(results("alone")["runs"].size(), 1u);
  EXPECT_TRUE(results("alone")["runs"][0]["speed"].is_null());
  EXPECT_THAT(results("alone")["runs"][0]["scaling"], IsEmpty());
  EXPECT_EQ(results("alone")["command"], "zoo compare c/runs/one/seed-1 --no-speed");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "alone/report.html"));
}

// A rate that is ten times too low or too high makes a variant worse only where it cannot choose its own.
TEST_F(Compare, TunedVariantsAreComparedAtTheirBest) {
  const std::string settings =
      "base: base.yaml\nseeds: 3\nspeed_seconds: 0\nscaling: false\ninputs: [3 sheep]\n";
  const std::string low = "{training: {optimizer: {lr: 0.0005}}}",
                    high = "{training: {optimizer: {lr: 0.3}}}";
  dir_.write("untuned.yaml", settings + "variants: {good: {}, low: " + low + ", high: " + high + "}\n");
  const std::string tune = "tune: {grid: {training.optimizer.lr: [0.0005, 0.005, 0.05, 0.5]}, share: 0.5}\n";
  dir_.write("tuned.yaml", settings + tune + "variants: {good: {}, low: {}, high: {}}\n");
  const auto verdicts = [&](const Json& document) {
    std::vector<std::string> list;
    for (const auto& run : document["runs"]) {
      if (!run["versus_baseline"].is_null()) list.push_back(run["versus_baseline"]["verdict"]);
    }
    return list;
  };
  ASSERT_EQ(run("untuned.yaml --out u").code, 0);
  EXPECT_THAT(verdicts(results("u")), ElementsAre("worse", "worse"));
  EXPECT_TRUE(results("u")["tuning"].is_null());

  const auto outcome = run("tuned.yaml --out t");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("3 variants, 9 trainings after 12 short ones"));
  const auto document = results("t");
  EXPECT_THAT(verdicts(document), ElementsAre("same", "same"));
  const auto& tuning = document["tuning"];
  EXPECT_EQ(tuning["budget"]["amount"], 30);
  EXPECT_EQ(tuning["seeds"], Json({1001}));
  ASSERT_EQ(tuning["variants"].size(), 3u);
  for (const auto& variant : tuning["variants"]) {
    EXPECT_EQ(variant["candidates"], tuning["variants"][0]["candidates"]) << "equal variants";
    EXPECT_EQ(variant["flops"], tuning["variants"][0]["flops"]) << "equal costs";
    EXPECT_GT(variant["flops"], 0.0);
    EXPECT_EQ(variant["candidates"].size(), 4u);
    std::string best;
    double least = 1e9;
    for (const auto& candidate : variant["candidates"]) {
      if (candidate["metric"].is_null() || candidate["metric"] >= least) continue;
      least = candidate["metric"];
      best = candidate["name"];
    }
    EXPECT_EQ(variant["chosen"], best);
    EXPECT_EQ(variant["at_edge"], best == "lr=0.0005" || best == "lr=0.5");
    EXPECT_EQ(variant["keys_at_edge"].size(), variant["at_edge"] ? 1U : 0U);
  }
  EXPECT_EQ("lr=" + document["runs"][0]["config"]["training.optimizer.lr"].get<std::string>(),
            tuning["variants"][0]["chosen"].get<std::string>());
  EXPECT_THAT(read_file(dir_ / "t/report.md"), HasSubstr("## Tuning"));

  // A search that was killed goes on where it was.
  for (const size_t n_begun : {1, 4}) {
    ZooProcess process(dir_, "compare tuned.yaml --out parts --resume");
    wait_until([&] { return n_below(dir_ / "parts/tuning", "config.yaml") >= n_begun; });
    process.kill(SIGKILL);
    EXPECT_EQ(process.finish().code, -SIGKILL);
  }
  ASSERT_EQ(run("tuned.yaml --out parts --resume").code, 0);
  auto parts = timeless(results("parts")), whole = timeless(document);
  for (auto* const one : {&parts, &whole}) {
    (*one)["command"] = nullptr;
    for (auto& variant : (*one)["tuning"]["variants"]) variant["seconds"] = nullptr;
  }
  EXPECT_EQ(parts, whole);

  // --overwrite removes the search, too, but nothing that no comparison wrote.
  dir_.write("parts/tuning/mine.txt", "");
  const auto refused = run("tuned.yaml --out parts --overwrite");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("parts/tuning/mine.txt: no comparison has written this"));
}

// Each key of a grid has edges of its own; what is no number has none.
TEST_F(Compare, TuningSaysWhichKeysAreAtTheirEdge) {
  dir_.write("keys.yaml", R"(
base: base.yaml
variants: {one: {}}
seeds: 1
speed_seconds: 0
scaling: false
tune:
  grid:
    training.optimizer.lr: [0.005, 0.00001, 0.000001]
    training.schedule.warmup_steps: [5, 4, 6]
    training.optimizer.type: [adamw, adam]
)");
  const auto outcome = run("keys.yaml --out k --set training.steps=40");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto variant = results("k")["tuning"]["variants"][0];
  EXPECT_THAT(variant["chosen"].get<std::string>(), HasSubstr("lr=0.005"));
  EXPECT_EQ(variant["keys_at_edge"][0], "training.optimizer.lr") << variant.dump();
  for (const auto& key : variant["keys_at_edge"]) EXPECT_NE(key, "training.optimizer.type");
}

// The text around the numbers may change without training or evaluating anything.
TEST_F(Compare, AFinishedComparisonTakesANewNote) {
  const std::string study =
      "base: base.yaml\ngrid: {model.n_layers: [1, 2], training.batch_size: [2, 4]}\nseeds: 1\n"
      "speed_seconds: 0\nscaling: false\n";
  dir_.write("grid.yaml", study);
  ASSERT_EQ(run("grid.yaml --out g --set training.steps=4").code, 0);
  const auto before = results("g");
  EXPECT_EQ(before["note"], "");
  EXPECT_EQ(before["grid"],
            Json::parse(R"([{"key": "model.n_layers", "label": "n_layers", "values": ["1", "2"]},
      {"key": "training.batch_size", "label": "batch_size", "values": ["2", "4"]}])"));
  EXPECT_EQ(before["runs"][1]["grid"], Json::parse(R"({"model.n_layers": "1", "training.batch_size": "4"})"));
  dir_.write("grid.yaml", study + "note: The text is short.\n");
  const auto outcome = run("grid.yaml --out g --set training.steps=4 --resume");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find(": trained"), outcome.err.npos) << outcome.err;
  auto after = results("g");
  EXPECT_EQ(after["note"], "The text is short.");
  EXPECT_THAT(read_file(dir_ / "g/report.md"), HasSubstr("**Note.** The text is short."));
  EXPECT_EQ(after["runs"], before["runs"]);
}

TEST_F(Compare, CountsTheBytesThatEveryTokenizerGivesBack) {
  dir_.write("lossy.yaml",
             "base: base.yaml\nvariants:\n  kept: {}\n  folded: {data: {tokenizer: {lowercase: true}}}\n"
             "seeds: 2\nbudget: {steps: 10}\nevaluate_lengths: [8]\nspeed_seconds: 0\nscaling: false\n");
  ASSERT_EQ(run("lossy.yaml --out c").code, 0);
  const auto document = results("c");
  EXPECT_EQ(document["metric"]["key"], "bits_per_decoded_byte");
  EXPECT_EQ(document["metric"]["label"], "bits per decoded byte");
  for (const auto& row : document["runs"]) {
    EXPECT_EQ(row["metric"]["n"], 2) << row["name"];
    EXPECT_EQ(row["lengths"][0]["n"], 2);
    for (const auto& seed : row["seeds"]) {
      EXPECT_TRUE(seed["valid"]["bits_per_decoded_byte"].is_number());
      EXPECT_TRUE(seed["curve"]["metric"].back().is_number());
    }
  }
  EXPECT_EQ(document["runs"][0]["seeds"][0]["valid"]["bits_per_byte"],
            document["runs"][0]["seeds"][0]["valid"]["bits_per_decoded_byte"]);
}

TEST_F(Compare, FitsTheLossOverSizes) {
  dir_.write("sizes.yaml", R"(
base: base.yaml
variants:
  relu: {model: {activation: relu}}
  gelu: {model: {activation: gelu}}
sizes:
  small: {model: {d_model: 8}}
  middle: {model: {d_model: 16}}
  large: {model: {d_model: 32}}
match: parameters
seeds: 2
speed_seconds: 0
scaling: false
)");
  const auto outcome = run("sizes.yaml --out s");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = results("s");
  ASSERT_EQ(document["runs"].size(), 6U);
  EXPECT_EQ(document["runs"][4]["baseline"], "relu, middle");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(document["runs"][3 + i]["parameters"], document["runs"][i]["parameters"]) << "matched by size";
    EXPECT_EQ(document["runs"][i]["config"]["model.d_model"], std::to_string(8 << i));
  }
  const auto& fit = document["sizes"];
  EXPECT_EQ(fit["names"], Json({"small", "middle", "large"}));
  EXPECT_EQ(fit["loss"], "bits per byte");
  EXPECT_EQ(fit["points"].size(), 12U);
  EXPECT_EQ(fit["points"][0]["loss"], document["runs"][0]["seeds"][0]["valid"]["bits_per_byte"]);
  ASSERT_EQ(fit["variants"].size(), 2U);
  EXPECT_EQ(fit["variants"][0]["compute_ratio"]["value"], 1.0);
  EXPECT_GT(fit["exponent"]["value"], 0.0) << "larger models learn more";
  EXPECT_LT(fit["exponent"]["low"], fit["exponent"]["high"]);
  EXPECT_THAT(document["measured"].get<std::string>(),
              ::testing::AllOf(HasSubstr("gelu needs "),
                               HasSubstr(" times the compute of relu for the same bits per byte")));
  EXPECT_THAT(read_file(dir_ / "s/report.md"), HasSubstr("## Sizes"));
}

// Killed in the middle of its first training, between two, and late.
TEST_F(Compare, GoesOnWhereItWasKilled) {
  ASSERT_EQ(run("study.yaml --out whole").code, 0);
  for (const char* file :
       {"runs/one/seed-1/config.yaml", "runs/two/seed-1/checkpoints/last", "runs/slow/seed-3/config.yaml"}) {
    ZooProcess process(dir_, "compare study.yaml --out parts --resume");
    wait_for_file(dir_ / "parts" / file);
    process.kill(SIGKILL);
    EXPECT_EQ(process.finish().code, -SIGKILL) << file;
  }
  const auto outcome = run("study.yaml --out parts --resume");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(timeless(results("parts")), timeless(results("whole")));
}

TEST_F(Compare, StopsAndSavesWhenAsked) {
  ZooProcess process(dir_, "compare study.yaml --out c");
  wait_for_file(dir_ / "c/runs");
  process.kill(SIGTERM);
  const auto outcome = process.finish();
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_THAT(outcome.err, HasSubstr("c: stopped and saved; the same command with --resume goes on"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "c/results.json"));
  const auto page = read_file(dir_ / "c/report.html");
  EXPECT_THAT(page, HasSubstr(R"("runs":3,"finished_trainings":)"));
  EXPECT_THAT(page, HasSubstr(R"("trainings":9,"stopped":true)"));
  // The page alone does not keep another comparison from taking its place.
  EXPECT_EQ(run("study.yaml --out c --overwrite --seeds 1 --set training.steps=4").code, 0);
  EXPECT_THAT(read_file(dir_ / "c/report.html"), ::testing::Not(HasSubstr(R"("stopped":)")));
}

TEST_F(Compare, ARunThatDivergesIsShownAsFailed) {
  dir_.write("wild.yaml", R"(
base: base.yaml
variants: {tame: {}, wild: {training: {optimizer: {type: sgd, lr: 1.0e+30}, clip_grad_norm: 0}}}
seeds: 2
speed_seconds: 0
scaling: false
)");
  const auto outcome = run("wild.yaml --out c");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = results("c");
  EXPECT_EQ(document["runs"][1]["seeds"][0]["end"], "failed");
  EXPECT_THAT(document["runs"][1]["seeds"][0]["error"].get<std::string>(), HasSubstr("the loss is"));
  EXPECT_TRUE(document["runs"][1]["metric"].is_null());
  EXPECT_TRUE(document["runs"][1]["peak_memory_bytes"].is_null());
  EXPECT_TRUE(document["runs"][1]["seeds"][0]["seconds"].is_null());  // it died before its first checkpoint
  EXPECT_EQ(document["notices"].back()["kind"], "failure");
  EXPECT_THAT(outcome.out, HasSubstr("failed"));
}

TEST_F(Compare, OfTrainingsThatAllFailedThereIsNoResult) {
  const std::string wild = "training: {optimizer: {type: sgd, lr: 1.0e+30}, clip_grad_norm: 0}";
  const std::string rest =
      "variants: {one: {}, two: {model: {n_layers: 1}}}\nseeds: 1\nspeed_seconds: 0\nscaling: false\n";
  dir_.write("wild.yaml", "base: {extends: base.yaml, " + wild + "}\n" + rest);
  const auto outcome = run("wild.yaml --out c");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("bits per byte"));
  EXPECT_THAT(outcome.out, HasSubstr("failed"));
  EXPECT_EQ(run("wild.yaml --out c --resume --json").code, 1);
  dir_.write("tasks.yaml", "tasks: {tame: base.yaml, wild: {extends: base.yaml, " + wild + "}}\n" + rest);
  const auto tasks = run("tasks.yaml --out t");
  EXPECT_EQ(tasks.code, 1) << tasks.err;
  const auto all = results("t");
  EXPECT_THAT(all["tasks"][1]["error"].get<std::string>(), HasSubstr("no run has a result: one, seed 1: "));
  EXPECT_THAT(all["measured"].get<std::string>(), HasSubstr("Over 1 of 2 tasks"));
  EXPECT_EQ(all["overall"][0]["tasks"], 1);
}

// The results keep the error of a task that stopped. The error is in the words of the program.
TEST_F(Compare, ATaskThatStopsSaysHowToGoOn) {
  dir_.write("other.txt", read_file(dir_ / "text.txt"));
  dir_.write("tasks.yaml",
             "tasks: {first: base.yaml, second: {extends: base.yaml, data: {train: other.txt}}}\n"
             "variants: {one: {}, two: {model: {n_layers: 1}}}\nseeds: 1\nspeed_seconds: 0\nscaling: false\n"
             "budget: {steps: 4}\n");
  ASSERT_EQ(run("tasks.yaml --out t").code, 0);
  dir_.write("t/second/runs/one/seed-1.yaml", "name: another\n");
  const auto outcome = run("tasks.yaml --out t --resume");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const auto error = results("t")["tasks"][1]["error"].get<std::string>();
  EXPECT_THAT(error, HasSubstr("give --overwrite or another --out"));
  EXPECT_THAT(error + read_file(dir_ / "t/report.md"), Not(HasSubstr("ExistingRun::")));
}

// The speeds of one page are measured together: with another variant all are measured again.
TEST_F(Compare, MeasuresAllSpeedsInTurns) {
  const auto write_study = [this](const std::string& variants) {
    dir_.write("speeds.yaml", fmt::format("base: base.yaml\nvariants: {{{}}}\nseeds: 1\nspeed_seconds: 0.01\n"
                                          "scaling: false\n",
                                          variants));
  };
  const auto measured = [this](const std::string& arguments) {
    const auto outcome = run("speeds.yaml --out c --set training.steps=4" + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> lines;
    for (size_t at = 0; (at = outcome.err.find("measuring ", at)) != outcome.err.npos; ++at)
      lines.push_back(outcome.err.substr(at + 10, outcome.err.find_first_of(",\n", at) - at - 10));
    return lines;
  };
  write_study("one: {}, two: {}");
  EXPECT_THAT(measured(""), ElementsAre("one", "two", "one", "two", "one", "two"));
  const Json finished = results("c");
  for (const auto& entry : finished["runs"]) EXPECT_GT(entry["speed"]["decode_tokens_per_second"], 0.0);
  EXPECT_THAT(measured(" --resume"), IsEmpty());
  write_study("one: {}, two: {}, three: {}");
  EXPECT_THAT(measured(" --resume"),
              ElementsAre("one", "two", "three", "one", "two", "three", "one", "two", "three"));
}

TEST_F(Compare, TrainsSeveralAtATimeToTheSameResults) {
  ASSERT_EQ(run("study.yaml --out one-by-one --seeds 1").code, 0);
  ASSERT_EQ(run("study.yaml --out together --seeds 1 --jobs 3").code, 0);
  auto one = timeless(results("one-by-one")), together = timeless(results("together"));
  EXPECT_THAT(together["notices"].back()["text"].get<std::string>(),
              HasSubstr("3 trainings ran at the same time"));
  ASSERT_EQ(run("study.yaml --out together --seeds 1 --resume").code, 0);  // keeps the notice
  EXPECT_EQ(results("together")["notices"], together["notices"]);
  one["notices"] = together["notices"] = nullptr;
  EXPECT_EQ(one, together);
}

TEST_F(Compare, BadInputIsOneLine) {
  const auto expect = [&](const std::string& arguments, const std::string& words) {
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  expect("", "CONFIG|RUN|DIRECTORY is required");
  expect("none.yaml", "none.yaml");
  expect("base.yaml --budget epochs=3", "--budget epochs=3: write it as steps=N");
  expect("base.yaml --seeds 0", "--seeds");
  expect("study.yaml base.yaml", "study.yaml: this is a comparison file: give it alone");
  dir_.write("c/something", "kept");
  expect("study.yaml --out c", "c exists: --resume goes on with it");
  expect("study.yaml --out d --set model.d_modle=3", "model.d_model");
  EXPECT_EQ(read_file(dir_ / "c/something"), "kept");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "d"));
}

TEST_F(Compare, AChangedComparisonDoesNotMixWithTheOld) {
  ASSERT_EQ(run("base.yaml --seeds 1 --out c --set training.steps=8").code, 0);
  const auto before = files_below(dir_ / "c");
  const auto changed = run("base.yaml --seeds 1 --out c --resume --set training.steps=9");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("c/runs/base/seed-1 was trained with another configuration"));
  EXPECT_TRUE(differences(before, files_below(dir_ / "c")).empty());
  EXPECT_EQ(run("base.yaml --seeds 2 --out c --resume --set training.steps=8").code, 0);  // more of the same
  EXPECT_EQ(run("base.yaml --seeds 1 --out c --overwrite --set training.steps=9").code, 0);
  EXPECT_EQ(results("c")["runs"][0]["seeds"][0]["steps"], 9);
}

// The directory may belong to a project with other runs.
TEST_F(Compare, OverwriteRemovesOnlyWhatAComparisonWrote) {
  ASSERT_EQ(run_zoo(dir_, "train base.yaml --set training.steps=4").code, 0);  // runs/base
  dir_.write("runs/notes.txt", "kept");
  const auto refuses = [&](const std::string& arguments, const std::string& words) {
    const auto before = files_below(dir_.path());
    const auto outcome = run(arguments + " --overwrite");
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_THAT(differences(before, files_below(dir_.path())), IsEmpty()) << arguments;
  };
  dir_.write("one.yaml", "base: base.yaml\nseeds: 1\nspeed_seconds: 0\nscaling: false\n");
  const std::string one = "one.yaml --set training.steps=4 --out ";
  refuses(one + ".", "no comparison has written this");
  ASSERT_EQ(run(one + "c").code, 0);
  refuses("c/runs/base/seed-1 --out c", "c/runs/base/seed-1: --overwrite would remove this run");
  dir_.write("c/runs/base/mine.txt", "kept");
  refuses(one + "c", "c/runs/base/mine.txt: no comparison has written this");
  std::filesystem::remove(dir_ / "c/runs/base/mine.txt");
  dir_.write("c/other", "kept");
  EXPECT_EQ(run(one + "c --overwrite").code, 0);
  EXPECT_EQ(read_file(dir_ / "c/other"), "kept");
  dir_.write("d/results.json", "{\"mine\": 1}");
  refuses(one + "d", "d/results.json: no comparison has written this");
}

TEST_F(Compare, ARunThatWasTrainedOnIsEvaluatedAnew) {
  const std::string train = "train base.yaml --resume --out r --set training.steps=";
  const auto loss = [this] {
    const auto outcome = run("r --out c --no-speed --resume --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["runs"][0]["seeds"][0]["valid_loss"].get<double>();
  };
  ASSERT_EQ(run_zoo(dir_, train + "20").code, 0);
  const double early = loss();
  EXPECT_EQ(loss(), early);
  ASSERT_EQ(run_zoo(dir_, train + "60").code, 0);
  EXPECT_LT(loss(), early);
}

// Names do not identify runs: in the other order the same two runs swap their names.
TEST_F(Compare, ASpeedStaysWithItsRun) {
  const auto train = [this](const std::string& arguments) {
    ASSERT_EQ(run_zoo(dir_, "train base.yaml --set training.steps=4 " + arguments).code, 0);
  };
  train("--out small");
  train("--out large --set model.n_layers=6 --set model.d_model=64");
  ASSERT_EQ(run("small large --out c").code, 0);
  ASSERT_EQ(run("large small --out c --resume").code, 0);
  const auto runs = results("c")["runs"];
  EXPECT_LT(runs[0]["speed"]["train_tokens_per_second"], runs[1]["speed"]["train_tokens_per_second"]);
}

TEST_F(Compare, ARunThatWasInterruptedIsShownAsSuch) {
  ASSERT_EQ(run_zoo(dir_, "train base.yaml --set training.steps=8 --out r").code, 0);
  auto config = read_file(dir_ / "r/config.yaml");
  config.replace(config.find("steps: 8"), 8, "steps: 60");  // as if it had been stopped early
  dir_.write("r/config.yaml", config);
  ASSERT_EQ(run("r --out c --no-speed").code, 0);
  const auto document = results("c");
  EXPECT_EQ(document["runs"][0]["seeds"][0]["end"], "interrupted");
  EXPECT_EQ(document["runs"][0]["seeds"][0]["steps"], 8);
  EXPECT_THAT(document["notices"][0]["text"].get<std::string>(), HasSubstr("was interrupted"));
}

TEST_F(Compare, ACharacterThatNoneKnowsCostsOnlyTheSamples) {
  ASSERT_EQ(run("study.yaml --out c --seeds 1 --set training.steps=4").code, 0);
  auto study = read_file(dir_ / "study.yaml");
  study.replace(study.find("3 sheep"), 7, "3 Schäfchen");
  dir_.write("study.yaml", study);
  const auto outcome = run("study.yaml --out c --seeds 1 --set training.steps=4 --resume");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto document = results("c");
  EXPECT_THAT(document["notices"].back()["text"].get<std::string>(), HasSubstr("slow: no samples"));
  EXPECT_THAT(document["runs"][0]["samples"], IsEmpty());
  EXPECT_FALSE(document["runs"][0]["metric"].is_null());
}

TEST_F(Compare, ALengthBeyondTheValidationTextIsLeftOut) {
  dir_.write("lengths.yaml",
             "base: base.yaml\nvariants: {one: {model: {position: rotary, max_positions: 4000}}}\nseeds: 1\n"
             "speed_seconds: 0\nscaling: false\nevaluate_lengths: [8, 4000]\n");
  const auto outcome = run("lengths.yaml --out c --set training.steps=4");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = results("c");
  EXPECT_EQ(document["runs"][0]["lengths"].size(), 1u);
  EXPECT_THAT(document["notices"].back()["text"].get<std::string>(),
              HasSubstr("one: not evaluated at 4000 tokens"));
}

// Counting the steps of a huge budget takes very long, and there is nothing to save.
TEST_F(Compare, AnEndlessPlanCanBeStopped) {
  ZooProcess process(dir_, "compare base.yaml --budget steps=1e12 --out c");
  process.wait_for_error("planning");
  process.kill(SIGINT);
  const auto outcome = process.finish();
  EXPECT_EQ(outcome.code, -SIGINT);
  EXPECT_THAT(outcome.err, HasSubstr("planning"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "c"));
}

TEST_F(Compare, OptionsOfTrainingAreNotForFinishedRuns) {
  ASSERT_EQ(run_zoo(dir_, "train base.yaml --set training.steps=4 --out r").code, 0);
  for (const std::string option : {"--budget steps=9", "--seeds 2", "--set training.steps=9"}) {
    const auto outcome = run("r --out c " + option);
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("finished runs are only evaluated")) << option;
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "c"));
}

}  // namespace
}  // namespace zoo::testing
