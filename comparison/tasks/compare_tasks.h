#pragma once
// A comparison of the same variants on several tasks: one comparison each, and a page of all.

#include <filesystem>

#include <nlohmann/json.hpp>

#include "comparison/compare.h"
#include "comparison/planning/comparison_config.h"

namespace zoo {

/// Compares on each task in DIR/NAME (see compare()), and writes DIR/results.json, DIR/report.html and
/// DIR/report.md over all. A task that fails leaves the others whole: the results say why. Returns the
/// results (comparison/tasks/task_results.h), or null where `should_stop` ended it: the same call with
/// ExistingRun::resume then goes on. `options` are those of the whole. Throws UsageError where the directory
/// is taken, and the error of the first task where all of them failed.
nlohmann::ordered_json compare_tasks(const TaskComparison& comparison, const CompareOptions& options);

/// Writes DIR/report.html and DIR/report.md from the results of several tasks, and makes DIR if need be.
/// Throws DataError where they are not as docs/comparison.md describes, SystemError.
void write_task_reports(const nlohmann::ordered_json& results, const std::filesystem::path& dir);

}  // namespace zoo
