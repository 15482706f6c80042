#include "analysis/text_reading.h"

#include <torch/types.h>

#include "analysis/text_layout.h"
#include "base/error.h"
#include "generation/generator.h"

namespace zoo {
namespace {

/// The tokens of `text`; at least one.
TokenIds encode_some(const Tokenizer& tokenizer, const std::string& text, TextLayout layout) {
  auto ids = encode_text(tokenizer, text, layout);
  if (ids.empty()) throw DataError("the text has no tokens: give another text");
  return ids;
}

/// The tokens that the decoder is to write, with eos at the end. A translation that was cut off has no eos.
struct Target {
  std::string text;
  TokenIds ids;
};

Target given_target(const Tokenizer& tokenizer, const std::string& text) {
  auto ids = tokenizer.encode(text);
  ids.push_back(tokenizer.special().eos);
  return {text, ids};
}

Target written_target(Model& model, const Tokenizer& tokenizer, const TokenIds& source) {
  const Generator generator(model, tokenizer);
  const auto generations = generator.generate(std::vector<TokenIds>{source}, {.temperature = 0});
  const auto& output = generations.front().outputs.front();
  return {output.text, output.ids};
}

TokenBatch one_row(const TokenIds& ids) {
  return {.ids = torch::tensor(ids, torch::kInt64).unsqueeze(0), .lengths = {}};
}

}  // namespace

std::vector<std::string> labels_of(const Tokenizer& tokenizer, const TokenIds& ids) {
  std::vector<std::string> labels;
  labels.reserve(ids.size());
  for (const int64_t id : ids) labels.push_back(tokenizer.label(id));
  return labels;
}

TextReading read_text(Model& model, const Tokenizer& tokenizer, const TextRequest& request) {
  const bool two_sides = request.layout == TextLayout::source_and_target;
  const bool answers = two_sides || request.layout == TextLayout::question_and_answer;
  if (request.target && !answers)
    throw UsageError(
        "AttentionRequest::target is for a model that answers or translates, and this one does not: leave it "
        "out");

  const auto tokens = encode_some(tokenizer, request.text, request.layout);
  auto source = with_special_tokens(tokenizer, tokens, request.layout);
  TextReading reading;
  if (answers) {
    auto target =
        request.target ? given_target(tokenizer, *request.target) : written_target(model, tokenizer, tokens);
    reading.target = std::move(target.text);
    reading.target_ids = std::move(target.ids);
    if (!two_sides) source.insert(source.end(), reading.target_ids.begin(), reading.target_ids.end() - 1);
  }
  reading.source_tokens = labels_of(tokenizer, source);
  reading.batch.input = one_row(source);
  if (two_sides) {
    require_special_token(decoder_start(tokenizer.special()), "<bos>");
    TokenIds read = {decoder_start(tokenizer.special())};
    read.insert(read.end(), reading.target_ids.begin(), reading.target_ids.end() - 1);
    reading.target_tokens = labels_of(tokenizer, read);
    reading.batch.decoder = one_row(read);
  }
  return reading;
}

}  // namespace zoo
