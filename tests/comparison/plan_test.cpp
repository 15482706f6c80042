// Equal sizes, equal budgets, and notices where something is not equal.

#include "comparison/planning/plan.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "comparison/planning/fairness.h"
#include "comparison/planning/matching.h"
#include "comparison/runner.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ModelConfig small_decoder() {
  ModelConfig config;
  config.architecture = Architecture::decoder;
  config.d_model = 64;
  config.n_layers = 3;
  config.n_heads = 4;
  return config;
}
const ModelPurpose kText{.head = HeadKind::language_modeling, .vocab_size = 100, .start_token = 0};

TEST(Matching, AFeedForwardOfAnotherKindIsScaledAlone) {
  const auto relu = small_decoder();
  const double target = matched_quantity(relu, kText, MatchQuantity::parameters, 32);
  auto gated = relu;
  gated.activation = Activation::swiglu;
  const auto matched = match_model(gated, kText, MatchQuantity::parameters, target, 32);
  EXPECT_EQ(matched.config.d_model, 64);
  EXPECT_NEAR(static_cast<double>(*matched.config.d_ff), 4 * 64 * 2.0 / 3.0, 4);
  EXPECT_LE(std::abs(matched.deviation), 0.02);
  EXPECT_NEAR(matched_quantity(matched.config, kText, MatchQuantity::parameters, 32) / target - 1,
              matched.deviation, 1e-12);
}

TEST(Matching, ReachesEverySizeWithinTwoPercent) {
  for (const auto quantity : {MatchQuantity::parameters, MatchQuantity::flops}) {
    const double target = matched_quantity(small_decoder(), kText, quantity, 32);
    for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
      for (const int64_t depth : {1, 2, 6, 12}) {
        for (const auto position : {Position::rotary, Position::learned}) {
          auto other = small_decoder();
          other.architecture = architecture;
          other.n_layers = depth;
          other.position = position;
          other.max_positions = 64;
          const auto matched = match_model(other, kText, quantity, target, 32);
          EXPECT_LE(std::abs(matched.deviation), 0.02) << depth;
          EXPECT_EQ(matched.config.n_layers, depth);
          EXPECT_EQ(matched.config.d_model % matched.config.n_heads, 0);
        }
      }
    }
  }
}

// Several widths may have the same size: the feed-forward keeps its shape where it can.
TEST(Matching, ChangesTheShapeOfTheFeedForwardAsLittleAsItCan) {
  const double target = matched_quantity(small_decoder(), kText, MatchQuantity::parameters, 32);
  for (const int64_t depth : {1, 6, 12}) {
    auto other = small_decoder();
    other.n_layers = depth;
    const auto matched = match_model(other, kText, MatchQuantity::parameters, target, 32);
    EXPECT_NE(matched.config.d_model, 64);
    const double shape =
        static_cast<double>(*matched.config.d_ff) / static_cast<double>(matched.config.d_model);
    EXPECT_NEAR(shape, 4, 0.6) << depth << " layers";
  }
}

TEST(Matching, LeavesWhatFitsAloneAndRefusesWhatCannotFit) {
  const auto config = small_decoder();
  const double own = matched_quantity(config, kText, MatchQuantity::parameters, 32);
  const auto same = match_model(config, kText, MatchQuantity::parameters, own, 32);
  EXPECT_FALSE(same.config.d_ff.has_value());
  EXPECT_EQ(same.deviation, 0);
  EXPECT_THROW(match_model(config, kText, MatchQuantity::parameters, own * 1000, 32), ConfigError);
}

class Plan : public ::testing::Test {
 protected:
  ComparisonPlan plan(const std::vector<std::pair<std::string, std::vector<std::string>>>& variants,
                      const ComparisonSettings& settings = {}, std::string_view task = "language_modeling") {
    Comparison comparison{.settings = settings, .variants = {}};
    for (const auto& [name, overrides] : variants)
      comparison.variants.push_back({.name = name, .experiment = world_.experiment(task, overrides)});
    return make_plan(comparison);
  }
  static ComparisonSettings with_budget(const BudgetConfig& budget) {
    ComparisonSettings settings;
    settings.budget = budget;
    return settings;
  }

