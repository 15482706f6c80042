#include "tokenizers/hub/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"
#include "tokenizers/hub/settings_keys.h"
#include "tokenizers/hub/tokenizer_class.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/vocabulary.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

constexpr auto role_names = std::to_array<std::pair<const char*, TokenRole>>({
    {"bos_token", TokenRole::bos},
    {"eos_token", TokenRole::eos},
    {"unk_token", TokenRole::unk},
    {"sep_token", TokenRole::sep},
    {"pad_token", TokenRole::pad},
    {"cls_token", TokenRole::cls},
    {"mask_token", TokenRole::mask},
});

/// "…" or {"content": "…", …}.
AddedToken special_token(const SpecJson& value, const std::map<std::string, AddedToken>& known) {
  AddedToken token;
  if (value.is_string()) {
    token = {.content = value.get<std::string>(), .normalized = false, .special = true};
  } else {
    token = added_token(value);
    token.normalized = option(value, "normalized", true);
    token.special = true;
  }
  const auto found = known.find(token.content);
  return found == known.end() ? token : found->second;
}

bool is_role(std::string_view key) {
  return std::ranges::any_of(role_names, [&](const auto& entry) { return entry.first == key; });
}

/// The tokens beside those with a role. extra_special_tokens is an object of names and tokens, or, in
/// transformers 5, the list that older files call additional_special_tokens.
void read_further(const SpecJson& from, const std::vector<OrderedKey>& order,
                  const std::map<std::string, AddedToken>& known, TokenizerSettings& to) {
  constexpr size_t most_named = 1000;
  const auto name = [&](const std::string& key, const SpecJson& value) {
    if (value.is_null()) return;
    if (to.named.size() >= most_named) throw DataError("the tokenizer has too many tokens with names");
    std::erase_if(to.named, [&](const auto& entry) { return entry.first == key; });
    to.named.emplace_back(key, special_token(value, known));
  };
  for (const auto& key : order) {
    if (const auto value = from.find(key.key);
        key.object.empty() && value != from.end() && !is_role(key.key) && names_token(key.key, *value))
      name(key.key, *value);
  }
  for (const char* const object : {"extra_special_tokens", "model_specific_special_tokens"}) {
    const auto names = from.find(object);
    if (names == from.end() || !names->is_object()) continue;
    for (const auto& key : order) {
      if (key.object == object && names->contains(key.key)) name(key.key, names->at(key.key));
    }
  }
  const auto is_list = [](const SpecJson& value) { return value.is_array() && !value.empty(); };
  const auto extra = from.value("extra_special_tokens", SpecJson()),
             additional = from.value("additional_special_tokens", SpecJson());
  if (const auto& list = is_list(extra) ? extra : additional; !list.is_null()) {
    if (!list.is_array()) throw DataError("additional_special_tokens of the tokenizer is not a list");
    to.additional.clear();
    for (const auto& value : list) to.additional.push_back(special_token(value, known));
  }
}

/// `text`: the file that holds `from`.
void read_tokens(const SpecJson& from, std::string_view text, const std::map<std::string, AddedToken>& known,
                 TokenizerSettings& to) {
  for (const auto& [name, role] : role_names) {
    const auto value = from.find(name);
    if (value == from.end()) continue;
    if (value->is_null()) {
      to.roles.erase(role);
    } else {
      to.roles[role] = special_token(*value, known);
    }
  }
  read_further(from, keys_in_order(text), known, to);
}

int64_t id_of_key(const std::string& key) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= kMostTokenIds)
    throw DataError(fmt::format("tokenizer_config.json: '{}' is no token id", excerpt(key, 40)));
  return id;
}

