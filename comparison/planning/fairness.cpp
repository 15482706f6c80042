#include "comparison/planning/fairness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/named_enum.h"
#include "comparison/planning/plan.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

using Values = std::map<std::string, std::string>;  // dotted key → value, of one configuration

Values values_of(const Experiment& experiment) {
  Values values;
  for (auto& [key, value] : flatten(experiment)) values.emplace(std::move(key), std::move(value));
  return values;
}

/// The value of a key; a key of a group that a configuration leaves out has none, as if it were null.
std::string value_of(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "null" : found->second;
}

/// The notice for a key that must be the same for all; nothing for a key that may differ.
std::optional<NoticeKind> promise_of(std::string_view key) {
  if (key.starts_with("data.tokenizer.")) return NoticeKind::tokenizer;
  if (key == "init_from") return NoticeKind::data;  // the initial weights have seen data
  // An encoder-decoder and a decoder make different sequences of the same texts.
  if (key == "data.bucket_by_length") return std::nullopt;
  constexpr auto evaluation = std::to_array<std::string_view>(
      {"data.valid", "data.valid_fraction", "data.test", "data.sequence_length", "data.target_length",
       "data.prefix_length", "data.mask_probability", "data.mask_replace", "data.mask_random",
       "training.evaluate_batches", "training.best_by"});
  if (std::find(evaluation.begin(), evaluation.end(), key) != evaluation.end()) return NoticeKind::evaluation;
  if (key.starts_with("data.choices.")) return NoticeKind::evaluation;
  if (key.starts_with("data.")) return NoticeKind::data;
  return std::nullopt;
}

/// check_budgets() reports these keys.
bool is_of_budget(std::string_view key) { return key == "training.steps" || key == "training.max_seconds"; }

/// The keys that differ, without those that do not change what is learnt or that follow from the budget.
std::vector<std::string> differing_keys(const std::vector<Values>& all, BudgetKind budget) {
  std::vector<std::string> keys;
  const auto ignored = [&](const std::string& key) {
    constexpr auto names = std::to_array<std::string_view>(
        {"name", "training.seed", "training.evaluate_every", "training.evaluate_at_start",
         "training.checkpoint_every", "training.log_every"});
    return key.starts_with("generation.") || std::find(names.begin(), names.end(), key) != names.end() ||
           (is_of_budget(key) && budget != BudgetKind::steps);
  };
  std::set<std::string> names;
  for (const auto& values : all)
    for (const auto& [key, value] : values) names.insert(key);
  for (const auto& key : names) {
    const auto differs = [&](const Values& other) {
      return value_of(other, key) != value_of(all.front(), key);
    };
    if (!ignored(key) && std::any_of(all.begin(), all.end(), differs)) keys.push_back(key);
  }
  return keys;
}

