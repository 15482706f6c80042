// training.best_by: the weights that are kept are those with the best value of a metric.

#include <algorithm>

#include <gtest/gtest.h>

#include "checkpoints/run.h"
#include "tasks/text/translation.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

struct Trained {
  TrainResult result;
  std::vector<int64_t> steps;  // of the evaluations
  std::vector<double> scores, losses;

  /// The step of the first evaluation with this score.
  int64_t step_of(double score) const {
    return steps.at(static_cast<size_t>(std::ranges::find(scores, score) - scores.begin()));
  }
};

/// Trains with a learning rate that rises until it ruins the weights: the metric becomes better, and then
/// worse. Label smoothing sees to it that there always is a gradient.
Trained learn_and_forget(const TinyWorld& world, const char* task, const std::string& metric,
                         double highest_lr = 0.5) {
  Trained trained;
  trained.result =
      train(world.experiment(
                task, {"training.best_by=" + metric, "training.steps=90", "training.evaluate_every=5",
                       "training.checkpoint_every=90", "training.batch_size=16",
                       "training.gradient_accumulation=1", "training.label_smoothing=0.1",
                       fmt::format("training.optimizer.lr={}", highest_lr), "generation.max_new_tokens=30",
                       "training.schedule={type: constant, warmup_steps: 90}", "model.dropout=0"}),
            {.run_dir = world.path(metric)});
  for (const auto& row : timeless_metrics(trained.result.run_dir)) {
    if (!row.contains("valid_loss")) continue;
    trained.steps.push_back(row.at("step"));
    trained.scores.push_back(row.at(metric == "last" ? "valid_loss" : "valid_" + metric));
    trained.losses.push_back(row.at("valid_loss"));
  }
  return trained;
}

/// Expects a metric that rises and falls, and that its highest value decided.
void expect_best_is_highest(const Trained& trained) {
  SCOPED_TRACE(::testing::PrintToString(trained.scores));
  const double highest = std::ranges::max(trained.scores);
  EXPECT_GT(highest, trained.scores.front());
  EXPECT_GT(highest, trained.scores.back());
  EXPECT_EQ(trained.result.best_score, highest);
  EXPECT_EQ(trained.result.best_step, trained.step_of(highest));
}

void write_classes(const TinyWorld& world) {
  std::string table = "sentence\tlabel\n";
  for (int i = 0; i < 90; ++i) table += i % 3 == 0 ? "aa\tone\n" : i % 3 == 1 ? "bbb\ttwo\n" : "c\tthree\n";
  world.dir().write("data/table.tsv", table);
}

void write_translations(const TinyWorld& world) {
  std::string sources, targets;
  for (int i = 0; i < 90; ++i) {
    sources += i % 3 == 0 ? "aa\n" : i % 3 == 1 ? "bbbb\n" : "c\n";
    targets += i % 3 == 0 ? "yes it is so\n" : i % 3 == 1 ? "no it was not there\n" : "or so they all said\n";
  }
  world.dir().write("data/pairs.de", sources);
  world.dir().write("data/pairs.en", targets);
}

TEST(BestWeights, ByLossHaveTheLowest) {
  const TinyWorld world;
  const auto trained = learn_and_forget(world, "language_modeling", "loss");
  const double lowest = std::ranges::min(trained.scores);
  EXPECT_LT(lowest, trained.scores.front());
  EXPECT_LT(lowest, trained.scores.back());
  EXPECT_EQ(trained.result.best_score, lowest);
  EXPECT_EQ(trained.result.best_step, trained.step_of(lowest));
  EXPECT_EQ(Run::open(trained.result.run_dir).evaluate(Split::valid).at("loss"), lowest);
}

TEST(BestWeights, LastAreThoseOfTheLastEvaluation) {
  const TinyWorld world;
  const auto trained = learn_and_forget(world, "language_modeling", "last");
  EXPECT_GT(trained.losses.back(), std::ranges::min(trained.losses));
  EXPECT_EQ(trained.result.best_score, trained.losses.back());
  EXPECT_EQ(trained.result.best_step, trained.steps.back());
  EXPECT_EQ(Run::open(trained.result.run_dir).evaluate(Split::valid).at("loss"), trained.losses.back());
}

TEST(BestWeights, ByAccuracyHaveTheHighest) {
  for (const auto& [task, highest_lr] :
       {std::pair{"text_classification", 0.5}, {"masked_language_modeling", 0.3}}) {
    SCOPED_TRACE(task);
    const TinyWorld world;
    write_classes(world);
    const auto trained = learn_and_forget(world, task, "accuracy", highest_lr);
    expect_best_is_highest(trained);
    EXPECT_EQ(Run::open(trained.result.run_dir).evaluate(Split::valid).at("accuracy"),
              trained.result.best_score);
  }
}

TEST(BestWeights, ByBleuHaveTheHighest) {
  const TinyWorld world;
  write_translations(world);
  const auto trained = learn_and_forget(world, "text_to_text", "bleu");
  expect_best_is_highest(trained);
  const auto run = Run::open(trained.result.run_dir);
  const auto translations =
      run.translate(Split::valid, {}, {.generation = run.task().experiment().generation});
  EXPECT_EQ(translation_metrics(translations).at("bleu"), trained.result.best_score);
}

}  // namespace
}  // namespace zoo::testing
