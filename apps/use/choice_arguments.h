#pragma once
// The options of `zoo evaluate` that ask a model questions with choices.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/run.h"
#include "tasks/task.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace zoo {

struct ChoiceArguments {
  std::vector<std::string> files;  // none: no questions are asked
  std::optional<int64_t> shots;
  std::vector<std::string> shots_from;
  std::optional<std::string> delimiter, separator;
};

/// Declares --choices, --shots, --shots-from, --delimiter and --separator. Returns the first.
CLI::Option* add_choices(CLI::App& command, ChoiceArguments& arguments);

/// The task `choices` with the run's vocabulary, whose test data are these files. Keys that no option sets
/// are those of data.choices of the run. Throws UsageError if the run's model gives texts no likelihoods, and
/// for --shots without a file.
std::unique_ptr<Task> task_of_choices(const Run& run, const ChoiceArguments& arguments);

}  // namespace zoo
