#pragma once
// Plans a comparison before anything is trained: matches sizes, turns budgets into steps, and finds
// everything that would make it unfair.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comparison/planning/budget.h"
#include "comparison/planning/comparison_config.h"
#include "models/families/model_cost.h"

namespace zoo {

/// The subject of a notice that a reader must know before trusting the table.
enum class NoticeKind { data, tokenizer, evaluation, budget, seeds, training, failure };
constexpr auto config_names(NoticeKind) {
  return std::to_array<std::string_view>(
      {"data", "tokenizer", "evaluation", "budget", "seeds", "training", "failure"});
}
struct Notice {
  NoticeKind kind;
  std::string text;
};

/// Whether no notice says that data, tokenizer, evaluation, budget or seeds are not the same for all.
bool is_fair(const std::vector<Notice>& notices);

struct PlannedVariant {
  std::string name;
  std::string slug;  // for file names: the name without characters that are unsuitable there
  Experiment experiment;
  /// The row that this one is compared with: the first one, or in a grid the first with the same values.
  std::optional<std::string> baseline = {};
  std::vector<std::filesystem::path> runs = {};  // finished runs in the order of `seeds`, see Variant
  std::vector<int64_t> seeds = {};
  std::string variant = {};  // see Variant, as for the next two
  std::vector<KeyValue> grid = {};
  std::string size = {}, without_size = {};
  std::vector<std::string> tuned = {};  // keys that short trainings have chosen
  ModelCost cost = {};                  // at data.sequence_length
  /// For the first seed. Absent for a budget of seconds, and without a checkpoint.
  std::optional<Consumption> planned = {};
  /// Where each of `runs` was trained: the run itself, or what it is a copy of.
  std::vector<std::filesystem::path> trained = {};
  /// See Variant. Such a row has the runs of the row `of`, and everything else of it but the names.
  std::optional<AblationConfig> ablation = {};
  std::string slug_of_runs = {};  // of the row that is trained

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
  std::vector<std::string> sizes = {};
  Budget budget = {};
  std::optional<MatchResult> match = {};
  std::vector<Notice> notices = {};
  /// Dotted keys of the configuration that differ between variants, without names and seeds.
  std::vector<std::string> differences = {};

  /// As is_fair(). The trainings have not begun, so their notices are missing.
  bool fair() const { return is_fair(notices); }
};

/// Reads the corpora and makes the tokenizers. `on_message` gets a line before a vocabulary is learnt from a
/// long text. Throws ConfigError, DataError, and UsageError where the variants cannot be compared (different
/// tasks, or no variant).
ComparisonPlan make_plan(const Comparison& comparison,
                         const std::function<void(const std::string& line)>& on_message = nullptr);

/// "pre-norm, n_layers=2" → "pre-norm-n_layers-2"
std::string slug_of(std::string_view name);
/// The slugs of all variants; equal ones get a number.
std::vector<std::string> slugs_of(const std::vector<Variant>& variants);

}  // namespace zoo
