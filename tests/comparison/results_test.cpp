// What a comparison collects from its runs, without the program: sums over seeds, and results so far.

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "analysis/causes/ablation.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "comparison/collect_results.h"
#include "comparison/planning/comparison_directory.h"
#include "comparison/results_json.h"
#include "comparison/runner.h"
#include "comparison/running_results.h"
#include "comparison/verify.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "pages/report/report_page.h"
#include "pages/tables/report_markdown.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

class CollectedResults : public ::testing::Test {
 protected:
  /// Trains a run with this seed, and lets its checkpoint say that it took so much memory.
  std::filesystem::path trained(std::string_view task, int64_t seed, int64_t peak_bytes) const {
    const auto dir = world_.path(fmt::format("{}-{}", task, seed));
    train(world_.experiment(
              task, {fmt::format("training.seed={}", seed), "training.steps=4", "training.evaluate_every=2"}),
          {.run_dir = dir});
    const auto path = *newest_checkpoint(dir) / "state.json";
    auto state = Json::parse(read_file(path));
    state["peak_memory_bytes"] = peak_bytes;
    state["flops"] = 1000.0 * static_cast<double>(seed);
    write_file_atomically(path, state.dump());
    return dir;
  }
  ComparisonPlan plan_of(const std::vector<std::filesystem::path>& runs) const {
    auto plan = make_plan(comparison_of(runs));
    plan.settings.speed_seconds = 0;
    plan.settings.scaling = false;
    return plan;
  }
  Json collected(const ComparisonPlan& plan) const {
    const auto results = collect_results(
        plan, {.dir = world_.path("comparison"), .origin = {.command = "zoo compare", .yaml = ""}});
    return results_json(results.value());
  }

  TinyWorld world_;
};

TEST_F(CollectedResults, SumUpAllSeedsThatDidNotFail) {
  const std::vector<int64_t> peaks = {4000, 5000, 9000, 3000};
  std::vector<std::filesystem::path> dirs;
  for (size_t i = 0; i < peaks.size(); ++i)
    dirs.push_back(trained("language_modeling", static_cast<int64_t>(i) + 1, peaks[i]));
  write_file_atomically(dirs[2] / kFailureFile, "the loss is not a number");
  const auto results = collected(plan_of(dirs));
  ASSERT_EQ(results["runs"].size(), 1U);
  const auto& run = results["runs"][0];
  ASSERT_EQ(run["seeds"].size(), 4U);
  EXPECT_EQ(run["peak_memory_bytes"], 5000) << "of the seeds that did not fail";
  std::vector<double> values;
  for (size_t i = 0; i < dirs.size(); ++i) {
    const auto& seed = run["seeds"][i];
    EXPECT_EQ(seed["seed"], i + 1);
    EXPECT_EQ(seed["peak_memory_bytes"], peaks[i]);
    EXPECT_EQ(seed["flops"], 1000.0 * static_cast<double>(i + 1));
    EXPECT_EQ(seed["end"], i == 2 ? "failed" : "all_steps");
    if (i == 2) continue;
    const auto scores = Run::open(dirs[i]).evaluate(Split::valid);
    EXPECT_NEAR(seed["valid_loss"].get<double>(), scores.at("loss"), 1e-9);
    values.push_back(scores.at("bits_per_byte"));
    EXPECT_NEAR(seed["valid"]["bits_per_byte"].get<double>(), values.back(), 1e-9);
    EXPECT_EQ(seed["curve"]["step"], (Json{2, 4}));
  }
  const auto interval = mean_interval(values);
  EXPECT_NEAR(run["metric"]["mean"].get<double>(), interval.mean, 1e-9);
  EXPECT_NEAR(run["metric"]["high"].get<double>(), *interval.high, 1e-9);
  EXPECT_EQ(run["metric"]["n"], 3);
  ASSERT_EQ(results["notices"].size(), 1U);
  EXPECT_EQ(results["notices"][0]["kind"], "failure");
}

