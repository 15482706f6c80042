#pragma once
// The options of `zoo compare` that say which models are compared, and how.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comparison/planning/comparison_config.h"

namespace CLI {
class App;
}

namespace zoo {

struct ComparisonArguments {
  std::vector<std::filesystem::path> targets;
  std::vector<std::string> overrides;
  GivenData data;
  std::string budget;
  std::optional<int64_t> seeds;
  std::optional<MatchQuantity> match;
  bool no_speed = false;
};

void add_comparison_options(CLI::App& command, ComparisonArguments& arguments);

/// The command with these options, for a shell. The reports and results.json show it.
std::string command_of(const ComparisonArguments& arguments);
/// Reads such a command. Throws DataError for another text.
ComparisonArguments read_command(const std::string& command);

/// Reads the files that the options name. Throws the errors of load_comparison() and comparison_of(), and
/// UsageError for options that contradict each other.
Comparison read_comparison(const ComparisonArguments& arguments);
/// The same for a comparison file with `tasks`; nothing if the options name none.
std::optional<TaskComparison> read_task_comparison(const ComparisonArguments& arguments);

}  // namespace zoo
