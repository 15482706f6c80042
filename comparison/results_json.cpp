#include "comparison/results_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include <torch/types.h>

#include "analysis/attention_maps.h"
#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/error.h"
#include "comparison/scores.h"
#include "io/files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::array kAxes{"step", "tokens", "flops", "seconds"};

void add_row(Json& lists, const Json& row) {
  for (const char* axis : kAxes) lists[axis].push_back(row.value(axis, Json()));
}

/// Whether this is a row of metrics.jsonl. Whatever else a line may hold must not reach the pages.
bool is_row_of_numbers(const Json& row) {
  return row.is_object() &&
         std::ranges::all_of(row, [](const Json& value) { return value.is_number() || value.is_null(); });
}

Json empty_lists(std::initializer_list<const char*> values) {
  Json lists;
  for (const char* axis : kAxes) lists[axis] = Json::array();
  for (const char* value : values) lists[value] = Json::array();
  return lists;
}

/// Integers, 999 for a weight of 1: they keep a report with many maps small.
Json as_integers(const torch::Tensor& weights) {
  const auto whole = weights.to(torch::kFloat).clamp(0, 1).mul(999).round().to(torch::kLong).contiguous();
  return std::vector<int64_t>(whole.const_data_ptr<int64_t>(),
                              whole.const_data_ptr<int64_t>() + whole.numel());
}

Json maps_json(const AttentionReport& report) {
  Json maps = Json::array();
  for (const auto& layer : report.layers) {
    if (maps.empty() || maps.back()["kind"] != name_of(layer.kind))
      maps.push_back({{"kind", name_of(layer.kind)}, {"layers", Json::array()}});
    Json heads = Json::array();
    for (int64_t h = 0; h < layer.weights.size(0); ++h) heads.push_back(as_integers(layer.weights[h]));
    maps.back()["layers"].push_back(std::move(heads));
  }
  return maps;
}

/// The roll-out of each kind's last layer.
Json rollout_json(const AttentionReport& report) {
  Json list = Json::array();
  for (const auto& rollout : attention_rollout(report)) {
    Json entry{{"kind", name_of(rollout.kind)}, {"rows", as_integers(rollout.weights)}};
    if (!list.empty() && list.back()["kind"] == entry["kind"]) list.erase(list.end() - 1);
    list.push_back(std::move(entry));
  }
  return list;
}

Json to_json(const Speed& speed) {
  Json json{{"train_tokens_per_second", speed.train.tokens_per_second},
            {"prompt_tokens_per_second", nullptr},
            {"decode_tokens_per_second", nullptr},
            {"first_token_seconds", nullptr}};
  if (speed.prompt) json["prompt_tokens_per_second"] = speed.prompt->tokens_per_second;
  if (speed.decode) {
    json["decode_tokens_per_second"] = speed.decode->tokens_per_second;
    json["first_token_seconds"] = speed.decode->first_token_seconds;
  }
  return json;
}

}  // namespace

Json to_json(const Metrics& metrics) {
  Json json;
  for (const auto& [name, value] : metrics) json[name] = std::isfinite(value) ? Json(value) : Json();
  return json;
}

Json to_json(const Interval& interval) {
  return {{"mean", interval.mean},
          {"low", or_null(interval.low)},
          {"high", or_null(interval.high)},
          {"deviation", or_null(interval.deviation)},
          {"n", interval.n}};
}

Json to_json(const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const auto& sample : samples)
    list.push_back(
        {{"input", sample.input}, {"output", sample.output}, {"reference", or_null(sample.reference)}});
  return list;
}

Json speeds_json(const std::vector<Speed>& measured) {
  Json json = to_json(median_of(measured));
  Json ranges = Json::object();
  for (const auto& [key, median] : json.items()) {
    if (!median.is_number()) continue;
    double least = median, largest = median;
    for (const auto& speed : measured) {
      const double value = to_json(speed)[key];
      least = std::min(least, value);
      largest = std::max(largest, value);
    }
    ranges[key] = {least, largest};
  }
  json["ranges"] = std::move(ranges);
  return json;
}

Curves read_curves(const fs::path& run_dir, const Metric& metric) {
  Curves curves{.valid = empty_lists({"valid_loss", "metric"}),
                .train = empty_lists({"train_loss", "grad_norm", "lr"})};
  if (!is_there(run_dir / "metrics.jsonl")) return curves;  // killed before its first row
  const std::string text = read_json_text(run_dir / "metrics.jsonl");
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const auto line = std::string_view(text).substr(begin, end - begin);
    if (!line.starts_with('{')) continue;  // to parse what is no row takes long
    const auto row = ordered_json_or_null(line);
    if (!is_row_of_numbers(row)) continue;
    if (row.contains("valid_loss")) {
      add_row(curves.valid, row);
      curves.valid["valid_loss"].push_back(row["valid_loss"]);
      curves.valid["metric"].push_back(value_of(metric, row, "valid_"));
    } else if (row.contains("train_loss")) {
      add_row(curves.train, row);
      for (const char* key : {"train_loss", "grad_norm", "lr"})
        curves.train[key].push_back(row.value(key, Json()));
    }
  }
  return curves;
}

Json attention_json(const Run& run, const std::string& text) {
  const auto report = attention_report(run, text);
  return {{"text", report.text},
          {"target", report.answers() ? Json(report.target) : Json()},
          {"source_tokens", report.source_tokens},
          {"target_tokens", report.target_tokens},
          {"target_next", report.target_next},
          {"maps", maps_json(report)},
          {"heads", Json::parse(to_json(head_statistics(report)))},
          {"rollout", rollout_json(report)}};
}

}  // namespace zoo
