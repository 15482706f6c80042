#include "comparison/attention_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/error.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char attention_page_html[];
extern const char attention_page_css[];
extern const char attention_page_js[];
}  // namespace embedded

namespace {

constexpr int64_t kMostWeights = 20'000'000;  // about 50 MB of page: browsers manage, people wait

std::string as_json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// JSON that cannot end the <script> element around it, whatever the strings in it say.
std::string escaped_for_script(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string escaped_for_html(std::string_view text) {
  static const std::map<char, std::string_view> entities = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string result;
  for (const char c : text) {
    const auto found = entities.find(c);
    found == entities.end() ? result += c : result += found->second;
  }
  return result;
}

/// "[12,0,987]" for each head.
void append_layer(std::string& out, const torch::Tensor& weights) {
  const int64_t heads = weights.size(0), cells = weights.size(1) * weights.size(2);
  const float* value = weights.const_data_ptr<float>();
  out += '[';
  for (int64_t h = 0; h < heads; ++h) {
    out += h == 0 ? "[" : ",[";
    for (int64_t i = 0; i < cells; ++i, ++value) {
      if (i > 0) out += ',';
      fmt::format_to(std::back_inserter(out), "{}", std::lround(std::clamp(*value, 0.0F, 1.0F) * 999.0F));
    }
    out += ']';
  }
  out += ']';
}

std::string maps_json(const std::vector<AttentionLayer>& layers) {
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

std::string data_json(const AttentionReport& report) {
  const nlohmann::ordered_json words{{"name", report.name},
                                     {"text", report.text},
                                     {"target", report.target},
                                     {"source_tokens", report.source_tokens},
                                     {"target_tokens", report.target_tokens},
                                     {"target_next", report.target_next}};
  std::string json = escaped_for_script(as_json_text(words));
  json.pop_back();  // the brace that closes
  return json + ",\"maps\":" + maps_json(report.layers) + "}";
}

void check_size(const AttentionReport& report) {
  int64_t weights = 0;
  for (const auto& layer : report.layers) weights += layer.weights.numel();
  if (weights <= kMostWeights) return;
  throw DataError(fmt::format(
      "the maps of {} tokens are {} million numbers, too many for a page: give a shorter text, or --json",
      report.source_tokens.size() + report.target_tokens.size(), weights / 1'000'000));
}

std::string page_title(const AttentionReport& report) {
  std::string title = report.target_tokens.empty() ? report.text : report.text + " → " + report.target;
  title = nlohmann::json::parse(as_json_text(title)).get<std::string>();  // broken UTF-8 replaced
  return escaped_for_html("Attention: " + title);
}

}  // namespace

std::string attention_page(const AttentionReport& report) {
  check_size(report);
  const std::map<std::string_view, std::string> parts = {{"title", page_title(report)},
                                                         {"style", embedded::attention_page_css},
                                                         {"script", embedded::attention_page_js},
                                                         {"data", data_json(report)}};
  // In one pass: what is filled in is not looked at again, so a text may contain "{{data}}".
  const std::string_view source = embedded::attention_page_html;
  std::string page;
  for (size_t at = 0;;) {
    const size_t open = source.find("{{", at);
    page += source.substr(at, open == source.npos ? open : open - at);
    if (open == source.npos) return page;
    const size_t close = source.find("}}", open);
    page += parts.at(source.substr(open + 2, close - open - 2));
    at = close + 2;
  }
}

}  // namespace zoo
