#include "comparison/protocol.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pages/tables/report_document.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

/// The values of a key of the configuration in all runs.
std::set<std::string> values_of(const Json& results, const char* key) {
  std::set<std::string> values;
  for (const auto& run : results["runs"]) values.insert(text_at(member(run, "config"), key));
  return values;
}

bool was_trained(const Json& results) {
  return std::ranges::any_of(results["runs"], [](const Json& run) {
    return std::ranges::any_of(run["seeds"],
                               [](const Json& seed) { return text_at(seed, "end") != "elsewhere"; });
  });
}

/// Whether every variant has chosen among learning rates, and none at the edge of the grid.
std::string learning_rate_gap(const Json& results) {
  const Json& tuning = member(results, "tuning");
  const std::string grid = "tune.grid: {training.optimizer.lr: [...]}";
  if (tuning.is_null()) return fmt::format("No variant has tuned its learning rate ({}).", grid);
  for (const auto& variant : tuning["variants"]) {
    if (text_at(variant, "chosen").find("lr=") == std::string::npos)
      return fmt::format("The learning rate is not among the keys that were tuned ({}).", grid);
    for (const auto& key : member(variant, "keys_at_edge")) {
      if (key.get<std::string>().ends_with("optimizer.lr"))
        return fmt::format("The best learning rate of {} is at the edge of the grid.",
                           text_at(variant, "name"));
    }
  }
  return "";
}

bool has_convolution(const std::string& mixers) {
  return mixers.find("convolution") != std::string::npos || mixers.find("delta") != std::string::npos;
}

}  // namespace

std::vector<std::string> protocol_gaps(const Json& results) {
  if (!was_trained(results)) return {};
  std::vector<std::string> gaps;
  if (auto gap = learning_rate_gap(results); !gap.empty()) gaps.push_back(std::move(gap));
  constexpr size_t least_seeds = 3;
  if (const auto n = member(results, "seeds").size(); n < least_seeds)
    gaps.push_back(fmt::format("There {} {} seed{}, where three are the least.", n == 1 ? "is" : "are", n,
                               n == 1 ? "" : "s"));
  if (member(results, "sizes").is_null())
    gaps.emplace_back("There is one size of each variant: an order of two may turn at another size (sizes).");
  if (values_of(results, "training.schedule.type").contains("constant"))
    gaps.emplace_back(
        "The learning rate is not cooled down (training.schedule: constant), which changes the order of "
        "variants.");
  const auto mixers = values_of(results, "model.attention");
  if (mixers.size() > 1 && std::ranges::none_of(mixers, has_convolution))
    gaps.emplace_back(
        "The mixers differ, and none has a short convolution, which explains much of what new mixers gain.");
  return gaps;
}

}  // namespace zoo
