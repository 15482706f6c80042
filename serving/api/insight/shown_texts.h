#pragma once
// Texts whose every token is shown.

#include <cstddef>
#include <string>

#include "serving/served_model.h"

namespace zoo {

/// Throws ApiError and TextTooLongError for a text of more tokens than are shown; `key` is that of the
/// request.
void require_shown_length(const ServedModel& model, const std::string& text, const char* key);
/// Throws ApiError for more tokens, such as those of a text and of the model's own answer.
void require_shown_tokens(size_t n_tokens);

}  // namespace zoo
