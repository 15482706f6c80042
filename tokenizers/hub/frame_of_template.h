#pragma once
// What stands around a text: the member "post_processor" of a tokenizer.json.

#include <nlohmann/json.hpp>

#include "tokenizers/hub/text_frame.h"

namespace zoo {

/// The frame by TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel (none) or a Sequence of
/// them; empty for null. Throws DataError for another one, and for a template that is no frame.
TextFrame frame_of_template(const nlohmann::json& part);

}  // namespace zoo
