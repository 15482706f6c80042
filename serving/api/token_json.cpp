#include "serving/api/token_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity. OpenAI writes this number in its place.
constexpr double kLeastLogprob = -9999;

double finite(double logprob) { return std::max(logprob, kLeastLogprob); }

/// Whether a character begins with this byte.
bool is_beginning(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

Json alternatives(const CompletionToken& token, const Tokenizer& tokenizer) {
  auto list = Json::array();
  for (const auto& [id, logprob] : token.likeliest) {
    if (id >= tokenizer.vocab_size()) continue;  // a row of the output layer without a token
    list.push_back({{"id", id}, {"token", name_of_token(tokenizer, id)}, {"logprob", finite(logprob)}});
  }
  return list;
}

Json token_with_bytes(const Tokenizer& tokenizer, int64_t id, double logprob) {
  const auto bytes = bytes_of_token(tokenizer, id);
  auto numbers = Json::array();
  for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
  return {{"token", name_of_token(tokenizer, id)},
          {"logprob", finite(logprob)},
          {"bytes", std::move(numbers)},
          {"id", id}};
}

}  // namespace

std::string bytes_of_token(const Tokenizer& tokenizer, int64_t id, TokenPlace place) {
  try {
    const auto text = tokenizer.token_text(id);
    return place == TokenPlace::first ? text.first : text.later;
  } catch (const DataError&) {  // a vocabulary whose texts are not those of its tokens
    return tokenizer.decode(std::span(&id, 1));
  }
}

std::string name_of_token(const Tokenizer& tokenizer, int64_t id) {
  const auto bytes = bytes_of_token(tokenizer, id);
  return bytes.empty() ? tokenizer.label(id) : as_utf8(bytes);
}

std::string as_utf8(const std::string& text) {
  return parse_ordered_json(shown_json(Json(text))).get<std::string>();
}

Json completion_logprobs(const std::vector<CompletionToken>& tokens, const Tokenizer& tokenizer,
                         int64_t& offset) {
  auto texts = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  auto ids = Json::array(), lists = Json::array();
  for (const auto& token : tokens) {
    texts.push_back(name_of_token(tokenizer, token.id));
    logprobs.push_back(token.logprob ? Json(finite(*token.logprob)) : Json(nullptr));
    auto list = alternatives(token, tokenizer);
    auto top = Json::object();
    for (const auto& entry : list) {
      const auto& text = entry["token"].get_ref<const std::string&>();
      if (!top.contains(text)) top[text] = entry["logprob"];
    }
    tops.push_back(token.logprob ? std::move(top) : Json(nullptr));
    lists.push_back(std::move(list));
    const auto bytes =
        bytes_of_token(tokenizer, token.id, offset == 0 ? TokenPlace::first : TokenPlace::later);
    // A token that begins within a character stands where the character does.
    const bool goes_on = !bytes.empty() && !is_beginning(bytes.front());
    offsets.push_back(goes_on ? std::max<int64_t>(offset - 1, 0) : offset);
    ids.push_back(token.id);
    offset += std::ranges::count_if(bytes, is_beginning);
  }
  return {{"tokens", std::move(texts)},      {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)}, {"text_offset", std::move(offsets)},
          {"token_ids", std::move(ids)},     {"top", std::move(lists)}};
}

Json chat_logprobs(const std::vector<CompletionToken>& tokens, const Tokenizer& tokenizer) {
  auto content = Json::array();
  for (const auto& token : tokens) {
    auto entry = token_with_bytes(tokenizer, token.id, token.logprob.value_or(0));
    auto top = Json::array();
    for (const auto& [id, logprob] : token.likeliest) {
      if (id < tokenizer.vocab_size()) top.push_back(token_with_bytes(tokenizer, id, logprob));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace zoo
