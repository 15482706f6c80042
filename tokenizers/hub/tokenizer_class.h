#pragma once
// Which class of transformers reads the files of a tokenizer, and its tokens.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tokenizers/hub/settings.h"

namespace zoo {

/// The class without "Fast", as AutoTokenizer finds it: by tokenizer_config.json (`config`), else by the
/// model's config.json, if it is among `files`, else by what files there are. Empty: a tokenizer.json counts
/// as it is. Throws DataError for a config.json that is not JSON, and for the tokenizer of SigLIP 2.
std::string tokenizer_class_of(const std::map<std::string, std::string>& files, const nlohmann::json& config);

/// Whether a class has a token for each character, and one that stands for a blank (wav2vec 2.0).
bool is_character_class(std::string_view type);

/// The tokens of a class, unless the files say others.
std::map<TokenRole, AddedToken> roles_of_class(std::string_view type);

/// Writes to tokenizer_config.json what class the model's config.json says, so that the tokenizer can do
/// without that file. Throws DataError as read_settings() does.
void write_down_class(std::map<std::string, std::string>& files);

}  // namespace zoo
