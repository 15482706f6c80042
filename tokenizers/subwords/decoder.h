#pragma once
// From tokens to text: the member "decoder" of a tokenizer.json.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

/// Changes a list of tokens into a list of parts of the text.
using TokenDecoder = std::function<void(std::vector<std::string>& tokens)>;

/// ByteLevel, WordPiece, Metaspace, Replace, ByteFallback, Fuse, Strip, BPEDecoder, CTC, Sequence; nothing
/// for null (the tokens are then joined by blanks). Throws DataError for another one, nlohmann's exceptions
/// for a damaged one.
TokenDecoder make_token_decoder(const nlohmann::json& part);

/// The byte that a token such as <0xE4> stands for.
std::optional<std::string> byte_of_token(std::string_view token);

/// `text` without the blanks that English text does not have: before full stops, in "do n't", and so on
/// (clean_up_tokenization_spaces of transformers).
std::string without_needless_blanks(std::string text);
/// How many bytes at the end of such a text may change if it goes on: " n" may become "n't".
size_t bytes_of_possible_blanks(std::string_view text);

}  // namespace zoo
