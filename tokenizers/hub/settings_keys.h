#pragma once
// The keys of tokenizer_config.json and special_tokens_map.json: which are used, and which change nothing.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

/// The files that hold the tokens of a directory.
enum class VocabularyFiles { tokenizer_json, older };

/// Throws DataError for a key that is neither used nor known to change nothing, and for one that asks for
/// something that is not supported. `type`: of the tokenizer's class, without "Fast".
void check_tokenizer_keys(const nlohmann::json& config, std::string_view type, VocabularyFiles files);
/// The same for special_tokens_map.json, which holds tokens alone.
void check_token_map_keys(const nlohmann::json& map);

/// Whether transformers 5 takes the value of this key for a token: "image_token": "<image>".
bool names_token(std::string_view key, const nlohmann::json& value);

/// The members of the object in `text`, and those of the objects in it, in the order of the text. (An object
/// in its order takes time that grows with the square of its size.)
struct OrderedKey {
  std::string object;  // the key of the object it is in; empty: the outermost one
  std::string key;
};
std::vector<OrderedKey> keys_in_order(std::string_view text);

}  // namespace zoo
