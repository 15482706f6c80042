#include "pages/tables/task_document.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "pages/json.h"
#include "pages/tables/report_document.h"

namespace zoo {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw DataError("results.json: " + what + ": make it again with zoo compare");
}

/// Rows of a table, each with a name.
void check_rows(const Json& rows, const std::string& where) {
  if (!rows.is_array()) refuse(where + " is not a list");
  for (const auto& row : rows) {
    if (!member(row, "name").is_string()) refuse(where + " has a row without a name");
  }
}

void check_task(const Json& task, const std::string& where) {
  if (!member(task, "name").is_string()) refuse(where + ".name is not a text");
  check_rows(member(task, "runs"), where + ".runs");
  if (member(task, "error").is_string()) return;
  const Json& metric = member(task, "metric");
  const auto better = text_at(metric, "better");
  if (!member(metric, "label").is_string() || !member(metric, "percent").is_boolean() ||
      (better != "lower" && better != "higher"))
    refuse(where + ".metric has no label, percent and better");
  for (const auto& run : task["runs"]) {
    if (!run.contains("metric")) refuse(where + " has a row without a metric");
  }
}

}  // namespace

bool has_several_tasks(const Json& results) {
  return text_at(results, "schema").starts_with("transformer-zoo/tasks/");
}

void check_task_results(const Json& results) {
  if (!results.is_object()) refuse("it is not a JSON object");
  const auto schema = text_at(results, "schema");
  if (schema != kTasksSchema)
    refuse(fmt::format("its schema is \"{}\" instead of \"{}\"", excerpt(schema), kTasksSchema));
  if (!member(results, "name").is_string()) refuse("name is not a text");
  const Json& tasks = member(results, "tasks");
  if (!tasks.is_array() || tasks.empty()) refuse("tasks is no list of tasks");
  for (size_t i = 0; i < tasks.size(); ++i) check_task(tasks[i], fmt::format("tasks[{}]", i));
  check_rows(member(results, "overall"), "overall");
}

}  // namespace zoo
