#pragma once
// Vocabularies of tiktoken (https://github.com/openai/tiktoken): lines of a token in Base64, a blank, and its
// rank, which is its id.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace zoo {

/// Whether a file looks like one. A tokenizer.model can be one, or a model of SentencePiece.
bool is_tiktoken_file(std::string_view content);

/// The tokenizer.json that transformers makes from such a file (TikTokenConverter). The pattern that cuts
/// texts is not in the file: the name says which one it is. Throws DataError for a damaged file.
nlohmann::json tokenizer_json_of_tiktoken(const std::string& name, std::string_view content);

}  // namespace zoo
