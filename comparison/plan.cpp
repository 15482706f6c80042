#include "comparison/plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comparison/matching.h"
#include "io/error.h"
#include "training/checkpoint.h"
#include "training/run.h"
#include "training/task.h"

namespace zoo {
namespace {

using Values = std::map<std::string, std::string>;  // of a configuration, by dotted key

Values values_of(const Experiment& experiment) {
  Values values;
  for (auto& [key, value] : flatten(experiment)) values.emplace(std::move(key), std::move(value));
  return values;
}

/// Which promise of fairness a key belongs to; nothing for what may differ.
std::optional<NoticeKind> promise_of(std::string_view key) {
  if (key.starts_with("data.tokenizer.")) return NoticeKind::tokenizer;
  if (key == "init_from") return NoticeKind::data;  // more of it has been seen
  // An encoder-decoder and a decoder read the same texts in sequences of other kinds.
  if (key == "data.bucket_by_length") return std::nullopt;
  constexpr auto evaluation = std::to_array<std::string_view>(
      {"data.valid", "data.valid_fraction", "data.test", "data.sequence_length", "data.target_length",
       "data.prefix_length", "data.mask_probability", "data.mask_replace", "data.mask_random",
       "training.evaluate_batches", "training.best_by"});
  if (std::find(evaluation.begin(), evaluation.end(), key) != evaluation.end()) return NoticeKind::evaluation;
  if (key.starts_with("data.")) return NoticeKind::data;
  return std::nullopt;
}

/// Of these check_budgets() says what is to be said.
bool is_of_budget(std::string_view key) { return key == "training.steps" || key == "training.max_seconds"; }

/// What changes nothing in what is learnt, and what follows from the budget, is no difference.
std::vector<std::string> differing_keys(const std::vector<Values>& all, BudgetKind budget) {
  std::vector<std::string> keys;
  const auto ignored = [&](const std::string& key) {
    constexpr auto names =
        std::to_array<std::string_view>({"name", "training.seed", "training.evaluate_every",
                                         "training.checkpoint_every", "training.log_every"});
    return key.starts_with("generation.") || std::find(names.begin(), names.end(), key) != names.end() ||
           (is_of_budget(key) && budget != BudgetKind::steps);
  };
  for (const auto& [key, value] : all.front()) {
    const auto differs = [&](const Values& other) { return other.at(key) != value; };
    if (!ignored(key) && std::any_of(all.begin(), all.end(), differs)) keys.push_back(key);
  }
  return keys;
}

/// "data.train: fortunes (encoder), wikitext-2 (decoder, gpt)"
std::string who_has_what(const std::string& key, const std::vector<PlannedVariant>& variants,
                         const std::vector<Values>& values) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (size_t i = 0; i < variants.size(); ++i) {
    const auto& value = values[i].at(key);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == value; });
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
    group->second.push_back(variants[i].name);
  }
  std::string text = key + ": ";
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& names = groups[i].second;
    const bool many = names.size() > 3;
    text += fmt::format("{}{} ({}{})", i == 0 ? "" : ", ", groups[i].first,
                        fmt::join(names.begin(), many ? names.begin() + 2 : names.end(), ", "),
                        many ? fmt::format(" and {} more", names.size() - 2) : "");
  }
  return text;
}

void check_fairness(ComparisonPlan& plan) {
  std::vector<Values> values;
  for (const auto& variant : plan.variants) values.push_back(values_of(variant.experiment));
  plan.differences = differing_keys(values, plan.budget.kind);
  std::vector<std::string> training;
  for (const auto& key : plan.differences) {
    if (const auto kind = promise_of(key)) {
      plan.notices.push_back(
          {*kind, fmt::format("Not the same for all: {}", who_has_what(key, plan.variants, values))});
    } else if (key.starts_with("training.") && !is_of_budget(key)) {
      training.push_back(key);
    }
  }
  if (!training.empty()) {
    plan.notices.push_back(
        {NoticeKind::training, fmt::format("Not trained in the same way: {}", fmt::join(training, ", "))});
  }
}

bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= 0.005 * std::max(std::abs(a), std::abs(b));
}

