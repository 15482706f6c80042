#pragma once
// Reads the results of a comparison over several tasks for its reports; docs/comparison.md describes them.

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

inline constexpr std::string_view kTasksSchema = "transformer-zoo/tasks/1";

/// Whether a document says that it is of several tasks.
bool has_several_tasks(const nlohmann::ordered_json& results);

/// Checks that a report can be made: the schema, the tasks with their rows, the rows over all tasks. Anything
/// else may be missing or null. Throws DataError.
void check_task_results(const nlohmann::ordered_json& results);

}  // namespace zoo
