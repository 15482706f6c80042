#pragma once
// The variants to compare, from a comparison file or from configurations and runs on the command line.

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/causes/ablation.h"
#include "analysis/causes/head_kinds.h"
#include "io/config/config_file.h"
#include "statistics/paired_test.h"
#include "tasks/experiment.h"

namespace zoo {

enum class BudgetKind { steps, tokens, flops, seconds };
constexpr auto config_names(BudgetKind) {
  return std::to_array<std::string_view>({"steps", "tokens", "flops", "seconds"});
}

/// How long every run is trained.
struct Budget {
  BudgetKind kind = BudgetKind::steps;
  /// Optimiser steps, tokens read, FLOPs of forward and backward passes, or seconds of training.
  double amount = 0;
};
/// Reads texts such as "steps=400" or "flops=1e12". Throws UsageError.
Budget parse_budget(std::string_view text);

/// The quantity that is made equal before training, by scaling widths.
enum class MatchQuantity { none, parameters, flops };
constexpr auto config_names(MatchQuantity) {
  return std::to_array<std::string_view>({"none", "parameters", "flops"});
}

/// Which combinations of the values of a grid are compared.
///   full        all of them
///   fractional  of keys with two values each, so many that the effect of each key is mixed with no other
///   key's
///               and with none of two keys together: 8 runs for 4 keys, 16 for 5 to 8, 32 for 9 to 16
///               (resolution IV; Box & Hunter 1961)
enum class Design { full, fractional };
constexpr auto config_names(Design) { return std::to_array<std::string_view>({"full", "fractional"}); }

/// One value of a key of the configuration, as the comparison file writes it.
struct KeyValue {
  std::string key, value;  // "model.n_layers", "8"
  bool operator==(const KeyValue&) const = default;
};

/// A set of values that a variant may choose for itself.
struct Candidate {
  std::string name;  // "lr=0.001"
  Experiment experiment;
  std::vector<KeyValue> values = {};
};

/// A finished run, which is evaluated and not trained.
struct FinishedRun {
  std::filesystem::path dir;
  int64_t seed = 0;  // of its training
  /// The run, or the directory in Hugging Face's form, that copy_models() copies first; empty: nothing is
  /// copied.
  std::filesystem::path source = {};
};

/// `ablate` of a variant: it is the trained model of another variant with parts replaced, and is not trained
/// itself. Either `parts` are given, or the heads are found in each trained model.
struct AblationConfig {
  std::string of;                          // the name of a variant above it
  std::vector<std::string> parts = {};     // see ablated_part()
  std::optional<HeadRole> strongest = {};  // the heads with the largest weights of this kind, in each seed
  int64_t heads = 1;                       // how many of them
  AblationBy by = AblationBy::zero;
  std::vector<int64_t> positions = {};  // empty: all
  int64_t batches = 8;  // of the validation data: what means are over, and where activations are resampled
};
void describe(ConfigVisitor& v, AblationConfig& c);

/// One row of the comparison.
struct Variant {
  std::string name;  // unique
  Experiment experiment;
  /// Its values in the grid, such as "n_layers=2"; every row is compared with the first row of its cell.
  std::string cell = {};
  /// The name under `variants`, and the row's values of the grid in the order of the file.
  std::string variant = {};
  std::vector<KeyValue> grid = {};
  /// With `sizes`: the name of the row's size, and the row's name without it.
  std::string size = {}, without_size = {};
  /// Runs that differ only in their seed, in the place of trainings; empty: `experiment` is trained.
  std::vector<FinishedRun> finished = {};
  /// Short trainings choose one of these in the place of `experiment`; empty: no choice (see tuning.h).
  std::vector<Candidate> candidates = {};
  /// The row is another row's trained models with parts replaced; `of` is the name of that row, which stands
  /// above this one.
  std::optional<AblationConfig> ablation = {};
};

/// How candidates are chosen.
struct TuneConfig {
  double share = 0.25;  // of the budget, for each short training
  int64_t seeds = 1;    // short trainings of each candidate
};
void describe(ConfigVisitor& v, TuneConfig& c);

struct BudgetConfig {
  std::optional<double> steps, tokens, flops, seconds;  // at most one
};
void describe(ConfigVisitor& v, BudgetConfig& c);
/// The configuration of one budget.
BudgetConfig config_of(const Budget& budget);

/// Settings that hold for all rows.
struct ComparisonSettings {
  std::string name = "comparison";
  std::string title, folklore, note;
  BudgetConfig budget;
  TuneConfig tune;
  int64_t seeds = 3;  // each variant is trained with the seeds 1 … seeds
  MatchQuantity match = MatchQuantity::none;
  Design design = Design::full;
  double margin = 0.01;  // see TestRules
  Correction correction = Correction::holm;
  /// Dotted keys that a fair comparison has in common, and that this one is about.
  std::vector<std::string> subject;
  std::vector<std::string> inputs;
  std::vector<int64_t> evaluate_lengths;  // language modelling: further sequence lengths to evaluate at
  double speed_seconds = 2;               // for measuring the speed of each variant; 0: not measured
  bool scaling = true;                    // measure cost against the length of the input
};
void describe(ConfigVisitor& v, ComparisonSettings& c);

struct Comparison {
  ComparisonSettings settings;
  std::vector<Variant> variants;
  std::vector<std::string> sizes = {};  // names, in the order of the file
  std::string yaml = {};                // the comparison file; empty without one
  std::string of_task = {};             // the name under `tasks`, in a comparison of several

