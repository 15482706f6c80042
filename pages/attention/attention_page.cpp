#include "pages/attention/attention_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/error.h"
#include "pages/attention/image_attention_page.h"
#include "pages/page_template.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char attention_page[];
}  // namespace embedded

namespace {

constexpr int64_t kMostWeights = 20'000'000;  // a page of about 50 MB, which browsers load slowly

/// "[12,0,987]", row after row.
void append_map(std::string& out, const torch::Tensor& weights) {
  const auto values = weights.to(torch::kFloat32).contiguous();
  const std::span<const float> cells(values.const_data_ptr<float>(), static_cast<size_t>(values.numel()));
  char separator = '[';
  for (const float weight : cells) {
    fmt::format_to(std::back_inserter(out), "{}{}", separator,
                   std::lround(std::clamp(weight, 0.0F, 1.0F) * 999.0F));
    separator = ',';
  }
  out += ']';
}

/// One map for each head.
void append_layer(std::string& out, const torch::Tensor& weights) {
  for (int64_t h = 0; h < weights.size(0); ++h) {
    out += h == 0 ? '[' : ',';
    append_map(out, weights[h]);
  }
  out += ']';
}

std::string maps_text(const std::vector<AttentionLayer>& layers) {
  std::string out = "[";
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool begins_kind = i == 0 || layers[i].kind != layers[i - 1].kind;
    if (begins_kind) {
      out += fmt::format(R"({}{{"kind":"{}","layers":[)", i == 0 ? "" : "]},", name_of(layers[i].kind));
    } else {
      out += ',';
    }
    append_layer(out, layers[i].weights);
  }
  return out + (layers.empty() ? "]" : "]}]");
}

std::string rollout_text(const std::vector<Rollout>& rollouts) {
  std::string out = "[";
  for (const auto& [kind, layer, weights] : rollouts) {
    out +=
        fmt::format(R"({}{{"kind":"{}","layer":{},"rows":)", out.size() > 1 ? "," : "", name_of(kind), layer);
    append_map(out, weights);
    out += '}';
  }
  return out + "]";
}

/// The spectrogram as integers from 0, its least number, to 255, its largest, band after band.
std::string recording_text(const AttendedRecording& recording) {
  const auto numbers = recording.spectrogram.to(torch::kFloat64);
  const auto least = numbers.min(), range = (numbers.max() - least).clamp_min(1e-9);
  const auto levels = ((numbers - least) / range * 255).round().to(torch::kInt64).flatten().contiguous();
  const std::span<const int64_t> list(levels.const_data_ptr<int64_t>(), static_cast<size_t>(levels.numel()));
  return fmt::format(R"({{"frame_seconds":{},"bands":{},"levels":[{}]}})", recording.frame_seconds,
                     numbers.size(0), fmt::join(list, ","));
}

std::string data_json(const AttentionReport& report) {
  const nlohmann::ordered_json words{{"name", report.name},
                                     {"text", report.text},
                                     {"target", report.target},
                                     {"source_tokens", report.source_tokens},
                                     {"target_tokens", report.target_tokens},
                                     {"target_next", report.target_next}};
  std::string json = as_json_text(words);
  json.pop_back();  // the closing brace
  return json + ",\"maps\":" + maps_text(report.layers) + ",\"heads\":" + to_json(head_statistics(report)) +
         ",\"rollout\":" + rollout_text(attention_rollout(report)) +
         ",\"predictions\":" + as_json_text(predictions_json(report.predictions)) +
         ",\"labels\":" + as_json_text(labels_json(report)) +
         (report.score ? ",\"score\":" + as_json_text(*report.score) : "") +
         (report.recording ? ",\"recording\":" + recording_text(*report.recording) : "") + "}";
}

void check_size(const AttentionReport& report) {
  int64_t weights = 0;
  for (const auto& layer : report.layers) weights += layer.weights.numel();
  if (weights <= kMostWeights) return;
  throw DataError(fmt::format(
      "the maps of {} tokens are {} million numbers, too many for a page: give a shorter text, or write JSON",
      report.source_tokens.size() + report.target_tokens.size(), weights / 1'000'000));
}

std::string page_title(const AttentionReport& report) {
  const std::string title = report.answers() ? report.text + " → " + report.target : report.text;
  return "Attention: " + title;
}

}  // namespace

std::string attention_page(const AttentionReport& report) {
  if (report.image) return image_attention_page(report);
  check_size(report);
  return filled_page(embedded::attention_page, page_title(report), data_json(report));
}

}  // namespace zoo
