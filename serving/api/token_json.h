#pragma once
// Tokens in answers: their texts, their log-probabilities and alternatives.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "serving/completion.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Where a token stands in a text.
enum class TokenPlace { first, later };

/// The bytes that a token adds to a text, perhaps a part of a character; none for a special token.
std::string bytes_of_token(const Tokenizer& tokenizer, int64_t id, TokenPlace place = TokenPlace::later);
/// The same as UTF-8, or the token's label if it has no text, such as "<eos>".
std::string name_of_token(const Tokenizer& tokenizer, int64_t id);

/// `text` as UTF-8: other bytes become U+FFFD.
std::string as_utf8(const std::string& text);

/// What completions call logprobs: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, and beside
/// them "token_ids" and "top", a list of {"id", "token", "logprob"} for each token, because two tokens may
/// have one text. `offset`: characters of the text before the tokens; it is moved on. A token of later
/// bytes of a character has the place of that character.
nlohmann::ordered_json completion_logprobs(const std::vector<CompletionToken>& tokens,
                                           const Tokenizer& tokenizer, int64_t& offset);

/// What chat calls logprobs: {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}, each also with its
/// "id".
nlohmann::ordered_json chat_logprobs(const std::vector<CompletionToken>& tokens, const Tokenizer& tokenizer);

}  // namespace zoo