  /// The budget in `settings.budget`, if it sets one.
  std::optional<Budget> budget() const;
};

/// Whether a YAML file is a comparison and not one configuration: it has `base`, `variants`, `grid`, `tune`,
/// `sizes` or `tasks`.
bool is_comparison_file(const std::filesystem::path& path);

/// Reads a comparison file: `base` (a configuration file, or a group of keys), `variants` (name → keys that
/// differ, or `ablate` with the keys of AblationConfig), `grid` (dotted key → list of values; every
/// combination for every variant), `tune.grid` (the same for the candidates of each variant), `sizes` (name →
/// keys; every variant at every size), and the keys of ComparisonSettings. Files are relative to the file
/// that names them. Overrides (`training.steps=10`) apply to every variant. Throws ConfigError.
Comparison load_comparison(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

/// One task of a comparison of several.
struct ComparedTask {
  std::string name;  // of its directory within that of the comparison
  Comparison comparison;
};

/// Several comparisons of the same variants, one a task.
struct TaskComparison {
  ComparisonSettings settings;
  std::vector<ComparedTask> tasks;
  std::string yaml = {};  // the comparison file
};

/// Whether a YAML file is a comparison with `tasks`.
bool is_task_comparison_file(const std::filesystem::path& path);

/// Reads a comparison file with `tasks`: names, each with a configuration file or a group of keys; or a list
/// of configuration files, which give the names. The keys of `base` and of the variants replace those of a
/// task. Everything else is as in load_comparison(), and holds for all tasks. Throws ConfigError.
TaskComparison load_task_comparison(const std::filesystem::path& path,
                                    const std::vector<std::string>& overrides = {});

/// What finished models are evaluated on in place of their own validation data: one of the two.
struct GivenData {
  std::vector<std::string> files = {};    // of their own task
  std::vector<std::string> choices = {};  // files of questions (text/choice_questions.h): the task choices
  int64_t shots = 0;                      // see ChoicesConfig
  std::vector<std::string> shots_from = {};
  std::string document_column = {};  // see DataConfig

  bool is_empty() const { return files.empty() && choices.empty(); }
};

/// A comparison of configurations and finished runs, in the given order. Runs of one configuration with
/// unequal seeds are one row. Equal names get a number. With `data`, all of them are finished runs or
/// directories in Hugging Face's form, and these files replace their validation data. Throws ConfigError,
/// CheckpointError, and UsageError for the same run twice, for a comparison file, for a directory in
/// Hugging Face's form without `data`, and for a model that gives choices no likelihood.
Comparison comparison_of(const std::vector<std::filesystem::path>& configs_and_runs,
                         const std::vector<std::string>& overrides = {}, const GivenData& data = {});

}  // namespace zoo