// How experts work is measured on validation data, and their balance in training is part of the curve.
TEST_F(CollectedResults, HaveTheLoadOfExperts) {
  const auto dense = trained("language_modeling", 1, 4000);
  const auto dir = world_.path("mixture");
  train(world_.experiment("language_modeling",
                          {"training.steps=4", "training.log_every=2", "model.n_layers=2",
                           "model.experts={count: 4, active: 2, d_ff: 8, first_dense: 1}"}),
        {.run_dir = dir});
  const auto results = collected(plan_of({dense, dir}));
  const auto &plain = results["runs"][0], &mixture = results["runs"][1];
  EXPECT_FALSE(plain.contains("experts"));
  EXPECT_FALSE(plain["seeds"][0]["train_curve"].contains("router_entropy"));

  const auto run = Run::open(dir);
  ASSERT_EQ(run.experiment().model.n_layers, 2);
  ASSERT_EQ(mixture["experts"].size(), 1U) << "the first layer is dense";
  EXPECT_EQ(mixture["experts"][0]["place"], "layers.1.feed_forward");
  int64_t n_tokens = 0, n_chosen = 0;
  for (const auto& batch : run.batches(Split::valid, {}, 20)) n_tokens += batch.tokens;
  for (const auto& n : mixture["experts"][0]["tokens"]) n_chosen += n.get<int64_t>();
  EXPECT_EQ(n_chosen, 2 * n_tokens);
  EXPECT_TRUE(expert_loads(run, 20)[0].tokens == mixture["experts"][0]["tokens"].get<std::vector<int64_t>>())
      << "counted from zero each time";

  const auto& curve = mixture["seeds"][0]["train_curve"];
  EXPECT_EQ(curve["step"], (Json{2, 4}));
  for (const auto* key : {"experts_busiest", "experts_idle", "router_entropy"})
    EXPECT_EQ(curve[key].size(), 2U) << key;
  EXPECT_GE(curve["experts_busiest"][0].get<double>(), 1.0);
  EXPECT_FALSE(curve.contains("experts_dropped")) << "without a capacity none is dropped";
}

// The trained models of one row, without parts, are another row.
TEST_F(CollectedResults, AnAblationIsMeasuredOnTheTrainedModels) {
  Comparison comparison;
  comparison.settings.seeds = 2;
  comparison.settings.speed_seconds = 0;
  comparison.settings.scaling = false;
  const auto experiment =
      world_.experiment("language_modeling", {"training.steps=4", "training.evaluate_every=2"});
  const auto add = [&](const std::string& name, std::optional<AblationConfig> ablation) {
    comparison.variants.push_back(
        {.name = name, .experiment = experiment, .variant = name, .ablation = std::move(ablation)});
  };
  add("whole", std::nullopt);
  add("cut", AblationConfig{.of = "whole", .parts = {"layers.0.attention"}});
  add("strongest", AblationConfig{.of = "whole", .strongest = HeadRole::induction, .by = AblationBy::mean});
  const auto plan = make_plan(comparison);
  EXPECT_TRUE(plan.fair());
  const auto dir = world_.path("comparison");
  make_comparison_directory(dir);
  for (const int64_t seed : {1, 2})
    train(plan.variants[0].with_seed(seed), {.run_dir = run_dir_of(dir, plan.variants[0], seed)});
  const auto results = collected(plan);
  const auto &whole = results["runs"][0], &cut = results["runs"][1], &strongest = results["runs"][2];
  EXPECT_EQ(cut["baseline"], "whole");
  EXPECT_EQ(cut["ablation"]["parts"], Json{"layers.0.attention"});
  EXPECT_FALSE(whole.contains("ablation"));
  for (const size_t i : {0, 1}) {
    const auto run = Run::open(run_dir_of(dir, plan.variants[0], static_cast<int64_t>(i) + 1));
    Ablation ablation(run.model(), run.batches(Split::valid, {}, 1000), AblationBy::zero);
    const auto loss = cut["seeds"][i]["valid_loss"].get<double>();
    EXPECT_NEAR(loss, ablation.without({ablated_part("layers.0.attention")}).loss(), 1e-5);
    EXPECT_NE(loss, whole["seeds"][i]["valid_loss"].get<double>());
    EXPECT_EQ(cut["seeds"][i]["run"], whole["seeds"][i]["run"]);
    EXPECT_TRUE(cut["seeds"][i]["steps"].is_null()) << "it is not trained";
    EXPECT_TRUE(cut["seeds"][i]["curve"]["step"].empty());
    ASSERT_EQ(strongest["seeds"][i]["ablated"].size(), 1U);
    EXPECT_THAT(strongest["seeds"][i]["ablated"][0].get<std::string>(),
                ::testing::MatchesRegex("layers.[0-9].attention.heads.[0-9]"));
  }
  EXPECT_TRUE(cut["versus_baseline"]["agreeing"].is_number());
  EXPECT_THAT(results["measured"].get<std::string>(), ::testing::HasSubstr("cut: bits per byte "));
  EXPECT_TRUE(cut["best_in"].empty()) << "it is no variant of its own";
  const auto in_seeds = fmt::format(", in {} of 2 seeds", cut["versus_baseline"]["agreeing"].get<int64_t>());
  EXPECT_THAT(report_markdown(results), ::testing::HasSubstr(in_seeds));
  EXPECT_THAT(report_page(results), ::testing::HasSubstr("\"ablation\":{\"of\":\"whole\""));
  EXPECT_EQ(trainings_of(results).size(), 2U);
  EXPECT_EQ(collected(plan)["runs"], results["runs"]) << "kept";
  auto screening = plan;
  screening.settings.correction = Correction::benjamini_hochberg;
  const auto screened = collected(screening);
  EXPECT_FALSE(results.contains("correction"));
  EXPECT_EQ(screened["correction"], "benjamini_hochberg");
  EXPECT_THAT(report_markdown(screened),
              ::testing::HasSubstr("p corrected by Benjamini and Hochberg's method"));
}

