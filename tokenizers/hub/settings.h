#pragma once
// What stands beside a vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/hub/added_tokens.h"
#include "tokenizers/hub/text_frame.h"

namespace zoo {

/// What a token means to transformers.
enum class TokenRole { bos, eos, unk, sep, pad, cls, mask };

struct TokenizerSettings {
  /// tokenizer_config.json; an empty object if there is none.
  nlohmann::json config = nlohmann::json::object();
  bool has_config = false;
  /// tokenizer_class without "Fast": BertTokenizer, GPT2Tokenizer …; empty for a tokenizer.json
  /// without one.
  std::string type;
  /// The tokens with a meaning: what the files say, else what this class has.
  std::map<TokenRole, AddedToken> roles;
  /// Further tokens with a name of their own, such as image_token.
  std::vector<std::pair<std::string, AddedToken>> named;
  std::vector<AddedToken> additional;
  /// Added tokens by id.
  std::map<int64_t, AddedToken> added;

  /// The tokens of `named`, then `additional`: the order in which transformers 5 gives them ids.
  std::vector<AddedToken> further_tokens() const;
  /// What becomes of the texts of special tokens (split_special_tokens).
  SpecialTexts special_texts() const;
  /// Whether the model gets segments (token_type_ids in model_input_names).
  bool gives_segments() const;
  /// Where texts that are too long are cut.
  TextEnd cut_at() const;
  /// Options of the class.
  bool flag(const char* name, bool otherwise) const;
  /// The content of the token of this role; empty if there is none.
  std::string token(TokenRole role) const;
};

/// Throws DataError for a damaged file, and for keys that are neither used nor known to change nothing.
TokenizerSettings read_settings(const std::map<std::string, std::string>& files);

/// Gives a key of tokenizer_config.json this value, whatever it was. The order of the others stays: it
/// counts.
void set_setting(std::map<std::string, std::string>& files, const char* key, const nlohmann::json& value);

/// The value of a JSON file among `files`, which must be an object; null if there is none. Throws DataError.
nlohmann::json json_file(const std::map<std::string, std::string>& files, const std::string& name);

}  // namespace zoo
