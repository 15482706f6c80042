#include "serving/api/server_metrics.h"

#include <functional>

#include <fmt/format.h>

namespace zoo {
namespace {

std::string header(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

/// A value of a label.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

struct ModelValue {
  const char *name, *type, *help;
  std::function<int64_t(const ModelStatus&)> value;
};

std::vector<ModelValue> model_values() {
  return {{"zoo_model_loaded", "gauge", "Whether the model is in memory.",
           [](const ModelStatus& model) { return model.is_loaded ? 1 : 0; }},
          {"zoo_model_weight_bytes", "gauge", "Memory of the weights while the model is loaded.",
           [](const ModelStatus& model) { return model.card.bytes; }},
          {"zoo_model_requests_total", "counter", "Requests that were accepted.",
           [](const ModelStatus& model) { return model.counts.requests; }},
          {"zoo_model_refused_total", "counter", "Requests that were refused because too many waited.",
           [](const ModelStatus& model) { return model.counts.refused; }},
          {"zoo_model_cancelled_total", "counter", "Requests whose client went away.",
           [](const ModelStatus& model) { return model.counts.cancelled; }},
          {"zoo_model_failed_total", "counter", "Requests that ended with an error of the model.",
           [](const ModelStatus& model) { return model.counts.failed; }},
          {"zoo_model_prompt_tokens_total", "counter", "Tokens of prompts.",
           [](const ModelStatus& model) { return model.counts.prompt_tokens; }},
          {"zoo_model_output_tokens_total", "counter", "Tokens that were written.",
           [](const ModelStatus& model) { return model.counts.output_tokens; }},
          {"zoo_model_steps_total", "counter", "Steps of decoding; each adds a token to each output.",
           [](const ModelStatus& model) { return model.counts.steps; }},
          {"zoo_model_outputs_under_way", "gauge", "Outputs that grow or wait.",
           [](const ModelStatus& model) { return model.counts.waiting_or_running; }}};
}

}  // namespace

void ServerMetrics::add(const std::string& route, const AccessRecord& record) {
  constexpr double milliseconds = 1e-3;
  const double seconds = record.milliseconds * milliseconds;
  const std::scoped_lock lock(mutex_);
  ++requests_[{route, record.status}];
  auto& times = times_[route];
  ++times.n;
  times.seconds += seconds;
  for (size_t i = 0; i < kSeconds.size(); ++i) times.within[i] += seconds <= kSeconds[i] ? 1 : 0;
}

std::string ServerMetrics::text(const Service& service) const {
  std::string result;
  const auto models = service.models();
  for (const auto& [name, type, help, value] : model_values()) {
    result += header(name, type, help);
    for (const auto& model : models)
      result += fmt::format("{}{{model={}}} {}\n", name, quoted(model.card.id), value(model));
  }
  const std::scoped_lock lock(mutex_);
  result += header("zoo_http_requests_total", "counter", "Requests by route and status.");
  for (const auto& [key, n] : requests_)
    result += fmt::format("zoo_http_requests_total{{route={},status=\"{}\"}} {}\n", quoted(key.first),
                          key.second, n);
  result += header("zoo_http_request_seconds", "histogram",
                   "From the first byte of a request to the last of its answer.");
  for (const auto& [route, times] : times_) {
    for (size_t i = 0; i < kSeconds.size(); ++i) {
      result += fmt::format("zoo_http_request_seconds_bucket{{route={},le=\"{}\"}} {}\n", quoted(route),
                            kSeconds[i], times.within[i]);
    }
    result += fmt::format(
        "zoo_http_request_seconds_bucket{{route={0},le=\"+Inf\"}} {1}\n"
        "zoo_http_request_seconds_sum{{route={0}}} {2}\n"
        "zoo_http_request_seconds_count{{route={0}}} {1}\n",
        quoted(route), times.n, times.seconds);
  }
  return result;
}

}  // namespace zoo