// One seed has learnt, one says nothing about its texts, and one has failed.
TEST_F(CollectedResults, TellWhichSeedsHaveLearnt) {
  std::vector<std::filesystem::path> dirs;
  for (const int64_t seed : {1, 2, 3}) {
    dirs.push_back(world_.path(fmt::format("learner-{}", seed)));
    train(world_.experiment("language_modeling", {fmt::format("training.seed={}", seed), "training.steps=200",
                                                  "training.evaluate_every=200", "model.dropout=0"}),
          {.run_dir = dirs.back()});
  }
  TensorMap nothing;
  {
    const SafetensorsFile file(dirs[1] / "model.safetensors");
    for (const auto& name : file.names()) nothing.emplace(name, torch::zeros_like(file.tensor(name)));
  }
  save_safetensors(dirs[1] / "nothing", nothing);
  std::filesystem::rename(dirs[1] / "nothing", dirs[1] / "model.safetensors");
  write_file_atomically(dirs[0] / kFailureFile, "the loss is not a number");
  const auto results = collect_results(plan_of(dirs), {.dir = world_.path("comparison"),
                                                       .origin = {.command = "", .yaml = ""}})
                           .value();
  ASSERT_EQ(results.runs.size(), 1U);
  const auto& run = results.runs[0];
  ASSERT_TRUE(run.guess);
  ASSERT_EQ(run.seeds.size(), 3U);
  const auto &failed = run.seeds[0], &ignorant = run.seeds[1], &learnt = run.seeds[2];
  EXPECT_EQ(failed.end, SeedEnd::failed);
  EXPECT_EQ(failed.error, "the loss is not a number");
  EXPECT_TRUE(failed.scores.empty());
  EXPECT_FALSE(failed.metric || failed.loss || failed.learnt);
  // All logits are zero: the loss is that of the uniform guess.
  EXPECT_NEAR(ignorant.loss.value(), run.guess->uniform, 1e-5);
  EXPECT_EQ(ignorant.learnt, false);
  EXPECT_EQ(ignorant.end, SeedEnd::all_steps);
  EXPECT_LT(learnt.loss.value(), 0.9 * run.guess->unigram);
  EXPECT_EQ(learnt.learnt, true);
  // The mean is that of the seeds that have learnt.
  EXPECT_EQ(run.metric->n, 1);
  EXPECT_NEAR(run.metric->mean, learnt.metric.value(), 1e-9);
  EXPECT_GT(ignorant.metric.value(), run.metric->mean);
  // The run that is shown is one that did not fail.
  EXPECT_EQ(run.samples.front().output,
            Run::open(dirs[1]).task().samples(Run::open(dirs[1]).model()).front().output);
  EXPECT_NE(run.samples.front().output,
            Run::open(dirs[2]).task().samples(Run::open(dirs[2]).model()).front().output);
}

