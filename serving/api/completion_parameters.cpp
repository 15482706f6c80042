#include "serving/api/completion_parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "io/json_document.h"
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

std::vector<SequenceBias> read_biases(RequestFields& fields) {
  std::vector<SequenceBias> biases;
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
    biases.push_back({.tokens = {id}, .bias = bias.get<double>()});
  }
  return biases;
}

/// The options of a request to a model whose own ones are `of_model`.
GenerationConfig read_options(RequestFields& fields, const ApiLimits& limits, GenerationConfig of_model,
                              TextCall& call) {
  auto given = read_generation_options(fields, limits);
  if (const auto* const schema = fields.find("json_schema")) {
    if (given.has("regex")) fields.fail("json_schema", "contradicts regex: an output has one form");
    given.set("json_schema", schema->is_string() ? schema->get<std::string>() : json_text(*schema));
  }
  call.has_form = given.has("regex") || given.has("json_schema");
  auto& options = of_model;
  options.beam = 1;
  options.num_samples = 1;
  options.seed = random_seed();
  if (call.has_form) options.regex = options.json_schema = "";
  given.apply(options);
  for (auto& bias : read_biases(fields)) options.sequence_biases.push_back(std::move(bias));
  options.max_new_tokens.reset();
  return std::move(options);
}

}  // namespace

TextCall read_text_call(RequestFields& fields, const Service& service, const ApiLimits& limits) {
  TextCall call;
  call.answer.name = fields.required_text("model");
  const auto card = service.card(call.answer.name);
  call.answer.delivery = fields.flag("stream", false) ? Delivery::stream : Delivery::whole;
  if (const auto* const options = fields.find("stream_options")) {
    RequestFields inner(*options, "stream_options");
    call.answer.includes_usage = inner.flag("include_usage", false);
    inner.ignore({"include_obfuscation"});
    inner.refuse_others();
  }
  call.request.options = read_options(fields, limits, card.generation, call);
  call.request.priority =
      fields.integer("priority", Limits::between(-kMostPriority, kMostPriority)).value_or(0);
  fields.ignore({"user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"});
  return call;
}

void set_max_tokens(GenerationConfig& options, int64_t most) {
  options.max_new_tokens = most;
  options.min_new_tokens = std::min(options.min_new_tokens, std::max<int64_t>(most, 1));
}

}  // namespace zoo