void read_all(const std::map<std::string, std::string>& files, TokenizerSettings& settings) {
  if (auto config = json_file(files, "tokenizer_config.json"); !config.is_null()) {
    settings.config = std::move(config);
    settings.has_config = true;
  }
  settings.type = tokenizer_class_of(files, settings.config);
  settings.roles = roles_of_class(settings.type);
  check_tokenizer_keys(
      settings.config, settings.type,
      files.contains("tokenizer.json") ? VocabularyFiles::tokenizer_json : VocabularyFiles::older);

  std::map<std::string, AddedToken> known;
  const auto decoder = settings.config.find("added_tokens_decoder");
  const bool lists_added = decoder != settings.config.end() && !decoder->is_null();
  if (lists_added) {
    for (const auto& [key, value] : decoder->items()) {
      auto token = added_token(value);
      token.normalized = option(value, "normalized", !token.special);
      known[token.content] = token;
      settings.added[id_of_key(key)] = std::move(token);
    }
  }
  if (settings.has_config) read_tokens(settings.config, files.at("tokenizer_config.json"), known, settings);
  if (lists_added) return;
  // Older directories.
  if (const auto map = json_file(files, "special_tokens_map.json"); !map.is_null()) {
    check_token_map_keys(map);
    read_tokens(map, files.at("special_tokens_map.json"), known, settings);
  }
  if (const auto added = json_file(files, "added_tokens.json"); !added.is_null()) {
    for (const auto& [content, id] : added.items()) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMostTokenIds)
        throw DataError(
            fmt::format("added_tokens.json: the id of '{}' is out of range", excerpt(content, 40)));
      const auto is_this = [&](const AddedToken& token) { return token.content == content; };
      const bool special =
          std::ranges::any_of(settings.roles, [&](const auto& role) { return is_this(role.second); }) ||
          std::ranges::any_of(settings.additional, is_this);
      settings.added[id.get<int64_t>()] = {.content = content, .normalized = !special, .special = special};
    }
  }
}

}  // namespace

std::vector<AddedToken> TokenizerSettings::further_tokens() const {
  std::vector<AddedToken> tokens;
  for (const auto& [name, token] : named) tokens.push_back(token);
  tokens.insert(tokens.end(), additional.begin(), additional.end());
  return tokens;
}

SpecialTexts TokenizerSettings::special_texts() const {
  return flag("split_special_tokens", false) ? SpecialTexts::text : SpecialTexts::tokens;
}

bool TokenizerSettings::gives_segments() const {
  const auto names = config.find("model_input_names");
  if (names != config.end() && names->is_array())
    return std::ranges::find(*names, SpecJson("token_type_ids")) != names->end();
  // Classes without a name gave them until transformers 5.
  const bool has_no_class = type.empty() || type == "PreTrainedTokenizer" || type == "TokenizersBackend";
  return !(has_no_class && config.contains("backend"));
}

TextEnd TokenizerSettings::cut_at() const {
  const auto side = option(config, "truncation_side", "right");
  if (side != "left" && side != "right")
    throw DataError(fmt::format("tokenizer_config.json: truncation_side: '{}' is neither left nor right",
                                excerpt(side, 40)));
  return side == "left" ? TextEnd::left : TextEnd::right;
}

bool TokenizerSettings::flag(const char* name, bool otherwise) const {
  return option(config, name, otherwise);
}

std::string TokenizerSettings::token(TokenRole role) const {
  const auto found = roles.find(role);
  return found == roles.end() ? std::string() : found->second.content;
}

SpecJson json_file(const std::map<std::string, std::string>& files, const std::string& name) {
  const auto file = files.find(name);
  if (file == files.end()) return nullptr;
  try {
    auto json = parse_json(file->second);
    if (json.is_object()) return json;
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", name, e.what()));
  }
  throw DataError(fmt::format("{}: not an object in JSON", name));
}

void set_setting(std::map<std::string, std::string>& files, const char* key, const SpecJson& value) {
  constexpr const char* name = "tokenizer_config.json";
  const auto config = json_file(files, name);
  const auto entry = fmt::format("\"{}\": {}}}\n", key, json_text(value));
  auto& text = files[name];
  if (!config.is_object() || config.empty()) {
    text = "{" + entry;
  } else {
    text.replace(text.rfind('}'), text.npos, ", " + entry);  // of two equal keys the last one counts
  }
}

TokenizerSettings read_settings(const std::map<std::string, std::string>& files) {
  TokenizerSettings settings;
  try {
    read_all(files, settings);
  } catch (const SpecJson::exception& e) {
    throw DataError(
        fmt::format("tokenizer_config.json or special_tokens_map.json: damaged: {}", excerpt(e.what(), 150)));
  }
  return settings;
}

}  // namespace zoo
