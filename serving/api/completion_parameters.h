#pragma once
// Reads the parameters that requests for completions and for chat share.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "serving/api/request_fields.h"
#include "serving/completion.h"
#include "serving/served_model.h"

namespace zoo {

/// What a request may ask for.
struct ApiLimits {
  int64_t most_tokens = 4096;  // of one output
  int64_t most_prompts = 256;  // of a request
  int64_t most_outputs = 256;  // of a request, over all prompts
  size_t most_texts = 256;     // to embed, to classify, to translate
  size_t most_images = 16;     // to classify
  int64_t most_image_pixels = int64_t{32} << 20;
};

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
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> n, seed, top_k, min_tokens, priority;
  std::optional<double> temperature, top_p, min_p, typical_p;
  std::optional<double> presence_penalty, frequency_penalty, repetition_penalty;
  std::vector<std::string> stop = {};
  std::vector<std::pair<int64_t, double>> logit_bias = {};
  std::string regex = {}, json_schema = {};
};

/// Reads the keys of both. Throws ApiError.
TextParameters read_text_parameters(RequestFields& fields, const ApiLimits& limits);

/// The request without prompts. Its seed is drawn at random if there is none.
CompletionRequest request_of(const TextParameters& parameters, const ServedModel& model);

}  // namespace zoo
