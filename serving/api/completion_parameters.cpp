#include "serving/api/completion_parameters.h"

#include <charconv>
#include <random>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/api/api_error.h"
#include "serving/api/request_options.h"

namespace zoo {
namespace {

constexpr size_t kMostBiases = 1000;
constexpr double kMostPriority = 1e6;

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
  TextParameters read;
  read.answer.model = fields.required_text("model");
  read.answer.delivery = fields.flag("stream", false) ? Delivery::stream : Delivery::whole;
  if (const auto* const options = fields.find("stream_options")) {
    RequestFields inner(*options, "stream_options");
    read.answer.includes_usage = inner.flag("include_usage", false);
    inner.ignore({"include_obfuscation"});
    inner.refuse_others();
  }
  read.max_tokens = fields.integer("max_tokens", Limits::whole(0, limits.most_tokens));
  read.options = read_generation_options(fields, limits);
  GenerationConfig chosen;
  read.options.apply(chosen);
  read.n = chosen.num_samples;
  read.logit_bias = read_biases(fields);
  read.priority = fields.integer("priority", Limits::between(-kMostPriority, kMostPriority));
  if (const auto* const schema = fields.find("json_schema")) {
    if (read.options.has("regex")) fields.fail("json_schema", "contradicts regex: an output has one form");
    read.options.set("json_schema", schema->is_string() ? schema->get<std::string>() : json_text(*schema));
  }
  fields.ignore({"user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"});
  return read;
}

CompletionRequest request_of(const TextParameters& parameters, const ServedModel& model) {
  CompletionRequest request{.options = model.run().experiment().generation};
  auto& options = request.options;
  options.beam = 1;
  options.prompt_lookup = 0;
  options.num_samples = 1;
  options.seed = random_seed();
  if (parameters.options.has("regex") || parameters.options.has("json_schema"))
    options.regex = options.json_schema = "";
  parameters.options.apply(options);
  request.n_likeliest = parameters.answer.n_likeliest.value_or(0);
  for (const auto& [id, bias] : parameters.logit_bias) {
    request.biased_tokens.push_back(id);
    request.biases.push_back(bias);
  }
  request.max_tokens = parameters.max_tokens.value_or(16);
  request.priority = parameters.priority.value_or(0);
  options.min_new_tokens = std::min(options.min_new_tokens, std::max<int64_t>(request.max_tokens, 1));
  return request;
}

}  // namespace zoo