/// "data.train: fortunes (encoder), wikitext-2 (decoder, gpt)"
std::string who_has_what(const std::string& key, const std::vector<PlannedVariant>& variants,
                         const std::vector<Values>& values) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (size_t i = 0; i < variants.size(); ++i) {
    const auto value = value_of(values[i], key);
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

/// The keys of a grid are the subject of the comparison.
bool is_of_grid(const std::string& key, const ComparisonPlan& plan) {
  return std::ranges::any_of(plan.variants.front().grid, [&](const KeyValue& one) { return one.key == key; });
}

bool is_subject(const std::string& key, const ComparisonPlan& plan) {
  return std::ranges::count(plan.settings.subject, key) > 0;
}

/// Throws ConfigError for a subject in which the variants do not differ.
void check_subject(const ComparisonPlan& plan) {
  for (const auto& key : plan.settings.subject) {
    if (std::ranges::count(plan.differences, key) == 0) {
      throw ConfigError(fmt::format(
          "subject: {}: the variants do not differ in this key; name one in which they do, such as init_from",
          key));
    }
  }
}

/// Every run has chosen its own value of a tuned key, in the same way.
bool is_tuned(const std::string& key, const ComparisonPlan& plan) {
  return std::ranges::any_of(plan.variants,
                             [&](const auto& variant) { return std::ranges::count(variant.tuned, key) > 0; });
}

void check_configurations(ComparisonPlan& plan) {
  std::vector<Values> values;
  for (const auto& variant : plan.variants) values.push_back(values_of(variant.experiment));
  plan.differences = differing_keys(values, plan.budget.kind);
  check_subject(plan);
  std::vector<std::string> training;
  for (const auto& key : plan.differences) {
    if (is_subject(key, plan)) {
      plan.notices.push_back(
          {NoticeKind::training, fmt::format("The subject: {}", who_has_what(key, plan.variants, values))});
    } else if (const auto kind = promise_of(key)) {
      plan.notices.push_back(
          {*kind, fmt::format("Not the same for all: {}", who_has_what(key, plan.variants, values))});
    } else if (key.starts_with("training.") && !is_of_budget(key) && !is_of_grid(key, plan) &&
               !is_tuned(key, plan)) {
      training.push_back(key);
    }
  }
  if (!training.empty()) {
    plan.notices.push_back(
        {NoticeKind::training, fmt::format("Not trained in the same way: {}", fmt::join(training, ", "))});
  }
}

bool nearly_equal(double a, double b, double tolerance = 0.005) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

/// "20 (a), 200 (b)", only the first few.
std::string listed(std::vector<std::string> list) {
  constexpr size_t most = 6;
  if (list.size() > most) {
    list.resize(most);
    list.emplace_back("…");
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

/// How much of a budget of this kind a run uses.
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

/// Whether a finished run used this budget. Tokens and FLOPs may be off by one step, as a training ends with
/// a whole step.
bool keeps_to(const Budget& budget, const PlannedVariant& run) {
  const double amount = used(run, budget.kind);
  const double step = amount / static_cast<double>(std::max<int64_t>(1, run.planned->steps));
  const bool whole = budget.kind == BudgetKind::tokens || budget.kind == BudgetKind::flops;
  return nearly_equal(amount, budget.amount) || (whole && std::abs(amount - budget.amount) <= step);
}

void check_finished_runs(ComparisonPlan& plan) {
  std::vector<std::string> unknown, other;
  for (const auto& variant : plan.variants) {
    if (variant.runs.empty()) continue;
    if (!variant.planned) {
      unknown.push_back(variant.name);
    } else if (plan.budget.kind != BudgetKind::steps && !keeps_to(plan.budget, variant)) {
      other.push_back(fmt::format("{:.6g} ({})", used(variant, plan.budget.kind), variant.name));
    }
  }
  if (!unknown.empty()) {
    plan.notices.push_back({NoticeKind::budget,
                            fmt::format("No checkpoint shows how long it was trained: {}", listed(unknown))});
  }
  if (!other.empty()) {
    plan.notices.push_back({NoticeKind::budget, fmt::format("Not trained for the {} of the budget: {}",
                                                            name_of(plan.budget.kind), listed(other))});
  }
}

/// Equal steps may hide unequal numbers of tokens.
void check_steps(ComparisonPlan& plan) {
  // An encoder reads one special token more of each text than a decoder.
  constexpr double special_tokens = 0.02;
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
                                   static_cast<double>(first->planned->tokens), special_tokens);
  }
  const auto say = [&](std::string_view what, const std::vector<std::string>& list) {
    plan.notices.push_back({NoticeKind::budget, fmt::format("{}: {}", what, listed(list))});
  };
  if (steps_differ) say("Trained for unequal numbers of steps", steps);
  if (!steps_differ && tokens_differ && first) {
    say(fmt::format("The same number of steps, but not of {}s", task_type(first->experiment).unit), tokens);
  }
}

/// training.max_seconds may end a training before its steps, so it must be the same for all.
void check_time(ComparisonPlan& plan) {
  std::vector<std::string> list;
  std::set<std::optional<double>> limits;
  for (const auto& variant : plan.variants) {
    if (!variant.runs.empty()) continue;  // its consumption is known
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

/// A budget changes the steps but not the schedule, so the warm-up may become longer than the training.
void check_schedules(ComparisonPlan& plan) {
  std::vector<std::string> list;
  for (const auto& variant : plan.variants) {
    const int64_t warmup = variant.experiment.training.schedule.warmup_steps;
    if (variant.planned && warmup > 0 && warmup >= variant.planned->steps)
      list.push_back(fmt::format("{} of {} ({})", warmup, variant.planned->steps, variant.name));
  }
  if (!list.empty()) {
    plan.notices.push_back(
        {NoticeKind::training, fmt::format("training.schedule.warmup_steps covers all steps, so the learning "
                                           "rate never leaves the warm-up: {}",
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

/// "the strongest induction head", "the 2 strongest induction heads", "1.0 and layers.1.feed_forward"
std::string parts_text(const AblationConfig& ablation) {
  if (!ablation.strongest) return fmt::format("{}", fmt::join(ablation.parts, ", "));
  auto role = std::string(name_of(*ablation.strongest));
  std::ranges::replace(role, '_', '-');
  return ablation.heads == 1 ? fmt::format("the strongest {} head of each seed", role)
                             : fmt::format("the {} strongest {} heads of each seed", ablation.heads, role);
}

/// Nobody may take an ablation for a training.
void note_ablations(ComparisonPlan& plan) {
  for (const auto& variant : plan.variants) {
    if (!variant.ablation) continue;
    const auto& ablation = *variant.ablation;
    const auto place = ablation.by == AblationBy::zero   ? "zeros"
                       : ablation.by == AblationBy::mean ? "means over validation data"
                                                         : "activations of other rows";
    auto text = fmt::format("{} is not trained: it is each trained {} with {} in the place of {}",
                            variant.name, ablation.of, place, parts_text(ablation));
    if (!ablation.positions.empty())
      text += fmt::format(", at the positions {}", fmt::join(ablation.positions, ", "));
    plan.notices.push_back({NoticeKind::training, std::move(text)});
  }
}

}  // namespace

void check_fairness(ComparisonPlan& plan) {
  check_configurations(plan);
  check_budgets(plan);
  check_schedules(plan);
  check_seeds(plan);
  note_ablations(plan);
}

}  // namespace zoo