  TinyWorld world_;
};

TEST_F(Plan, SaysWhatIsNotTheSame) {
  EXPECT_TRUE(plan({{"a", {}}, {"b", {"model.n_layers=2", "training.optimizer.lr=0.1"}}}).fair());
  const auto unfair = [&](const std::string& change, NoticeKind kind, std::string_view words) {
    const auto result = plan({{"a", {}}, {"b", {change}}});
    EXPECT_FALSE(result.fair()) << change;
    EXPECT_THAT(result.notices,
                Contains(AllOf(Field(&Notice::kind, kind), Field(&Notice::text, HasSubstr(words)))))
        << change;
  };
  unfair("data.tokenizer.type=byte", NoticeKind::tokenizer, "data.tokenizer.type: char (a), byte (b)");
  unfair("data.valid_fraction=0.2", NoticeKind::evaluation, "data.valid_fraction: 0.1 (a), 0.2 (b)");
  unfair("data.documents=line", NoticeKind::data, "data.documents");
  unfair("training.evaluate_batches=1", NoticeKind::evaluation, "training.evaluate_batches");
  const auto by_bleu = plan({{"a", {}}, {"b", {"training.best_by=bleu"}}}, {}, "text_to_text");
  EXPECT_THAT(by_bleu.notices,
              Contains(Field(&Notice::text, HasSubstr("training.best_by: loss (a), bleu (b)"))));
  unfair("training.steps=30", NoticeKind::budget, "20 (a), 30 (b)");
  unfair("training.batch_size=8", NoticeKind::budget, "The same number of steps, but not of tokens");
}

TEST_F(Plan, WeightsThatHaveSeenDataAreNotTheSameStart) {
  train(world_.experiment("language_modeling", {"training.steps=1"}), {.run_dir = world_.path("before")});
  const auto from = "init_from=" + world_.path("before").string();
  const auto result = plan({{"a", {}}, {"b", {from}}});
  EXPECT_FALSE(result.fair());
  EXPECT_THAT(result.differences, ElementsAre("init_from"));
  EXPECT_THAT(result.notices, ElementsAre(AllOf(Field(&Notice::kind, NoticeKind::data),
                                                Field(&Notice::text, HasSubstr("init_from: ")))));
  EXPECT_TRUE(plan({{"a", {from}}, {"b", {from, "model.dropout=0"}}}).fair());

  ComparisonSettings settings;
  settings.subject = {"init_from"};
  const auto about = plan({{"a", {}}, {"b", {from}}}, settings);
  EXPECT_TRUE(about.fair());
  EXPECT_THAT(about.notices, ElementsAre(Field(&Notice::text, HasSubstr("The subject: init_from: "))));
  EXPECT_FALSE(plan({{"a", {}}, {"b", {from, "training.evaluate_batches=1"}}}, settings).fair());
  EXPECT_THAT([&] { plan({{"a", {}}, {"b", {}}}, settings); },
              ThrowsMessage<ConfigError>(HasSubstr("subject: init_from: the variants do not differ")));
}

/// A plan of runs that are planned alike, except for these numbers of tokens.
ComparisonPlan plan_of_tokens(const Experiment& experiment, const std::vector<int64_t>& tokens) {
  ComparisonPlan plan;
  plan.budget = {BudgetKind::steps, 20};
  for (const int64_t n : tokens) {
    PlannedVariant variant;
    variant.name = fmt::format("run {}", n);
    variant.experiment = experiment;
    variant.planned = Consumption{.steps = 20, .tokens = n};
    plan.variants.push_back(variant);
  }
  check_fairness(plan);
  return plan;
}

// An encoder reads a special token more than a decoder, and no run reads a tenth more than another.
TEST_F(Plan, EqualStepsReadEqualTokensWithinTwoPercent) {
  const auto experiment = world_.experiment("language_modeling");
  EXPECT_TRUE(plan_of_tokens(experiment, {10000, 10190}).fair());
  EXPECT_TRUE(plan_of_tokens(experiment, {10190, 10000}).fair());
  for (const auto& tokens : std::vector<std::vector<int64_t>>{{10000, 10250}, {10000, 10000, 9700}}) {
    EXPECT_THAT(plan_of_tokens(experiment, tokens).notices,
                ElementsAre(AllOf(Field(&Notice::kind, NoticeKind::budget),
                                  Field(&Notice::text,
                                        HasSubstr("The same number of steps, but not of tokens: 10000 (")))));
  }
}

