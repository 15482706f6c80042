#include "comparison/tasks/compare_tasks.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "comparison/planning/comparison_directory.h"
#include "comparison/tasks/task_results.h"
#include "costs/random_data.h"
#include "io/files.h"
#include "io/json_document.h"
#include "pages/report/tasks_page.h"
#include "pages/tables/report_document.h"
#include "pages/tables/task_markdown.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Throws UsageError if `dir` holds something else than a comparison of these tasks.
void check_directory(const fs::path& dir, ExistingRun existing) {
  check_is_free(dir, existing);
  std::error_code ignored;
  if (fs::exists(dir / "runs", ignored))
    throw UsageError(
        fmt::format("{}: holds a comparison of one task: choose another directory", dir.string()));
  check_reports(dir);
}

/// Throws DataError for a task whose files are not there, before another one is trained for hours.
void check_data(const TaskComparison& comparison) {
  for (const auto& [name, of_task] : comparison.tasks) {
    for (const auto& variant : of_task.variants) {
      auto of_valid = variant.experiment;
      if (!of_valid.data.valid.empty()) of_valid.data.train = of_valid.data.valid;
      for (const auto& experiment : {variant.experiment, of_valid}) {
        if (const auto missing = missing_data(experiment))
          throw DataError(fmt::format("task {}: {}", name, *missing));
      }
    }
  }
}

/// Throws TrainingError, which says why, where all trainings of a task failed.
void check_has_a_result(const nlohmann::ordered_json& results) {
  if (has_a_result(results)) return;
  std::string why = "the metric is no number";
  for (const auto& notice : results["notices"]) {
    if (text_at(notice, "kind") == "failure") {
      why = text_at(notice, "text");
      break;
    }
  }
  throw TrainingError(fmt::format("no run has a result: {}", why));
}

}  // namespace

nlohmann::ordered_json compare_tasks(const TaskComparison& comparison, const CompareOptions& options) {
  check_directory(options.dir, options.existing);
  check_data(comparison);
  make_directory(options.dir);
  std::vector<TaskOutcome> outcomes;
  std::exception_ptr first_error;
  for (const auto& [name, of_task] : comparison.tasks) {
    auto own = options;
    own.dir = options.dir / name;
    if (options.on_message) {
      options.on_message(fmt::format("task {}", name));
      own.on_message = [&, task = name](const std::string& line) {
        options.on_message(fmt::format("{}: {}", task, line));
      };
    }
    auto& outcome = outcomes.emplace_back(TaskOutcome{.name = name});
    try {
      outcome.results = compare(of_task, own);
      if (outcome.results.is_null()) return nullptr;
      check_has_a_result(outcome.results);
    } catch (const Error& error) {
      outcome.results = nullptr;
      outcome.error = options.word_error ? options.word_error(error.what()) : error.what();
      if (!first_error) first_error = std::current_exception();
      if (options.on_message) options.on_message(fmt::format("{}: {}", name, error.what()));
    }
  }
  const bool all_failed =
      std::ranges::all_of(outcomes, [](const TaskOutcome& outcome) { return outcome.results.is_null(); });
  if (all_failed) std::rethrow_exception(first_error);
  auto results = task_results(comparison, outcomes, options.command);
  write_file_atomically(options.dir / "results.json", json_text(results, 1) + "\n");
  write_task_reports(results, options.dir);
  return results;
}

void write_task_reports(const nlohmann::ordered_json& results, const fs::path& dir) {
  write_report_files(dir, tasks_page(results), task_markdown(results));
}

}  // namespace zoo