/// "20 (a), 200 (b)", of the first few.
std::string listed(std::vector<std::string> list) {
  constexpr size_t most = 6;
  if (list.size() > most) {
    list.resize(most);
    list.emplace_back("…");
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

/// What a run has used of a budget of this kind.
double used(const PlannedVariant& variant, BudgetKind kind) {
  switch (kind) {
    case BudgetKind::steps:
      return static_cast<double>(variant.planned->steps);
    case BudgetKind::tokens:
      return static_cast<double>(variant.planned->tokens);
    case BudgetKind::flops:
      return variant.planned->flops;
    case BudgetKind::seconds:
      return variant.experiment.training.max_seconds.value_or(0);
  }
  return 0;
}

/// A finished run has the budget that it was trained with, whatever the others get. It ends with a whole
/// step.
bool keeps_to(const Budget& budget, const PlannedVariant& run) {
  const double amount = used(run, budget.kind);
  const double step = amount / static_cast<double>(std::max<int64_t>(1, run.planned->steps));
  const bool whole = budget.kind == BudgetKind::tokens || budget.kind == BudgetKind::flops;
  return nearly_equal(amount, budget.amount) || (whole && std::abs(amount - budget.amount) <= step);
}

void check_finished_runs(ComparisonPlan& plan) {
  std::vector<std::string> unknown, other;
  for (const auto& variant : plan.variants) {
    if (!variant.run) continue;
    if (!variant.planned) {
      unknown.push_back(variant.name);
    } else if (plan.budget.kind != BudgetKind::steps && !keeps_to(plan.budget, variant)) {
      other.push_back(fmt::format("{:.6g} ({})", used(variant, plan.budget.kind), variant.name));
    }
  }
  if (!unknown.empty()) {
    plan.notices.push_back(
        {NoticeKind::budget,
         fmt::format("Without a checkpoint nobody knows how long it was trained: {}", listed(unknown))});
  }
  if (!other.empty()) {
    plan.notices.push_back({NoticeKind::budget, fmt::format("Not trained for the {} of the budget: {}",
                                                            name_of(plan.budget.kind), listed(other))});
  }
}

/// Equal steps may hide unequal numbers of tokens.
void check_steps(ComparisonPlan& plan) {
  std::vector<std::string> steps, tokens;
  bool steps_differ = false, tokens_differ = false;
  const PlannedVariant* first = nullptr;
  for (const auto& variant : plan.variants) {
    if (!variant.planned) continue;
    steps.push_back(fmt::format("{} ({})", variant.planned->steps, variant.name));
    tokens.push_back(fmt::format("{} ({})", variant.planned->tokens, variant.name));
    if (first == nullptr) first = &variant;
    steps_differ |= variant.planned->steps != first->planned->steps;
    tokens_differ |= !nearly_equal(static_cast<double>(variant.planned->tokens),
                                   static_cast<double>(first->planned->tokens));
  }
  const auto say = [&](std::string_view what, const std::vector<std::string>& list) {
    plan.notices.push_back({NoticeKind::budget, fmt::format("{}: {}", what, listed(list))});
  };
  if (steps_differ) say("Trained for unequal numbers of steps", steps);
  if (!steps_differ && tokens_differ) say("The same number of steps, but not of tokens", tokens);
}

/// Where a configuration's own time may end a training before its steps, it has to be the same for all.
void check_time(ComparisonPlan& plan) {
  std::vector<std::string> list;
  std::set<std::optional<double>> limits;
  for (const auto& variant : plan.variants) {
    if (variant.run) continue;  // what it has used is known
    const auto limit = variant.experiment.training.max_seconds;
    limits.insert(limit);
    list.push_back(fmt::format("{} ({})", limit ? fmt::format("{:g}", *limit) : "none", variant.name));
  }
  if (limits.size() > 1) {
    plan.notices.push_back(
        {NoticeKind::budget, fmt::format("Not the same training.max_seconds: {}", listed(list))});
  }
}

void check_budgets(ComparisonPlan& plan) {
  check_finished_runs(plan);
  if (plan.budget.kind != BudgetKind::steps) return;
  check_steps(plan);
  check_time(plan);
}

/// A budget changes the steps, and leaves the schedule as it was configured.
void check_schedules(ComparisonPlan& plan) {
  std::vector<std::string> list;
  for (const auto& variant : plan.variants) {
    const int64_t warmup = variant.experiment.training.schedule.warmup_steps;
    if (variant.planned && warmup > 0 && warmup >= variant.planned->steps)
      list.push_back(fmt::format("{} of {} ({})", warmup, variant.planned->steps, variant.name));
  }
  if (!list.empty()) {
    plan.notices.push_back(
        {NoticeKind::training,
         fmt::format("training.schedule.warmup_steps lasts as long as all steps, so that the learning rate "
                     "never leaves the warm-up: {}",
                     listed(list))});
  }
}

void check_seeds(ComparisonPlan& plan) {
  const auto& first = plan.variants.front();
  const auto differs = [&](const PlannedVariant& v) { return v.seeds != first.seeds; };
  if (std::any_of(plan.variants.begin(), plan.variants.end(), differs)) {
    std::vector<std::string> list;
    for (const auto& v : plan.variants)
      list.push_back(fmt::format("{} ({})", fmt::join(v.seeds, ", "), v.name));
    plan.notices.push_back({NoticeKind::seeds, fmt::format("Not the same seeds: {}", fmt::join(list, "; "))});
  }
}

/// Reading a corpus and making its tokenizer takes time: variants with equal data share both.
class Tasks {
 public:
  std::unique_ptr<Task> open(const Experiment& experiment) {
    std::string key = fmt::format("{} {}", name_of(experiment.task), name_of(experiment.model.architecture));
    for (const auto& [name, value] : flatten(experiment)) {
      if (name.starts_with("data.") || name == "init_from") key += fmt::format("\n{}={}", name, value);
    }
    auto& vocabulary = vocabularies_[key];
    if (!vocabulary.tokenizer) vocabulary = make_task(experiment)->vocabulary();
    return open_task(experiment, vocabulary);
  }

 private:
  std::map<std::string, Vocabulary> vocabularies_;
};

std::unique_ptr<Task> task_of(Tasks& tasks, const PlannedVariant& variant) {
  return variant.run ? open_task(variant.experiment, read_run_vocabulary(*variant.run))
                     : tasks.open(variant.experiment);
}

void check_comparable(const Comparison& comparison) {
  if (comparison.variants.empty())
    throw UsageError("nothing to compare: give configurations, runs or a comparison");
  const auto& first = comparison.variants.front();
  for (const auto& variant : comparison.variants) {
    if (variant.experiment.task != first.experiment.task) {
      throw UsageError(fmt::format("{} is trained for {}, {} for {}: there is no common measure", first.name,
                                   name_of(first.experiment.task), variant.name,
                                   name_of(variant.experiment.task)));
    }
  }
}

void check_lengths(const ComparisonPlan& plan) {
  for (const int64_t length : plan.settings.evaluate_lengths) {
    for (const auto& variant : plan.variants) {
      if (variant.experiment.task != TaskKind::language_modeling)
        throw UsageError("evaluate_lengths is for language_modeling alone");
      if (length > variant.experiment.model.max_positions) {
        throw UsageError(fmt::format("{}: evaluate_lengths {} is longer than model.max_positions {}",
                                     variant.name, length, variant.experiment.model.max_positions));
      }
    }
  }
}

void match_sizes(ComparisonPlan& plan, Tasks& tasks) {
  const auto quantity = plan.settings.match;
  if (quantity == MatchQuantity::none) return;
  MatchResult result{.quantity = quantity};
  for (auto& variant : plan.variants) {
    if (variant.run)
      throw UsageError(fmt::format("{}: a finished run cannot be matched to another size", variant.name));
    const auto purpose = task_of(tasks, variant)->purpose();
    const int64_t length = variant.experiment.data.sequence_length;
    if (&variant == &plan.variants.front()) {
      result.target = matched_quantity(variant.experiment.model, purpose, quantity, length);
      continue;
    }
    try {
      const auto matched = match_model(variant.experiment.model, purpose, quantity, result.target, length);
      variant.experiment.model = matched.config;
      result.spread = std::max(result.spread, std::abs(matched.deviation));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", variant.name, error.what()));
    }
  }
  plan.match = result;
}

/// Evaluations and checkpoints keep their share of a training that becomes shorter or longer.
void set_steps(TrainingConfig& training, int64_t steps) {
  const double factor = static_cast<double>(steps) / static_cast<double>(training.steps);
  const auto scaled = [&](int64_t every) {
    return std::max<int64_t>(1, std::llround(std::ceil(static_cast<double>(every) * factor)));
  };
  if (steps != training.steps) {
    training.evaluate_every = scaled(training.evaluate_every);
    training.checkpoint_every = scaled(training.checkpoint_every);
    training.log_every = std::min(training.log_every, training.evaluate_every);
  }
  training.steps = steps;
}

/// What a finished run has used; nothing where it has no checkpoint that could tell.
std::optional<Consumption> consumption_of(const std::filesystem::path& run) {
  const auto checkpoint = newest_checkpoint(run);
  if (!checkpoint) return std::nullopt;
  const auto state = read_training_state(*checkpoint);
  return Consumption{.steps = state.step, .tokens = state.tokens, .flops = state.flops};
}

/// The budget where none is given: what the first one's configuration says, or has brought it. Finished runs
/// that the same number of seconds ended had a budget of seconds.
Budget default_budget(const std::vector<PlannedVariant>& variants) {
  const auto& first = variants.front().experiment.training;
  const auto ended_by_clock = [&](const PlannedVariant& v) {
    return v.run && v.planned && v.experiment.training.max_seconds == first.max_seconds &&
           v.planned->steps < v.experiment.training.steps;
  };
  if (first.max_seconds && std::all_of(variants.begin(), variants.end(), ended_by_clock))
    return {BudgetKind::seconds, *first.max_seconds};
  const auto& planned = variants.front().planned;
  return {BudgetKind::steps, static_cast<double>(planned ? planned->steps : first.steps)};
}

/// The budget takes the place of what the configuration says.
void set_budget(PlannedVariant& variant, const Budget& budget) {
  auto& training = variant.experiment.training;
  if (budget.kind != BudgetKind::seconds) {
    training.max_seconds.reset();
    return;
  }
  training.max_seconds = budget.amount;
  training.steps = std::max<int64_t>(training.steps, 1'000'000'000);  // the clock ends it
}

void apply_budget(ComparisonPlan& plan, const Comparison& comparison, Tasks& tasks) {
  for (auto& variant : plan.variants) {
    if (variant.run) variant.planned = consumption_of(*variant.run);
  }
  const auto given = comparison.budget();
  plan.budget = given.value_or(default_budget(plan.variants));
  for (auto& variant : plan.variants) {
    const auto task = task_of(tasks, variant);
    variant.cost =
        model_cost(variant.experiment.model, task->purpose(), variant.experiment.data.sequence_length);
    if (variant.run) continue;
    if (given) set_budget(variant, *given);
    if (plan.budget.kind == BudgetKind::seconds) continue;
    const auto seeded = variant.with_seed(variant.seeds.front());
    const auto seeded_task = open_task(seeded, task->vocabulary());
    variant.planned = given ? steps_within(seeded, *seeded_task, plan.budget)
                            : consumption(seeded, *seeded_task, seeded.training.steps);
    set_steps(variant.experiment.training, variant.planned->steps);
  }
}

}  // namespace

Experiment PlannedVariant::with_seed(int64_t seed) const {
  Experiment seeded = experiment;
  seeded.name = slug;
  seeded.training.seed = seed;
  return seeded;
}

bool ComparisonPlan::fair() const {
  return std::none_of(notices.begin(), notices.end(), [](const Notice& notice) {
    return notice.kind != NoticeKind::training && notice.kind != NoticeKind::failure;
  });
}

std::string slug_of(std::string_view name) {
  std::string slug;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (plain) {
      slug += c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() || slug.front() == '.' ? "variant" + slug : slug;
}

ComparisonPlan make_plan(const Comparison& comparison) {
  check_comparable(comparison);
  ComparisonPlan plan{.settings = comparison.settings};
  std::set<std::string> slugs;
  for (const auto& variant : comparison.variants) {
    PlannedVariant planned{.name = variant.name,
                           .slug = slug_of(variant.name),
                           .experiment = variant.experiment,
                           .run = variant.run};
    const auto first = std::find_if(comparison.variants.begin(), comparison.variants.end(),
                                    [&](const Variant& other) { return other.cell == variant.cell; });
    if (first->name != variant.name) planned.baseline = first->name;
    for (int i = 2; !slugs.insert(planned.slug).second; ++i)
      planned.slug = fmt::format("{}-{}", slug_of(variant.name), i);
    if (variant.run) {
      planned.seeds = {variant.experiment.training.seed};
    } else {
      for (int64_t seed = 1; seed <= plan.settings.seeds; ++seed) planned.seeds.push_back(seed);
    }
    plan.variants.push_back(std::move(planned));
  }
  check_lengths(plan);
  Tasks tasks;
  match_sizes(plan, tasks);
  apply_budget(plan, comparison, tasks);
  check_fairness(plan);
  check_budgets(plan);
  check_schedules(plan);
  check_seeds(plan);
  return plan;
}

}  // namespace zoo
