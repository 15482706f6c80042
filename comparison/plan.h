#pragma once
// What a comparison will train, decided before anything is trained: sizes matched, budgets turned into steps,
// and everything found that would make it unfair.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comparison/budget.h"
#include "comparison/comparison_config.h"
#include "models/cost.h"

namespace zoo {

/// What a reader must know before believing the table.
enum class NoticeKind { data, tokenizer, evaluation, budget, seeds, training, failure };
constexpr auto config_names(NoticeKind) {
  return std::to_array<std::string_view>(
      {"data", "tokenizer", "evaluation", "budget", "seeds", "training", "failure"});
}
struct Notice {
  NoticeKind kind;
  std::string text;
};

struct PlannedVariant {
  std::string name;
  std::string slug;  // of its files: the name without what a file name should not have
  Experiment experiment;
  /// The row that this one is compared with: the first one, in a grid the first with the same values.
  std::optional<std::string> baseline = {};
  std::optional<std::filesystem::path> run = {};  // a finished run, see Variant
  std::vector<int64_t> seeds = {};
  ModelCost cost = {};  // at data.sequence_length
  /// By the first seed, or by a finished run; unknown for a budget of seconds and without a checkpoint.
  std::optional<Consumption> planned = {};

  /// The configuration of one seed.
  Experiment with_seed(int64_t seed) const;
};

struct MatchResult {
  MatchQuantity quantity = MatchQuantity::none;
  double target = 0;
  double spread = 0;  // largest relative deviation
};

struct ComparisonPlan {
  ComparisonSettings settings;
  std::vector<PlannedVariant> variants = {};
  Budget budget = {};
  std::optional<MatchResult> match = {};
  std::vector<Notice> notices = {};
  /// Keys of the configuration, dotted, that are not the same in all variants; names and seeds left out.
  std::vector<std::string> differences = {};

  /// Whether data, tokenizer, evaluation, budget and seeds are the same for all.
  bool fair() const;
};

/// Reads the corpora and makes the tokenizers. Throws ConfigError, DataError; UsageError where the variants
/// have nothing that can be compared (different tasks, fewer than one).
ComparisonPlan make_plan(const Comparison& comparison);

/// "pre-norm, n_layers=2" → "pre-norm-n_layers-2"
std::string slug_of(std::string_view name);

}  // namespace zoo
