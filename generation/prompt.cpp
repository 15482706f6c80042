#include "generation/prompt.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

void check_prompt_ids(const TokenIds& ids, const Tokenizer& tokenizer, size_t index) {
  for (const int64_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    throw DataError(fmt::format("prompt {}: {} is not a token id: this vocabulary has 0 to {}", index + 1, id,
                                tokenizer.vocab_size() - 1));
  }
}

size_t most_prompt_bytes(int64_t max_length) {
  constexpr size_t least = size_t{1} << 20, bytes_per_token = 32;
  return std::max(least, static_cast<size_t>(max_length) * bytes_per_token);
}

void check_prompt_size(std::string_view text, int64_t max_length) {
  if (text.size() <= most_prompt_bytes(max_length)) return;
  throw TextTooLongError(
      fmt::format("the text has more than {} bytes, and the model reads at most {} tokens: shorten it",
                  most_prompt_bytes(max_length), max_length));
}

TokenIds encode_prompt(const Tokenizer& tokenizer, std::string_view text, const GenerativeModel& model) {
  check_prompt_size(text, model.max_length());
  auto ids = tokenizer.encode(text);
  const auto frame = tokenizer.frame();
  if (!frame || !model.continues_prompt()) return ids;
  return framed({.before = frame->before, .between = {}, .after = {}}, std::move(ids));
}

int64_t token_of_empty_prompt(const Tokenizer& tokenizer) {
  const auto& special = tokenizer.special();
  if (special.eos >= 0) return special.eos;
  if (special.bos >= 0) return special.bos;
  try {
    const auto line_break = tokenizer.encode("\n");
    if (!line_break.empty() && line_break.back() != special.unk) return line_break.back();
  } catch (const DataError&) {
    // Not in the vocabulary.
  }
  const auto meaningless = tokenizer.never_generated();
  for (int64_t id = 0;; ++id) {
    if (std::ranges::find(meaningless, id) == meaningless.end()) return id;
  }
}

TokenIds model_input(TokenIds prompt, const Tokenizer& tokenizer, const GenerativeModel& model,
                     std::string_view name) {
  return model_input(std::move(prompt), tokenizer, model, name, tokenizer.frame());
}

TokenIds model_input(TokenIds prompt, const Tokenizer& tokenizer, const GenerativeModel& model,
                     std::string_view name, const std::optional<TextFrame>& frame) {
  if (model.reads_recordings()) {
    throw UsageError(
        "this model reads recordings, not texts: give it recordings, as in zoo predict RUN --audio FILE");
  }
  if (model.continues_prompt()) {
    if (prompt.empty()) prompt.push_back(token_of_empty_prompt(tokenizer));
    return prompt;
  }
  if (frame) {
    prompt = framed(*frame, std::move(prompt));
  } else if (const int64_t eos = tokenizer.special().eos; eos >= 0) {
    prompt.push_back(eos);
  }
  // A sequence that holds the prompt also needs room for at least one token of the answer.
  const int64_t limit = model.max_length() - (model.sequence_has_prompt() ? 1 : 0);
  if (std::ssize(prompt) > limit) {
    throw TextTooLongError(
        fmt::format("{} has {} tokens with the end token, and the model reads at most {}: shorten it", name,
                    prompt.size(), limit));
  }
  return prompt;
}

TokenIds framed(const TextFrame& frame, TokenIds ids) {
  ids.insert(ids.begin(), frame.before.begin(), frame.before.end());
  ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  return ids;
}

std::string_view part_to_read(std::string_view text, int64_t max_length, TextEnd cut_at) {
  const size_t most = most_prompt_bytes(max_length);
  if (text.size() <= most) return text;
  const auto is_inside = [&](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  size_t at = cut_at == TextEnd::left ? text.size() - most : most;
  if (cut_at == TextEnd::left) {
    while (is_inside(at)) ++at;
    return text.substr(at);
  }
  while (at > 0 && is_inside(at)) --at;
  return text.substr(0, at);
}

}  // namespace zoo
