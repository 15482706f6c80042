#pragma once
// What is to be compared: from a comparison file, or from configurations and runs on the command line.

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "training/tasks/experiment.h"

namespace zoo {

enum class BudgetKind { steps, tokens, flops, seconds };
constexpr auto config_names(BudgetKind) {
  return std::to_array<std::string_view>({"steps", "tokens", "flops", "seconds"});
}

/// How long every run is trained.
struct Budget {
  BudgetKind kind = BudgetKind::steps;
  double amount =
      0;  // optimiser steps; tokens read; FLOPs of forward and backward passes; seconds of training
};
/// "steps=400", "flops=1e12". Throws UsageError.
Budget parse_budget(std::string_view text);

/// What is made equal before training, by scaling widths.
enum class MatchQuantity { none, parameters, flops };
constexpr auto config_names(MatchQuantity) {
  return std::to_array<std::string_view>({"none", "parameters", "flops"});
}

/// One row of the comparison.
struct Variant {
  std::string name;  // unique
  Experiment experiment;
  /// Its values of the grid, "n_layers=2"; rows of one cell are compared with the first of them.
  std::string cell = {};
  /// A finished run, which is evaluated and not trained; its seed is that of its configuration.
  std::optional<std::filesystem::path> run = {};
};

struct BudgetConfig {
  std::optional<double> steps, tokens, flops, seconds;  // at most one
};
void describe(ConfigVisitor& v, BudgetConfig& c);

/// Everything that holds for all rows.
struct ComparisonSettings {
  std::string name = "comparison";
  std::string title, folklore;
  BudgetConfig budget;
  int64_t seeds = 3;  // each variant is trained with the seeds 1 … seeds
  MatchQuantity match = MatchQuantity::none;
  std::vector<std::string> inputs;
  std::vector<int64_t> evaluate_lengths;  // language modelling: evaluated at these sequence lengths, too
  double speed_seconds = 2;               // how long the speed of each variant is measured; 0: not at all
  bool scaling = true;                    // measure cost against sequence length
};
void describe(ConfigVisitor& v, ComparisonSettings& c);

struct Comparison {
  ComparisonSettings settings;
  std::vector<Variant> variants;

  /// The one that `settings.budget` sets; nothing where it sets none.
  std::optional<Budget> budget() const;
};

/// Whether a YAML file is a comparison (it has `base`, `variants` or `grid`) rather than one configuration.
bool is_comparison_file(const std::filesystem::path& path);

/// Reads a comparison file: `base` (a configuration's file, or its keys), `variants` (name → keys that
/// differ), `grid` (dotted key → list of values; every combination of every variant), and the keys of
/// ComparisonSettings. Files are relative to the file that names them. Overrides (`training.steps=10`) apply
/// to every variant. Throws ConfigError.
Comparison load_comparison(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

/// Configurations and finished runs, in the order given. Equal names get a number. Throws ConfigError,
/// CheckpointError, UsageError (the same run twice).
Comparison comparison_of(const std::vector<std::filesystem::path>& configs_and_runs,
                         const std::vector<std::string>& overrides = {});

}  // namespace zoo