TEST_F(Plan, SaysWhatDiffersInTraining) {
  const auto result = plan({{"a", {}}, {"b", {"training.optimizer.lr=0.1", "training.clip_grad_norm=0"}}});
  EXPECT_TRUE(result.fair());  // this may be the subject of the comparison
  Comparison grid;
  for (const std::string lr : {"0.1", "0.2"}) {
    grid.variants.push_back(
        {.name = lr,
         .experiment = world_.experiment("language_modeling", {"training.optimizer.lr=" + lr}),
         .grid = {{"training.optimizer.lr", lr}}});
  }
  EXPECT_THAT(make_plan(grid).notices, IsEmpty()) << "a grid names its subject";
  for (auto& variant : grid.variants) {
    variant.candidates = {{variant.name, variant.experiment, std::exchange(variant.grid, {})}};
  }
  EXPECT_THAT(make_plan(grid).notices, IsEmpty()) << "each run has tuned its own value";
  EXPECT_THAT(result.notices,
              ElementsAre(AllOf(
                  Field(&Notice::kind, NoticeKind::training),
                  Field(&Notice::text, HasSubstr("way: training.clip_grad_norm, training.optimizer.lr")))));
  EXPECT_THAT(plan({{"a", {}}, {"b", {"model.n_layers=2"}}}).notices, IsEmpty());
}

TEST_F(Plan, AFinishedRunHasTheBudgetThatItUsed) {
  const auto trained = [&](int64_t steps) {
    const auto path = world_.path(fmt::format("run-{}", steps));
    const auto experiment = world_.experiment("language_modeling", {fmt::format("training.steps={}", steps)});
    train(experiment, {.run_dir = path});
    return Variant{.name = path.filename(), .experiment = experiment, .finished = {{path, 1}}};
  };
  const auto planned = [](const std::vector<Variant>& variants, const ComparisonSettings& settings = {}) {
    return make_plan({.settings = settings, .variants = variants});
  };
  const auto seed_1 = [] {
    ComparisonSettings settings;
    settings.seeds = 1;
    return settings;
  };
  const auto short_run = trained(20), long_run = trained(40);
  const auto unequal = planned({short_run, long_run});
  EXPECT_FALSE(unequal.fair());
  EXPECT_EQ(unequal.budget.amount, 20);
  EXPECT_THAT(unequal.notices, ElementsAre(Field(&Notice::text, HasSubstr("20 (run-20), 40 (run-40)"))));

  const Variant config{.name = "b", .experiment = world_.experiment("language_modeling")};  // 20 steps
  EXPECT_TRUE(planned({short_run, config}, seed_1()).fair());
  EXPECT_FALSE(planned({long_run, config}, seed_1()).fair());
  auto tokens = seed_1();
  tokens.budget.tokens = static_cast<double>(unequal.variants[0].planned->tokens);
  EXPECT_TRUE(planned({short_run, config}, tokens).fair());
  EXPECT_THAT(planned({long_run, config}, tokens).notices,
              ElementsAre(Field(&Notice::text, HasSubstr("Not trained for the tokens of the budget"))));
}

