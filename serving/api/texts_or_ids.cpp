#include "serving/api/texts_or_ids.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/text_layout.h"
#include "base/error.h"
#include "generation/prompt.h"
#include "serving/api/route.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

bool are_ids(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::ranges::all_of(list, [](const Json& id) { return whole_number_in(id).has_value(); });
}

TokenIds ids_in(const Json& list) {
  TokenIds ids;
  for (const auto& id : list) ids.push_back(*whole_number_in(id));
  return ids;
}

}  // namespace

TextsOrIds read_texts_or_ids(RequestFields& fields, const std::string& key, size_t most) {
  const auto& value = fields.required(key);
  TextsOrIds inputs;
  if (value.is_string()) {
    inputs.texts.push_back(value.get<std::string>());
  } else if (are_ids(value)) {
    inputs.ids.push_back(ids_in(value));
  } else if (value.is_array() && !value.empty() && std::ranges::all_of(value, are_ids)) {
    for (const auto& list : value) inputs.ids.push_back(ids_in(list));
  } else if (value.is_array() && !value.empty() &&
             std::ranges::all_of(value, [](const Json& text) { return text.is_string(); })) {
    inputs.texts = value.get<std::vector<std::string>>();
  } else {
    fields.fail(key, "must be a text, a list of texts, a list of token ids, or a list of such lists");
  }
  if (inputs.size() > most)
    fields.fail(key, fmt::format("has {} texts, and may have {}", inputs.size(), most));
  return inputs;
}

int64_t n_tokens_read(const ServedModel& model, const std::string& text) {
  const auto& experiment = model.run().experiment();
  const auto& type = task_type(experiment);
  const int64_t most = experiment.data.sequence_length;
  const auto layout = type.layout ? type.layout(experiment) : TextLayout::tokens;
  const auto n = std::ssize(encode_text(model.tokenizer(), part_to_read(text, most), layout));
  return std::min(most, n + n_special_tokens(model.tokenizer(), layout));
}

void require_length(size_t n_tokens, int64_t most, const std::string& name) {
  if (static_cast<int64_t>(n_tokens) <= most) return;
  throw RefusedTexts(
      fmt::format("{} has {} tokens, and the model reads {}: shorten it", name, n_tokens, most),
      static_cast<int64_t>(n_tokens));
}

}  // namespace zoo
