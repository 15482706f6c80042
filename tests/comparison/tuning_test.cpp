// The short trainings of candidates, and the choice among them.

#include "comparison/tuning.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "io/files.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Metric kLossOfCandidates{.key = "loss", .label = "loss"};
const Metric kAccuracyOfCandidates{.key = "accuracy", .label = "accuracy", .better = Better::higher};

/// A candidate with these values of the keys "a" and "b".
Candidate candidate(const std::string& a, const std::string& b) {
  return {.name = a + b, .experiment = {}, .values = {{"a", a}, {"b", b}}};
}

TEST(Candidates, TheBestMeanIsChosenInTheDirectionOfTheMetric) {
  const std::vector<CandidateOutcome> outcomes = {
      {.values = {0.2, 0.4}}, {.values = {0.1, 0.6}}, {.values = {0.25, 0.3}}};
  EXPECT_EQ(best_of(outcomes, 2, kAccuracyOfCandidates), 1U);
  EXPECT_EQ(best_of(outcomes, 2, kLossOfCandidates), 2U);
  const std::vector<CandidateOutcome> equal = {{.values = {0.5}}, {.values = {0.5}}};
  EXPECT_EQ(best_of(equal, 1, kLossOfCandidates), 0U) << "the first of equal ones";
}

TEST(Candidates, OneWithAFailedSeedIsNeverChosen) {
  const std::vector<CandidateOutcome> outcomes = {
      {.values = {0.01}}, {.values = {3.0, 3.1}}, {.values = {2.0}}, {.values = {}}};
  EXPECT_EQ(best_of(outcomes, 2, kLossOfCandidates), 1U);
  EXPECT_EQ(best_of({outcomes[0], outcomes[2], outcomes[3]}, 2, kLossOfCandidates), std::nullopt);
  EXPECT_EQ(best_of({}, 1, kLossOfCandidates), std::nullopt);
}

TEST(Candidates, AKeyIsAtTheEdgeIfOthersBeyondItMayBeBetter) {
  const std::vector<Candidate> grid = {candidate("1e-4", "7"), candidate("0.003", "7"),
                                       candidate("0.01", "7")};
  EXPECT_THAT(keys_at_edge(grid, grid[0]), ElementsAre("a")) << "a single value has no edge";
  EXPECT_THAT(keys_at_edge(grid, grid[1]), IsEmpty());
  EXPECT_THAT(keys_at_edge(grid, grid[2]), ElementsAre("a"));
  const std::vector<Candidate> both = {candidate("1", "5"), candidate("2", "4"), candidate("10", "5"),
                                       candidate("3", "6")};
  EXPECT_THAT(keys_at_edge(both, both[0]), ElementsAre("a"));
  EXPECT_THAT(keys_at_edge(both, both[1]), ElementsAre("b"));
  EXPECT_THAT(keys_at_edge(both, both[2]), ElementsAre("a")) << "10 is more than 3";
  EXPECT_THAT(keys_at_edge(both, both[3]), ElementsAre("b"));
  const std::vector<Candidate> words = {candidate("adamw", "1"), candidate("muon", "2")};
  EXPECT_THAT(keys_at_edge(words, words[0]), ElementsAre("b")) << "words have no edge";
  const std::vector<Candidate> two = {candidate("1", "1"), candidate("2", "1")};
  EXPECT_THAT(keys_at_edge(two, two[1]), ElementsAre("a"));
}

TEST(Candidates, AShortTrainingHasItsShareOfTheBudgetAndOfTheWarmUp) {
  const TinyWorld world;
  const auto experiment = [&](const std::string& warmup) {
    return world.experiment("language_modeling", {"training.schedule.warmup_steps=" + warmup});
  };
  Comparison comparison;
  comparison.settings.tune = {.share = 0.25, .seeds = 2};
  comparison.settings.seeds = 5;
  comparison.settings.evaluate_lengths = {64};
  comparison.variants.push_back({.name = "x", .experiment = experiment("3"), .size = "small"});
  for (const char* const warmup : {"8", "10"})
    comparison.variants[0].candidates.push_back(
        {.name = warmup, .experiment = experiment(warmup), .values = {{"warmup", warmup}}});
  comparison.variants.push_back({.name = "finished", .experiment = experiment("3")});
  const auto shorts = short_trainings(comparison, {BudgetKind::steps, 90});
  ASSERT_EQ(shorts.variants.size(), 2U);
  EXPECT_EQ(shorts.variants[0].name, "x, 8");
  EXPECT_EQ(shorts.variants[0].size, "small");
  EXPECT_EQ(shorts.variants[0].experiment.training.schedule.warmup_steps, 2);
  EXPECT_EQ(shorts.variants[1].experiment.training.schedule.warmup_steps, 3) << "2.5, rounded";
  EXPECT_EQ(shorts.settings.seeds, 2);
  EXPECT_THAT(shorts.settings.evaluate_lengths, IsEmpty());
  EXPECT_EQ(shorts.settings.budget.steps, 23) << "22.5, rounded";
  EXPECT_EQ(short_trainings(comparison, {BudgetKind::steps, 1}).settings.budget.steps, 1);
  EXPECT_EQ(short_trainings(comparison, {BudgetKind::tokens, 90}).settings.budget.tokens, 22.5);
  EXPECT_EQ(short_trainings(comparison, {BudgetKind::flops, 90}).settings.budget.flops, 22.5);
  const auto seconds = short_trainings(comparison, {BudgetKind::seconds, 90}).settings.budget;
  EXPECT_EQ(seconds.seconds, 22.5);
  EXPECT_FALSE(seconds.steps || seconds.tokens || seconds.flops);
}

TEST(Candidates, TheOutcomeIsThatOfAllSeeds) {
  const TinyWorld world;
  PlannedVariant trained;
  double flops = 0, seconds = 0;
  for (const int64_t seed : {1001, 1002, 1003}) {
    const auto dir = world.path(fmt::format("run-{}", seed));
    train(world.experiment("language_modeling", {fmt::format("training.seed={}", seed), "training.steps=3"}),
          {.run_dir = dir});
    trained.runs.push_back(dir);
    trained.seeds.push_back(seed);
    const auto state = read_training_state(*newest_checkpoint(dir));
    flops += state.flops;
    seconds += state.seconds;
  }
  const auto all = outcome_of(trained, world.path("none"), kLossOfCandidates, c10::kCPU);
  ASSERT_EQ(all.values.size(), 3U);
  EXPECT_DOUBLE_EQ(all.flops, flops);
  EXPECT_DOUBLE_EQ(all.seconds, seconds);
  for (size_t i = 0; i < 3; ++i) {
    const auto run = zoo::Run::open(trained.runs[i]);
    EXPECT_NEAR(all.values[i], run.evaluate(Split::valid).at("loss"), 1e-9);
  }
  write_file_atomically(trained.runs[1] / kFailureFile, "the loss is not a number");
  const auto failed = outcome_of(trained, world.path("none"), kLossOfCandidates, c10::kCPU);
  EXPECT_THAT(failed.values, ElementsAre(all.values[0], all.values[2]));
  EXPECT_DOUBLE_EQ(failed.flops, flops) << "a failed training has cost what it cost";
}

}  // namespace
}  // namespace zoo::testing