TEST_F(Plan, RunsThatDifferInTheirSeedAreOneRow) {
  const auto trained = [&](std::string_view name, const std::vector<std::string>& keys) {
    const auto path = world_.path(name);
    train(world_.experiment("language_modeling", keys), {.run_dir = path});
    return path;
  };
  const auto first = trained("first", {}), second = trained("second", {"training.seed=2"});
  const auto again = trained("again", {"training.seed=2"});
  const auto other = trained("other", {"training.optimizer.lr=0.1"});
  const auto result = make_plan(comparison_of({first, second, again, other}));
  ASSERT_EQ(result.variants.size(), 3) << "a seed counts once in a row";
  EXPECT_EQ(result.variants[0].seeds, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(run_dir_of("elsewhere", result.variants[0], 1), first);
  EXPECT_EQ(run_dir_of("elsewhere", result.variants[0], 2), second);
  EXPECT_EQ(run_dir_of("elsewhere", result.variants[1], 2), again);
  EXPECT_TRUE(make_plan(comparison_of({first, second})).fair());

  // The configuration does not say that a run was stopped: its checkpoint does.
  auto stopped = world_.experiment("language_modeling", {"training.seed=3"});
  int64_t asked = 0;
  train(stopped, {.run_dir = world_.path("stopped"), .should_stop = [&] { return ++asked > 5; }});
  EXPECT_THAT(make_plan(comparison_of({first, world_.path("stopped")})).notices,
              Contains(Field(&Notice::text, HasSubstr("unequal numbers of steps: 20 (seed 1), "))));
}

TEST_F(Plan, ABudgetTakesThePlaceOfTheTime) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> variants = {
      {"a", {}}, {"b", {"training.max_seconds=5"}}};
  BudgetConfig budget;
  budget.steps = 10;
  const auto with = plan(variants, with_budget(budget));
  EXPECT_FALSE(with.variants[1].experiment.training.max_seconds);
  EXPECT_TRUE(with.fair());
  EXPECT_THAT(plan(variants).notices,
              ElementsAre(Field(&Notice::text, HasSubstr("training.max_seconds: none (a), 5 (b)"))));
}

TEST_F(Plan, SaysWhereTheWarmUpNeverEnds) {
  const std::vector<std::string> warmup = {"training.schedule.warmup_steps=10"};
  BudgetConfig budget;
  budget.steps = 10;
  const auto words = Field(&Notice::text, HasSubstr("never leaves the warm-up: 10 of 10 (a)"));
  EXPECT_THAT(plan({{"a", warmup}}, with_budget(budget)).notices, ElementsAre(words));
  EXPECT_THAT(plan({{"a", warmup}}).notices, Not(Contains(words)));
}

