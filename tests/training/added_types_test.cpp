// training.metrics, training.observers and generation.rules: what a program adds to a training and to what a
// model writes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "checkpoints/run.h"
#include "generation/generator.h"
#include "generation/rules/token_rule_types.h"
#include "tasks/examples.h"
#include "tasks/metric_types.h"
#include "tasks/training_observer.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> quick(std::vector<std::string> more) {
  more.insert(more.end(), {"training.steps=8", "training.log_every=4", "training.evaluate_every=4",
                           "training.checkpoint_every=4"});
  return more;
}

TEST(AddedMetrics, AreThoseOfTheExamples) {
  const TinyWorld world;
  train(world.experiment("text_classification", quick({"training.metrics=[exact_match, worst_decile]",
                                                       "training.best_by=exact_match"})),
        {.run_dir = world.path("run")});
  const auto run = zoo::Run::open(world.path("run"));
  std::vector<ExampleScore> examples;
  const auto metrics = run.task().evaluate(run.model(), Split::valid, {.examples = &examples});
  EXPECT_DOUBLE_EQ(metrics.at("exact_match"), metrics.at("accuracy"));  // one answer for each text
  std::vector<double> losses;
  for (const auto& example : examples) losses.push_back(example.loss);
  std::ranges::sort(losses, std::greater());
  const size_t n = std::max<size_t>(losses.size() / 10, 1);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += losses[i];
  EXPECT_DOUBLE_EQ(metrics.at("worst_decile"), sum / static_cast<double>(n));
  EXPECT_GT(metrics.at("worst_decile"), metrics.at("loss"));
  for (const auto& row : timeless_metrics(world.path("run"))) {
    EXPECT_EQ(row.contains("valid_loss"), row.contains("valid_exact_match")) << row;
  }
}

TEST(AddedMetrics, RefuseWhatTheyCannotMeasure) {
  const TinyWorld world;
  const auto refused = [&](std::string_view task, const std::vector<std::string>& overrides) {
    return message_of<UsageError>([&] {
      train(world.experiment(task, quick(overrides)),
            {.run_dir = world.path("run"), .existing = ExistingRun::replace});
    });
  };
  EXPECT_THAT(refused("language_modeling", {"training.metrics=exact_match"}),
              HasSubstr("the task does not say which answers are right"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { world.experiment("language_modeling", {"training.best_by=worst_decile"}); }),
              HasSubstr("cannot be worst_decile"));
}

TEST(TrainingObservers, NameNumbersAndChangeNothing) {
  const TinyWorld world;
  const auto trained = [&](const std::string& name, const std::vector<std::string>& more) {
    train(world.experiment("language_modeling", quick(more)), {.run_dir = world.path(name)});
    return timeless_metrics(world.path(name));
  };
  auto with = trained("with", {"training.observers=norms"});
  EXPECT_TRUE(std::ranges::any_of(with, [](const auto& row) {
    return row.contains("weight_norm_decoder") && row.contains("gradient_norm_decoder");
  }));
  for (auto& row : with) {
    double squares = 0;
    for (auto item = row.begin(); item != row.end();) {
      const bool is_own = item.key().find("_norm_") != std::string::npos;
      if (item.key().starts_with("gradient_norm_")) squares += std::pow(item.value().get<double>(), 2);
      item = is_own ? row.erase(item) : std::next(item);
    }
    // The parts make up the whole, which is clipped to 1.
    if (row.contains("grad_norm")) {
      EXPECT_NEAR(std::sqrt(squares), std::min(row["grad_norm"].template get<double>(), 1.0), 1e-4);
    }
  }
  EXPECT_EQ(with, trained("without", {}));
}

/// Forbids one token.
class Without final : public LogitsProcessor {
 public:
  explicit Without(int64_t id) : id_(id) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView>) const override {
    auto result = logits.clone();
    result.select(1, id_).fill_(-std::numeric_limits<float>::infinity());
    return result;
  }

 private:
  int64_t id_;
};

TEST(TokenRuleTypes, ChangeWhatAModelWrites) {
  const TinyWorld world;
  train(world.experiment("language_modeling", quick({"data.tokenizer={type: char}"})),
        {.run_dir = world.path("run")});
  const auto run = zoo::Run::open(world.path("run"));
  auto options = run.experiment().generation;
  options.temperature = 0;
  options.max_new_tokens = 20;
  const Generator generator(run.model(), run.tokenizer());
  const std::vector<std::string> prompts{"sun"};
  const auto usual = generator.generate(prompts, options).front().outputs.front();
  const int64_t commonest = usual.ids.front();
  TokenRuleType type;
  type.name = "without_the_commonest";
  type.make = [commonest](const Selection&, const TokenRuleContext& context) {
    EXPECT_GT(context.tokenizer.vocab_size(), commonest);
    return std::make_unique<Without>(commonest);
  };
  token_rule_types().add(type);
  options.rules = {token_rule_types().select("without_the_commonest")};
  const auto ruled = generator.generate(prompts, options).front().outputs.front();
  EXPECT_EQ(std::ranges::count(ruled.ids, commonest), 0);
  EXPECT_FALSE(ruled.ids.empty());
}

}  // namespace
}  // namespace zoo::testing
