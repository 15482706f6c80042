#include "comparison/planning/plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "comparison/planning/fairness.h"
#include "comparison/planning/matching.h"
#include "tasks/epochs.h"
#include "tasks/preparation.h"
#include "tasks/task.h"

namespace zoo {
namespace {

/// Opens the tasks of variants. Variants with equal data share a vocabulary, because making one takes time.
class Tasks {
 public:
  explicit Tasks(std::function<void(const std::string& line)> on_message)
      : on_message_(std::move(on_message)) {}

  std::unique_ptr<Task> open(const Experiment& experiment) {
    std::string key = fmt::format("{} {}", to_text(experiment.task), to_text(experiment.model.architecture));
    for (const auto& [name, value] : flatten(experiment)) {
      if (name.starts_with("data.") || name == "init_from") key += fmt::format("\n{}={}", name, value);
    }
    auto& vocabulary = vocabularies_[key];
    if (!vocabulary.tokenizer) {
      if (const auto note = learning_note(experiment); note && on_message_) on_message_(*note);
      vocabulary = task_of_new_run(experiment)->vocabulary();
    }
    return task_with_vocabulary(experiment, vocabulary);
  }

 private:
  std::function<void(const std::string& line)> on_message_;
  std::map<std::string, Vocabulary> vocabularies_;
};

std::unique_ptr<Task> task_of(Tasks& tasks, const PlannedVariant& variant) {
  if (variant.runs.empty()) return tasks.open(variant.experiment);
  const auto vocabulary = read_run_vocabulary(variant.runs.front(), task_type(variant.experiment));
  return task_with_vocabulary(variant.experiment, vocabulary);
}

void check_comparable(const Comparison& comparison) {
  if (comparison.variants.empty())
    throw UsageError("nothing to compare: give configurations, runs or a comparison");
  const auto& first = comparison.variants.front();
  for (const auto& variant : comparison.variants) {
    if (variant.experiment.task.type != first.experiment.task.type) {
      throw UsageError(fmt::format("{} is trained for {}, {} for {}: they have no common metric", first.name,
                                   first.experiment.task.type, variant.name, variant.experiment.task.type));
    }
  }
}

void check_lengths(const ComparisonPlan& plan) {
  for (const int64_t length : plan.settings.evaluate_lengths) {
    for (const auto& variant : plan.variants) {
      if (task_type(variant.experiment).rows != BatchRows::windows_of_any_length) {
        throw UsageError(
            fmt::format("evaluate_lengths is not for {}: it cannot be evaluated at other lengths",
                        variant.experiment.task.type));
      }
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
  std::map<std::string, double> targets;  // by size: of its first variant
  for (auto& variant : plan.variants) {
    if (variant.ablation) continue;
    if (!variant.runs.empty())
      throw UsageError(fmt::format("{}: a finished run cannot be matched to another size", variant.name));
    const auto purpose = task_of(tasks, variant)->purpose();
    const int64_t length = variant.experiment.data.sequence_length;
    const auto [target, is_first] = targets.emplace(variant.size, 0.0);
    if (is_first) {
      target->second = matched_quantity(variant.experiment.model, purpose, quantity, length);
      if (&variant == &plan.variants.front()) result.target = target->second;
      continue;
    }
    try {
      const auto matched = match_model(variant.experiment.model, purpose, quantity, target->second, length);
      variant.experiment.model = matched.config;
      result.spread = std::max(result.spread, std::abs(matched.deviation));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", variant.name, error.what()));
    }
  }
  plan.match = result;
}

/// At least ten evaluations make a curve.
void plan_evaluations(TrainingConfig& training) {
  constexpr int64_t fewest = 10;
  training.evaluate_every = std::min(training.evaluate_every, std::max<int64_t>(1, training.steps / fewest));
  training.log_every = std::min(training.log_every, training.evaluate_every);
}

/// Scales the intervals of evaluations and checkpoints with the number of steps.
void set_steps(TrainingConfig& training, int64_t steps) {
  const double factor = static_cast<double>(steps) / static_cast<double>(training.steps);
  const auto scaled = [&](int64_t every) {
    return std::max<int64_t>(1, std::llround(std::ceil(static_cast<double>(every) * factor)));
  };
  if (steps != training.steps) {
    training.evaluate_every = scaled(training.evaluate_every);
    training.checkpoint_every = scaled(training.checkpoint_every);
  }
  training.steps = steps;
}

/// The steps, tokens and FLOPs of a finished run; nothing if it has no checkpoint.
std::optional<Consumption> consumption_of(const std::filesystem::path& run) {
  const auto checkpoint = newest_checkpoint(run);
  if (!checkpoint) return std::nullopt;
  const auto state = read_training_state(*checkpoint);
  return Consumption{.steps = state.step, .tokens = state.tokens, .flops = state.flops};
}

/// Notes where the finished runs of a variant were trained for unequal numbers of steps.
void check_steps_of_seeds(ComparisonPlan& plan, const PlannedVariant& variant) {
  std::vector<std::string> list;
  bool differ = false;
  for (size_t i = 0; i < variant.runs.size(); ++i) {
    const auto used = consumption_of(variant.trained[i]);
    const int64_t steps = used ? used->steps : 0;
    list.push_back(fmt::format("{} (seed {})", steps, variant.seeds[i]));
    differ |= steps != (variant.planned ? variant.planned->steps : 0);
  }
  if (differ) {
    plan.notices.push_back({NoticeKind::budget, fmt::format("{}: trained for unequal numbers of steps: {}",
                                                            variant.name, fmt::join(list, ", "))});
  }
}

/// The budget if none is given: the steps that the first variant has taken or will take, 0 where nothing
/// tells how it was trained. If all variants are finished runs that the same max_seconds ended, the budget is
/// these seconds.
Budget default_budget(const std::vector<PlannedVariant>& variants) {
  const auto& first = variants.front().experiment.training;
  const auto ended_by_clock = [&](const PlannedVariant& v) {
    return !v.runs.empty() && v.planned && v.experiment.training.max_seconds == first.max_seconds &&
           v.planned->steps < v.experiment.training.steps;
  };
  if (first.max_seconds && std::all_of(variants.begin(), variants.end(), ended_by_clock))
    return {BudgetKind::seconds, *first.max_seconds};
  const auto& planned = variants.front().planned;
  const int64_t to_train = variants.front().runs.empty() ? first.steps : 0;
  return {BudgetKind::steps, static_cast<double>(planned ? planned->steps : to_train)};
}

/// Replaces the configuration's limits with the budget.
void set_budget(PlannedVariant& variant, const Budget& budget) {
  auto& training = variant.experiment.training;
  if (budget.kind != BudgetKind::seconds) {
    training.max_seconds.reset();
    return;
  }
  training.max_seconds = budget.amount;
  training.steps = std::max<int64_t>(training.steps, 1'000'000'000);  // max_seconds ends the training
}

/// A comparison trains for a number of steps, and every variant for its whole budget.
void fix_steps(ComparisonPlan& plan, Tasks& tasks) {
  bool had_patience = false;
  for (auto& variant : plan.variants) {
    if (!variant.runs.empty() || variant.ablation) continue;
    auto& training = variant.experiment.training;
    if (training.epochs) resolve_epochs(variant.experiment, *task_of(tasks, variant));
    had_patience |= training.patience.has_value();
    training.patience.reset();
  }
  if (had_patience)
    plan.notices.push_back({NoticeKind::training,
                            "training.patience is left out: every variant is trained for its whole budget"});
}

void apply_budget(ComparisonPlan& plan, const Comparison& comparison, Tasks& tasks) {
  fix_steps(plan, tasks);
  for (auto& variant : plan.variants) {
    if (!variant.runs.empty()) variant.planned = consumption_of(variant.trained.front());
  }
  const auto given = comparison.budget();
  plan.budget = given.value_or(default_budget(plan.variants));
  for (auto& variant : plan.variants) {
    if (variant.ablation) continue;
    if (plan.budget.kind != BudgetKind::seconds) check_steps_of_seeds(plan, variant);
    const auto task = task_of(tasks, variant);
    variant.cost =
        unit_cost(variant.experiment.model, task->purpose(), variant.experiment.data.sequence_length);
    if (!variant.runs.empty()) continue;
    if (given) set_budget(variant, *given);
    auto& training = variant.experiment.training;
    training.evaluate_at_start = true;
    if (plan.budget.kind == BudgetKind::seconds) continue;
    const auto seeded = variant.with_seed(variant.seeds.front());
    const auto seeded_task = task_with_vocabulary(seeded, task->vocabulary());
    variant.planned = given ? steps_within(seeded, *seeded_task, plan.budget)
                            : consumption(seeded, *seeded_task, seeded.training.steps);
    set_steps(training, variant.planned->steps);
    plan_evaluations(training);
  }
}

/// Throws ConfigError for a part that the model of a row cannot have: a comparison asks for it only after its
/// trainings.
void check_parts(const PlannedVariant& variant) {
  const auto& model = variant.experiment.model;
  for (const auto& name : variant.ablation->parts) {
    const auto part = ablated_part(name);
    const int64_t n_layers = part.place.side == StackSide::decoder ? model.decoder_layers() : model.n_layers;
    const int64_t last_layer = part.place.kind == ActivationKind::residual ? n_layers : n_layers - 1;
    if (part.place.layer > last_layer)
      throw ConfigError(fmt::format("{}: the model has no {}: layers count from 0, and it has {}",
                                    variant.name, part.name(), n_layers));
    if (part.head.value_or(0) >= model.n_heads)
      throw ConfigError(fmt::format("{}: the model has no {}: heads count from 0, and it has {}",
                                    variant.name, part.name(), model.n_heads));
  }
}

/// An ablated row is its model's row in everything that concerns training.
void follow_trained_rows(ComparisonPlan& plan) {
  for (auto& row : plan.variants) {
    if (!row.ablation) continue;
    const auto& of = *std::ranges::find(plan.variants, row.ablation->of, &PlannedVariant::name);
    row.experiment = of.experiment;
    row.cost = of.cost;
    row.planned = of.planned;
    row.tuned = of.tuned;
    row.baseline = of.name;
    row.slug_of_runs = of.slug;
    check_parts(row);
  }
}

}  // namespace

Experiment PlannedVariant::with_seed(int64_t seed) const {
  Experiment seeded = experiment;
  seeded.name = slug;
  seeded.training.seed = seed;
  return seeded;
}

bool is_fair(const std::vector<Notice>& notices) {
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

std::vector<std::string> slugs_of(const std::vector<Variant>& variants) {
  std::vector<std::string> slugs;
  for (const auto& variant : variants) {
    auto slug = slug_of(variant.name);
    for (int i = 2; std::ranges::find(slugs, slug) != slugs.end(); ++i)
      slug = fmt::format("{}-{}", slug_of(variant.name), i);
    slugs.push_back(std::move(slug));
  }
  return slugs;
}

ComparisonPlan make_plan(const Comparison& comparison,
                         const std::function<void(const std::string& line)>& on_message) {
  check_comparable(comparison);
  ComparisonPlan plan{.settings = comparison.settings, .sizes = comparison.sizes};
  const auto slugs = slugs_of(comparison.variants);
  for (size_t i = 0; i < slugs.size(); ++i) {
    const auto& variant = comparison.variants[i];
    PlannedVariant planned{.name = variant.name,
                           .slug = slugs[i],
                           .experiment = variant.experiment,
                           .variant = variant.variant,
                           .grid = variant.grid,
                           .size = variant.size,
                           .without_size = variant.without_size,
                           .ablation = variant.ablation};
    if (!variant.candidates.empty()) {
      for (const auto& value : variant.candidates.front().values) planned.tuned.push_back(value.key);
    }
    const auto first = std::find_if(comparison.variants.begin(), comparison.variants.end(),
                                    [&](const Variant& other) { return other.cell == variant.cell; });
    if (first->name != variant.name) planned.baseline = first->name;
    for (const auto& finished : variant.finished) {
      planned.runs.push_back(finished.dir);
      planned.trained.push_back(finished.source.empty() ? finished.dir : finished.source);
      planned.seeds.push_back(finished.seed);
    }
    if (planned.runs.empty()) {
      for (int64_t seed = 1; seed <= plan.settings.seeds; ++seed) planned.seeds.push_back(seed);
    }
    plan.variants.push_back(std::move(planned));
  }
  check_lengths(plan);
  Tasks tasks(on_message);
  match_sizes(plan, tasks);
  apply_budget(plan, comparison, tasks);
  follow_trained_rows(plan);
  check_fairness(plan);
  return plan;
}

}  // namespace zoo
