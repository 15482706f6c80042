#include "serving/api/completion_parameters.h"

#include <charconv>
#include <random>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/api/api_error.h"

namespace zoo {
namespace {

constexpr size_t kMostStops = 16, kMostStopBytes = 1000, kMostBiases = 1000;
constexpr int64_t kMostPriority = 1'000'000;

/// Numbers of JavaScript are exact up to 2^53.
int64_t random_seed() {
  std::random_device source;
  constexpr uint64_t exact = (uint64_t{1} << 53) - 1;
  return static_cast<int64_t>((uint64_t{source()} << 32 | source()) & exact);
}

std::vector<std::pair<int64_t, double>> read_biases(RequestFields& fields) {
  std::vector<std::pair<int64_t, double>> biases;
  const auto* const value = fields.find("logit_bias");
  if (!value) return biases;
  constexpr double most = 100;
  if (!value->is_object() || value->size() > kMostBiases)
    fields.fail("logit_bias", fmt::format("must be an object of at most {} token ids", kMostBiases));
  for (const auto& [key, bias] : value->items()) {
    int64_t id = -1;
    const char* const end = key.data() + key.size();
    const auto read = std::from_chars(key.data(), end, id);
    if (read.ec != std::errc() || read.ptr != end || id < 0)
      fields.fail("logit_bias", "must have ids of tokens as keys, such as \"42\"");
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= most))
      fields.fail("logit_bias", "must have numbers from -100 to 100 as values");
    biases.emplace_back(id, bias.get<double>());
  }
  return biases;
}

}  // namespace

TextParameters read_text_parameters(RequestFields& fields, const ApiLimits& limits) {
  constexpr double most_penalty = 100, most_temperature = 1e6;
  TextParameters read;
  read.answer.model = fields.required_text("model");
  read.answer.delivery = fields.flag("stream", false) ? Delivery::stream : Delivery::whole;
  if (const auto* const options = fields.find("stream_options")) {
    RequestFields inner(*options, "stream_options");
    read.answer.includes_usage = inner.flag("include_usage", false);
    inner.ignore({"include_obfuscation"});
    inner.refuse_others();
  }
  read.max_tokens = fields.integer("max_tokens", 0, limits.most_tokens);
  read.n = fields.integer("n", 1, limits.most_outputs);
  read.seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  read.temperature = fields.number("temperature", 0, most_temperature);
  read.top_p = fields.number("top_p", 0, 1);
  if (read.top_p == 0.0) fields.fail("top_p", "must be above 0");
  read.presence_penalty = fields.number("presence_penalty", -most_penalty, most_penalty);
  read.frequency_penalty = fields.number("frequency_penalty", -most_penalty, most_penalty);
  read.stop = fields.texts("stop", kMostStops).value_or(std::vector<std::string>());
  for (const auto& stop : read.stop) {
    if (stop.empty() || stop.size() > kMostStopBytes)
      fields.fail("stop", fmt::format("must have texts of 1 to {} bytes", kMostStopBytes));
  }
  read.logit_bias = read_biases(fields);
  read.top_k = fields.integer("top_k", 0, INT64_MAX);
  read.min_p = fields.number("min_p", 0, 1);
  read.typical_p = fields.number("typical_p", 0, 1);
  if (read.typical_p == 0.0) fields.fail("typical_p", "must be above 0");
  read.repetition_penalty = fields.number("repetition_penalty", 0, 1e6);
  if (read.repetition_penalty == 0.0) fields.fail("repetition_penalty", "must be above 0");
  read.min_tokens = fields.integer("min_tokens", 0, limits.most_tokens);
  read.priority = fields.integer("priority", -kMostPriority, kMostPriority);
  read.regex = fields.text("regex").value_or("");
  if (const auto* const schema = fields.find("json_schema"))
    read.json_schema = schema->is_string() ? schema->get<std::string>() : schema->dump();
  if (!read.regex.empty() && !read.json_schema.empty())
    fields.fail("json_schema", "contradicts regex: an output has one form");
  fields.ignore({"user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"});
  return read;
}

CompletionRequest request_of(const TextParameters& parameters, const ServedModel& model) {
  CompletionRequest request{.options = model.run().experiment().generation};
  auto& options = request.options;
  const auto set = [](auto& value, const auto& given) {
    if (given) value = *given;
  };
  options.beam = 1;
  options.prompt_lookup = 0;
  options.num_samples = parameters.n.value_or(1);
  options.seed = parameters.seed ? *parameters.seed : random_seed();
  set(options.temperature, parameters.temperature);
  set(options.top_p, parameters.top_p);
  set(options.top_k, parameters.top_k);
  set(options.min_p, parameters.min_p);
  set(options.typical_p, parameters.typical_p);
  set(options.presence_penalty, parameters.presence_penalty);
  set(options.frequency_penalty, parameters.frequency_penalty);
  set(options.repetition_penalty, parameters.repetition_penalty);
  if (!parameters.stop.empty()) options.stop = parameters.stop;
  if (!parameters.regex.empty() || !parameters.json_schema.empty()) {
    options.regex = parameters.regex;
    options.json_schema = parameters.json_schema;
  }
  request.n_likeliest = parameters.answer.n_likeliest.value_or(0);
  for (const auto& [id, bias] : parameters.logit_bias) {
    request.biased_tokens.push_back(id);
    request.biases.push_back(bias);
  }
  request.max_tokens = parameters.max_tokens.value_or(16);
  request.priority = parameters.priority.value_or(0);
  options.min_new_tokens = std::min(parameters.min_tokens.value_or(options.min_new_tokens),
                                    std::max<int64_t>(request.max_tokens, 1));
  return request;
}

}  // namespace zoo
