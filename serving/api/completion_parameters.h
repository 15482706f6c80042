#pragma once
// Reads the parameters that requests for completions, for chat and for responses share.

#include "serving/api/api_limits.h"
#include "serving/api/completion_answer.h"
#include "serving/api/request_fields.h"
#include "serving/completion.h"
#include "serving/service.h"

namespace zoo {

/// A request for texts as it was sent: what the model is asked for, and how the answer is written.
struct TextCall {
  /// It has no prompts yet. The model's own configuration gives the values that a client left out, but for
  /// max_new_tokens, whose key each route reads itself, and for the seed, which is drawn at random.
  CompletionRequest request = {};
  AnswerPlan answer = {};
  bool has_form = false;  // whether the request itself says which form an output has
};

/// Reads the keys of all. Throws ApiError, and ServiceError if there is no such model.
TextCall read_text_call(RequestFields& fields, const Service& service, const ApiLimits& limits);

/// Sets the most tokens of an output. Rules that want more than there may be want as many as there may be.
void set_max_tokens(GenerationConfig& options, int64_t most);

}  // namespace zoo
