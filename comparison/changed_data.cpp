#include "comparison/changed_data.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tasks/task_type.h"

namespace zoo {
namespace {

/// The names of the files that a hash in a training's state is about.
std::string names_of_data(const Experiment& experiment) {
  constexpr auto keys =
      std::to_array<std::string_view>({"data.train", "data.valid", "data.source", "data.target"});
  std::string names = experiment.task.type;
  for (const auto& [key, value] : flatten(experiment)) {
    if (std::ranges::find(keys, key) != keys.end()) names += fmt::format("\n{}={}", key, value);
  }
  return names;
}

struct Training {
  std::string who, data;
};

}  // namespace

std::optional<std::string> changed_data(const std::vector<PlannedVariant>& variants,
                                        const std::vector<RunResults>& runs) {
  std::map<std::string, Training> first;  // by the names of the data
  std::vector<std::string> changed;
  std::string since;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].ablation) continue;  // is not trained
    for (const auto& seed : runs[i].seeds) {
      if (!seed.state || seed.state->data.empty()) continue;
      const Training own{fmt::format("{} (seed {})", runs[i].name, seed.seed), seed.state->data};
      const auto& other = first.emplace(names_of_data(variants[i].experiment), own).first->second;
      if (other.data == own.data) continue;
      changed.push_back(own.who);
      if (since.empty()) since = other.who;
    }
  }
  if (changed.empty()) return std::nullopt;
  constexpr size_t most = 6;
  const size_t n_more = changed.size() > most ? changed.size() - most : 0;
  changed.resize(changed.size() - n_more);
  return fmt::format(
      "The files of the data have the same names, but not the same content as when {} was trained: {}{}",
      since, fmt::join(changed, ", "), n_more > 0 ? fmt::format(" and {} more", n_more) : "");
}

}  // namespace zoo