TEST_F(Plan, KnowsTheKeysThatDiffer) {
  const auto result = plan({{"a", {"training.seed=5"}}, {"b", {"model.n_layers=2", "name=other"}}});
  EXPECT_THAT(result.differences, ElementsAre("model.n_layers"));
  EXPECT_EQ(result.variants[0].seeds, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(result.variants[1].with_seed(3).training.seed, 3);
  EXPECT_EQ(result.budget.kind, BudgetKind::steps);
  EXPECT_EQ(result.budget.amount, 20);
}

TEST_F(Plan, AGroupThatOneLeavesOutIsADifference) {
  const auto result = plan({{"dense", {}}, {"mixture", {"model.experts={count: 4, d_ff: 16}"}}});
  EXPECT_THAT(result.differences, ::testing::Contains("model.experts.count"));
  EXPECT_THAT(result.differences, ::testing::Not(::testing::Contains(::testing::HasSubstr("training."))));
}

// The trainer counts exactly the amounts that the plan predicts.
TEST_F(Plan, BudgetsOfTokensAndFlopsHold) {
  for (const char* task : {"language_modeling", "text_to_text", "text_classification"}) {
    SCOPED_TRACE(task);
    for (const bool tokens : {true, false}) {
      BudgetConfig budget;
      const double amount = tokens ? 4000 : 4e7;
      (tokens ? budget.tokens : budget.flops) = amount;
      const auto result =
          plan({{"a", {}}, {"b", {"training.batch_size=2", "model.n_layers=2"}}}, with_budget(budget), task);
      EXPECT_TRUE(result.fair());
      for (const auto& variant : result.variants) {
        const double planned = tokens ? static_cast<double>(variant.planned->tokens) : variant.planned->flops;
        const double step = planned / static_cast<double>(variant.planned->steps);
        EXPECT_LE(std::abs(planned - amount), 0.75 * step);  // batches are not all equally large
        const auto dir = world_.path(fmt::format("{}-{}-{}", task, tokens, variant.slug));
        train(variant.with_seed(1), {.run_dir = dir});
        const auto state = read_training_state(*newest_checkpoint(dir));
        EXPECT_EQ(state.step, variant.planned->steps);
        EXPECT_EQ(state.tokens, variant.planned->tokens);
        EXPECT_DOUBLE_EQ(state.flops, variant.planned->flops);
      }
    }
  }
}

TEST_F(Plan, ABudgetOfSecondsLeavesTheStepsToTheClock) {
  BudgetConfig budget;
  budget.seconds = 0.5;
  const auto result = plan({{"a", {}}}, with_budget(budget));
  EXPECT_EQ(result.variants[0].experiment.training.max_seconds, 0.5);
  EXPECT_FALSE(result.variants[0].planned);
}

TEST_F(Plan, ACurveHasTenEvaluationsAndABeginning) {
  BudgetConfig budget;
  budget.steps = 200;
  const auto result = plan({{"a", {}}}, with_budget(budget));
  const auto& training = result.variants[0].experiment.training;
  EXPECT_EQ(training.steps, 200);
  EXPECT_EQ(training.evaluate_every, 20) << "at least ten evaluations, here instead of 70 steps";
  EXPECT_TRUE(training.evaluate_at_start);
  EXPECT_LE(training.log_every, training.evaluate_every);
  const auto rarely = plan({{"a", {"training.log_every=50"}}}, with_budget(budget));
  EXPECT_EQ(rarely.variants[0].experiment.training.log_every, 20)
      << "a point of the curve at each evaluation";
  // A file that asks for more gets more.
  const auto often = plan({{"a", {"training.evaluate_every=1"}}}, with_budget(budget));
  EXPECT_EQ(often.variants[0].experiment.training.evaluate_every, 10) << "1 of 20 steps";
}

TEST_F(Plan, SizesAreMatchedWithTheFirst) {
  ComparisonSettings settings;
  settings.match = MatchQuantity::parameters;
  const auto result =
      plan({{"a", {"model.d_model=32"}}, {"b", {"model.d_model=32", "model.n_layers=3"}}}, settings);
  const auto first = static_cast<double>(result.variants[0].cost.parameters);
  EXPECT_NEAR(static_cast<double>(result.variants[1].cost.parameters) / first, 1, 0.02);
  EXPECT_EQ(result.variants[0].experiment.model.d_model, 32);
  ASSERT_TRUE(result.match);
  EXPECT_EQ(result.match->target, first);
}

// The last evaluation is at the end of the training, not shortly before it.
TEST_F(Plan, ABudgetMakesNoDifferencesOfItsOwn) {
  BudgetConfig budget;
  budget.tokens = 4000;
  const auto result = plan({{"a", {}}, {"b", {"training.batch_size=2"}}}, with_budget(budget));
  EXPECT_THAT(result.differences, ElementsAre("training.batch_size"));
  for (const auto& variant : result.variants) {
    const auto& training = variant.experiment.training;
    EXPECT_GE(training.steps / training.evaluate_every, 10);
  }
}

TEST_F(Plan, RefusesWhatHasNoCommonMeasure) {
  Comparison comparison;
  EXPECT_THROW(make_plan(comparison), UsageError);
  comparison.variants.push_back({.name = "a", .experiment = world_.experiment("language_modeling")});
  comparison.variants.push_back({.name = "b", .experiment = world_.experiment("text_to_text")});
  EXPECT_THAT(message_of<UsageError>([&] { make_plan(comparison); }),
              HasSubstr("they have no common metric"));
}

TEST(Slug, IsAFileName) {
  EXPECT_EQ(slug_of("pre-norm, n_layers=2"), "pre-norm-n_layers-2");
  EXPECT_EQ(slug_of("base (2)"), "base-2");
  EXPECT_EQ(slug_of("../x"), "variant..-x");
  EXPECT_EQ(slug_of("ä"), "variant");
  std::vector<Variant> variants(4);
  for (size_t i = 0; i < variants.size(); ++i)
    variants[i].name = std::vector<std::string>{"a b", "a-b", "a b-2", "a_b"}[i];
  EXPECT_EQ(slugs_of(variants), (std::vector<std::string>{"a-b", "a-b-2", "a-b-2-2", "a_b"}));
}

}  // namespace
}  // namespace zoo::testing
