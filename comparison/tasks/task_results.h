#pragma once
// The results of a comparison over several tasks: what each task says of each variant, and what all of them
// say together. docs/comparison.md describes the document.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "comparison/planning/comparison_config.h"

namespace zoo {

/// What one task gave: its results.json, or one line that says why it failed.
struct TaskOutcome {
  std::string name;
  nlohmann::ordered_json results = nullptr;
  std::string error = {};
};

/// The document of all tasks:
///
/// - a column for each task: the mean of each variant and its difference from its baseline, with p-values
/// that
///   are corrected for all tests of all tasks; and the noise, the difference that two equal variants
///   show once in twenty times,
/// - the mean rank and the mean standardised result of each variant: for each task (value - mean) / deviation
///   over all variants and seeds, where more is better; a verdict over all tasks from a paired t-test over
///   seeds of the mean over tasks. Every seed counts that was trained to the end.
///
/// `command` reproduces the comparison.
nlohmann::ordered_json task_results(const TaskComparison& comparison,
                                    const std::vector<TaskOutcome>& outcomes, const std::string& command);

}  // namespace zoo
