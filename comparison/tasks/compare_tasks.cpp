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
#include "io/files.h"
#include "io/json_document.h"
#include "pages/report/tasks_page.h"
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

}  // namespace

nlohmann::ordered_json compare_tasks(const TaskComparison& comparison, const CompareOptions& options) {
  check_directory(options.dir, options.existing);
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
    } catch (const Error& error) {
      outcome.error = error.what();
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