TEST_F(CollectedResults, OfARunThatFailedAltogetherHaveNoNumbers) {
  const std::vector<std::filesystem::path> dirs = {trained("language_modeling", 1, 4000),
                                                   trained("language_modeling", 2, 4000)};
  for (const auto& dir : dirs) write_file_atomically(dir / kFailureFile, "the loss is not a number");
  auto plan = plan_of(dirs);
  std::filesystem::create_directories(world_.path("comparison/measured"));
  plan.settings.speed_seconds = 0.01;
  const auto results =
      collect_results(plan, {.dir = world_.path("comparison"), .origin = {.command = "", .yaml = ""}})
          .value();
  const auto& run = results.runs.at(0);
  EXPECT_FALSE(run.metric || run.guess || run.speed || run.attention);
  EXPECT_TRUE(run.samples.empty());
  EXPECT_EQ(results.notices.size(), 2U);
}

// A file that is written anew under its old name.
TEST_F(CollectedResults, FollowTheContentOfTheData) {
  const auto value_of = [](const Json& results, size_t row) {
    return results.at("runs").at(row).at("metric").at("mean").get<double>();
  };
  const auto has_notice_of_data = [](const Json& results) {
    return std::ranges::any_of(results.at("notices"),
                               [](const Json& notice) { return notice.at("kind") == "data"; });
  };
  const auto first = trained("language_modeling", 1, 4000);
  const auto before = collected(plan_of({first}));
  world_.dir().write("data/text.txt", "rain rain sea tree sea.\n" + read_file(world_.path("data/text.txt")) +
                                          "moon moon moon moon moon moon moon moon moon moon moon moon.\n");
  const auto after = collected(plan_of({first}));
  EXPECT_NE(value_of(before, 0), value_of(after, 0)) << "the scores are those of the new text";
  EXPECT_FALSE(has_notice_of_data(after));

  const auto second = trained("language_modeling", 2, 4000);
  auto plan = plan_of({first});
  auto row = plan_of({second}).variants.front();
  row.name = "second";
  row.baseline = plan.variants.front().name;
  plan.variants.push_back(row);
  const auto both = collected(plan);
  EXPECT_TRUE(has_notice_of_data(both)) << both.at("notices").dump(1);
  EXPECT_FALSE(both.at("fair"));
}

// Times differ from machine to machine; their order does not.
TEST_F(CollectedResults, SpeedsLieBetweenTheirBoundsAndAreKept) {
  auto plan = plan_of({trained("language_modeling", 1, 4000), trained("language_modeling", 2, 4000)});
  plan.settings.speed_seconds = 0.02;
  std::filesystem::create_directories(world_.path("comparison/measured"));
  const ResultsOptions options{.dir = world_.path("comparison"), .origin = {.command = "", .yaml = ""}};
  const auto speeds = [&] { return collect_results(plan, options).value().runs.at(0).speed.value(); };
  const auto numbers = [](const RunSpeed& speed) {
    std::vector<double> list;
    for (const auto& measured : {speed.train_tokens_per_second, speed.prompt_tokens_per_second,
                                 speed.decode_tokens_per_second, speed.first_token_seconds}) {
      EXPECT_TRUE(measured);
      if (!measured) continue;
      EXPECT_GT(measured->least, 0);
      EXPECT_LE(measured->least, measured->median);
      EXPECT_LE(measured->median, measured->largest);
      list.insert(list.end(), {measured->least, measured->median, measured->largest});
    }
    return list;
  };
  const auto first = numbers(speeds());
  EXPECT_EQ(numbers(speeds()), first) << "they are kept";
  // What is kept is given back, each number as itself.
  const auto file = options.dir / "measured" / "speeds.json";
  auto kept = Json::parse(read_file(file));
  double next = 1;
  const std::function<void(Json&)> number_all = [&](Json& value) {
    if (value.is_object() && value.contains("ranges")) {
      for (auto& [name, range] : value["ranges"].items()) {
        range = {next, next + 2};
        value[name] = next + 1;
        next += 3;
      }
    } else if (value.is_structured()) {
      for (auto& part : value) number_all(part);
    }
  };
  number_all(kept);
  write_file_atomically(file, kept.dump());
  auto found = numbers(speeds());
  for (size_t i = 0; i < found.size(); i += 3) {
    EXPECT_EQ(found[i] + 1, found[i + 1]);
    EXPECT_EQ(found[i] + 2, found[i + 2]);
  }
  std::ranges::sort(found);
  EXPECT_EQ(found.front(), 1);
  EXPECT_EQ(found.back(), 12);
}

