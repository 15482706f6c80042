#pragma once
// Reads the parameters that requests for completions and for chat share.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/config/given_values.h"
#include "serving/api/api_limits.h"
#include "serving/api/request_fields.h"
#include "serving/completion.h"
#include "serving/served_model.h"

namespace zoo {

enum class Delivery { whole, stream };

/// How an answer is written, beside its texts.
struct AnswerOptions {
  std::string model = {};
  Delivery delivery = Delivery::whole;
  bool includes_usage = false;              // of a stream
  std::optional<int64_t> n_likeliest = {};  // alternatives of each token; nothing: no log-probabilities
};

/// A request for texts whose options that depend on the model are open: OpenAI's defaults are those of the
/// model's own configuration.
struct TextParameters {
  AnswerOptions answer;
  GivenValues options = {};  // keys of GenerationConfig
  std::optional<int64_t> max_tokens = {}, priority = {};
  int64_t n = 1;  // outputs of each prompt
  std::vector<std::pair<int64_t, double>> logit_bias = {};
};

/// Reads the keys of both. Throws ApiError.
TextParameters read_text_parameters(RequestFields& fields, const ApiLimits& limits);

/// The request without prompts. Its seed is drawn at random if there is none.
CompletionRequest request_of(const TextParameters& parameters, const ServedModel& model);

}  // namespace zoo
