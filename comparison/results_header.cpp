#include "comparison/results_header.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "base/machine.h"
#include "base/version.h"
#include "pages/report/report_document.h"
#include "tasks/task_type.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char commit[];
}  // namespace embedded

namespace {

/// A row's values of the grid. With `sizes`, the size is one of them.
std::vector<KeyValue> grid_values_of(const PlannedVariant& variant) {
  auto values = variant.grid;
  if (!variant.size.empty()) values.push_back({"size", variant.size});
  return values;
}

/// "model.n_layers" → "n_layers", unless several keys of the grid end like this.
std::string label_of(const std::string& key, const Json& grid) {
  const auto end = [](std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); };
  const auto n = std::ranges::count_if(
      grid, [&](const Json& entry) { return end(entry["key"].get_ref<const std::string&>()) == end(key); });
  return n > 1 ? key : std::string(end(key));
}

/// The keys of the grid and their values, in the order of the file.
Json grid_of(const ComparisonPlan& plan) {
  Json grid = Json::array();
  for (const auto& variant : plan.variants) {
    for (const auto& [key, value] : grid_values_of(variant)) {
      auto entry = std::ranges::find_if(grid, [&](const Json& one) { return one["key"] == key; });
      if (entry == grid.end()) {
        grid.push_back({{"key", key}, {"label", ""}, {"values", Json::array()}});
        entry = grid.end() - 1;
      }
      auto& values = (*entry)["values"];
      if (std::ranges::find(values, Json(value)) == values.end()) values.push_back(value);
    }
  }
  for (auto& entry : grid) entry["label"] = label_of(entry["key"], grid);
  return grid;
}

template <class Value, class Of>
std::vector<Value> distinct(const ComparisonPlan& plan, const Of& values_of_row) {
  std::vector<Value> all;
  for (const auto& variant : plan.variants) {
    for (const auto& value : values_of_row(variant)) {
      if (std::ranges::find(all, value) == all.end()) all.push_back(value);
    }
  }
  return all;
}

Json machine_json(c10::Device device) {
  const auto machine = machine_info();
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"threads", at::get_num_threads()},
          {"memory_bytes", machine.memory_bytes},
          {"device", device.str()},
          {"system", machine.system}};
}

Json versions_json() {
  const std::string_view commit = embedded::commit;
  return {{"transformer_zoo", version()},
          {"commit", commit.empty() ? Json() : Json(commit)},
          {"libtorch", TORCH_VERSION},
          {"compiler", __VERSION__}};
}

Json match_json(const ComparisonPlan& plan) {
  if (!plan.match) return nullptr;
  return {{"quantity", name_of(plan.match->quantity)},
          {"target", plan.match->target},
          {"spread", plan.match->spread}};
}

std::string time_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace

Json results_header(const ComparisonPlan& plan, const Metric& metric, c10::Device device,
                    const Origin& origin) {
  const auto names = [](const PlannedVariant& variant) { return std::vector{variant.variant}; };
  const auto seeds = [](const PlannedVariant& variant) { return variant.seeds; };
  return {{"schema", kResultsSchema},
          {"name", plan.settings.name},
          {"title", plan.settings.title},
          {"folklore", plan.settings.folklore},
          {"measured", ""},
          {"note", plan.settings.note},
          {"command", origin.command},
          {"yaml", origin.yaml.empty() ? Json() : Json(origin.yaml)},
          {"created", time_now()},
          {"machine", machine_json(device)},
          {"versions", versions_json()},
          {"task", plan.variants.front().experiment.task.type},
          {"unit", task_type(plan.variants.front().experiment).unit},
          {"metric",
           {{"key", metric.key},
            {"label", metric.label},
            {"better", name_of(metric.better)},
            {"percent", metric.percent}}},
          {"budget", {{"kind", name_of(plan.budget.kind)}, {"amount", plan.budget.amount}}},
          {"match", match_json(plan)},
          {"margin", plan.settings.margin},
          {"variants", distinct<std::string>(plan, names)},
          {"grid", grid_of(plan)},
          {"seeds", distinct<int64_t>(plan, seeds)}};
}

Json facts_of(const PlannedVariant& variant) {
  Json config, grid = Json::object();
  for (const auto& [key, value] : flatten(variant.experiment)) config[key] = value;
  for (const auto& [key, value] : grid_values_of(variant)) grid[key] = value;
  return {{"name", variant.name},
          {"variant", variant.variant},
          {"grid", std::move(grid)},
          {"architecture", variant.experiment.model.architecture.type},
          {"config", std::move(config)},
          {"parameters", variant.cost.parameters},
          {"sequence_length", variant.experiment.data.sequence_length},
          {"flops_per_token", variant.cost.flops_per_token},
          {"activation_bytes_per_token", variant.cost.activation_bytes_per_token},
          {"weight_bytes", variant.cost.weight_bytes},
          {"cache_bytes_per_token", variant.cost.cache_bytes_per_token},
          {"state_bytes", variant.cost.state_bytes}};
}

}  // namespace zoo