// The first text that a comparison gives is the one whose maps are shown.
TEST_F(CollectedResults, ShowTheTextsThatAreGiven) {
  auto plan = plan_of({trained("text_classification", 1, 4000)});
  plan.settings.inputs = {"sun moon star", "sea"};
  const auto run = collected(plan)["runs"][0];
  ASSERT_EQ(run["samples"].size(), 2U);
  EXPECT_EQ(run["samples"][1]["input"], "sea");
  EXPECT_EQ(run["attention"]["text"], "sun moon star");
  plan.settings.inputs = {"sea", "sun moon star"};
  EXPECT_EQ(collected(plan)["runs"][0]["attention"]["text"], "sea");
}

// Maps grow with the square of a text's length: a short text is preferred, else a long one is cut.
TEST_F(CollectedResults, ShowTheMapsOfNoMoreThanTheBeginningOfALongText) {
  auto plan = plan_of({trained("text_classification", 1, 4000)});
  std::string text;
  for (int i = 0; i < 300; ++i) text += "sea ";
  plan.settings.inputs = {text, "sun moon star"};
  EXPECT_EQ(collected(plan)["runs"][0]["attention"]["text"], "sun moon star");
  plan.settings.inputs = {text};
  const auto attention = collected(plan)["runs"][0]["attention"];
  const auto shown = attention["text"].get<std::string>();
  EXPECT_TRUE(text.starts_with(shown) && shown.starts_with("sea sea"));
  EXPECT_LE(attention["source_tokens"].size(), 50U);
}

// Without samples, because the vocabulary lacks a letter, there are still the maps of the first text.
TEST_F(CollectedResults, ShowMapsOfTheFirstTextWithoutSamples) {
  auto plan = plan_of({trained("language_modeling", 1, 4000)});
  plan.settings.inputs = {"sun moon star", "\u03a9"};
  const auto results = collected(plan);
  EXPECT_TRUE(results["runs"][0]["samples"].empty());
  EXPECT_EQ(results["runs"][0]["attention"]["text"], "sun moon star");
  ASSERT_EQ(results["notices"].size(), 1U);
  EXPECT_THAT(results["notices"][0]["text"].get<std::string>(), ::testing::HasSubstr("no samples: "));
}

TEST_F(CollectedResults, SoFarHaveTheBestEvaluation) {
  const auto dir = trained("text_classification", 1, 4000);
  std::string log;
  int64_t step = 0;
  for (const double accuracy : {0.2, 0.6, 0.4})
    log += fmt::format(
        "{{\"step\": {}, \"tokens\": 1, \"seconds\": 1, \"valid_loss\": {}, "
        "\"valid_accuracy\": {}}}\n",
        ++step, 2 - accuracy, accuracy);
  write_file_atomically(dir / "metrics.jsonl", log);
  const auto so_far = [&] {
    return running_results(plan_of({dir}), world_.path("comparison"), c10::kCPU, {}, RunState::running);
  };
  EXPECT_EQ(so_far().runs[0].seeds[0].metric, 0.6);
  EXPECT_EQ(so_far().runs[0].metric->mean, 0.6);
  EXPECT_EQ(so_far().progress->finished, 1);
  write_file_atomically(dir / kFailureFile, "the loss is not a number");
  EXPECT_FALSE(so_far().runs[0].metric);
  EXPECT_EQ(so_far().runs[0].seeds[0].end, SeedEnd::failed);

  const auto lower = trained("language_modeling", 1, 4000);
  write_file_atomically(lower / "metrics.jsonl",
                        "{\"step\": 1, \"valid_loss\": 2.5, \"valid_bits_per_byte\": 3.5}\n"
                        "{\"step\": 2, \"valid_loss\": 2.0, \"valid_bits_per_byte\": 3.0}\n"
                        "{\"step\": 3, \"valid_loss\": 2.2, \"valid_bits_per_byte\": 3.2}\n");
  const auto results =
      running_results(plan_of({lower}), world_.path("comparison"), c10::kCPU, {}, RunState::running);
  EXPECT_EQ(results.runs[0].seeds[0].metric, 3.0);
}

}  // namespace
}  // namespace zoo::testing
