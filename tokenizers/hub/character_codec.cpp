// Wav2Vec2CTCTokenizer of transformers: each character is a token, and a token of its own stands for a blank.
// Its file is vocab.json alone.

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/hub/added_tokens.h"
#include "tokenizers/hub/text_codec.h"
#include "tokenizers/subwords/decoder.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/vocabulary.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

class CharacterCodec final : public TextCodec {
 public:
  CharacterCodec(const SpecJson& vocabulary, const TokenizerSettings& settings)
      : delimiter_(option(settings.config, "word_delimiter_token", "|")),
        blank_(short_option(settings.config, "replace_word_delimiter_char", " ")),
        cleans_up_(settings.flag("clean_up_tokenization_spaces", false)) {
    if (settings.flag("do_lower_case", false)) {
      throw DataError(
          "tokenizer_config.json: do_lower_case: true is not supported: transformers then reads texts in "
          "capitals and writes them in small letters");
    }
    for (const auto& [token, id] : vocabulary.items()) add(token, id);
    const auto of_file = tokens_;
    for (const auto& [id, token] : settings.added) add_found(token, id);
    for (const auto& [role, token] : settings.roles) {
      auto special = token;
      special.special = true;
      const auto known = ids_.find(token.content);
      add_found(special, known == ids_.end() ? id_end() : known->second);
    }
    // A text has no blanks beside a token of several characters.
    for (const auto& [id, token] : of_file) {
      if (count_code_points(token) < 2) continue;
      add_found({.content = token,
                 .lstrip = true,
                 .rstrip = true,
                 .normalized = false,
                 .special = added_.is_special(token)},
                id);
    }
    added_.index(std::nullopt, settings.special_texts());
    unknown_ = find(settings.token(TokenRole::unk));
  }

  std::vector<int64_t> encode(std::string_view text, TextPlace /*place*/,
                              std::span<const int64_t> also) const override {
    std::vector<int64_t> ids;
    for (const auto& segment : added_.split(text, std::nullopt, Alignment::dropped, also)) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      const std::string_view letters = segment.text.text();
      for (size_t at = 0, end = 0; at < letters.size(); at = end) {
        next_code_point(letters, end);
        ids.push_back(id_of(letters.substr(at, end - at)));
      }
    }
    return ids;
  }

  std::vector<PlacedToken> encode_with_places(std::string_view, TextPlace,
                                              std::span<const int64_t>) const override {
    throw DataError("Wav2Vec2CTCTokenizer does not say which characters a token stands for");
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const int64_t id : ids) text += text_of(id);
    const auto is_blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    while (!text.empty() && is_blank(text.back())) text.pop_back();
    text.erase(text.begin(), std::ranges::find_if_not(text, is_blank));
    return cleans_up_ ? without_needless_blanks(std::move(text)) : text;
  }

  std::string label(int64_t id) const override {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? fmt::format("<{}>", id) : found->second;
  }
  int64_t find(std::string_view token) const override {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }
  int64_t id_end() const override { return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1; }
  TextFrame frame() const override { return {}; }
  bool joins_blanks() const override { return false; }
  bool keeps_text() const override { return false; }
  bool cleans_up() const override { return cleans_up_; }

 private:
  void add(const std::string& token, const SpecJson& id) {
    if (id.is_object()) {
      throw DataError(
          "vocab.json: it has a vocabulary for each language, which is not supported: keep that of one");
    }
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMostTokenIds)
      throw DataError(fmt::format("vocab.json: the id of '{}' is out of range", excerpt(token, 40)));
    if (!tokens_.emplace(id.get<int64_t>(), token).second)
      throw DataError(fmt::format("vocab.json: two tokens have the id {}", id.get<int64_t>()));
    ids_.emplace(token, id.get<int64_t>());
  }

  void add_found(const AddedToken& token, int64_t id) {
    if (token.content.empty()) return;
    tokens_.emplace(id, token.content);
    ids_.emplace(token.content, id);
    added_.add(token, ids_.at(token.content), id_end());
  }

  int64_t id_of(std::string_view character) const {
    const auto found = ids_.find(character == " " ? std::string_view(delimiter_) : character);
    if (found != ids_.end()) return found->second;
    if (unknown_ >= 0) return unknown_;
    throw DataError(fmt::format("'{}' is no character of the vocabulary, which has no token for others",
                                excerpt(character, 20)));
  }

  std::string text_of(int64_t id) const {
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return {};
    if (found->second == delimiter_) return blank_;
    return added_.is_special(found->second) ? std::string() : found->second;
  }

  std::map<int64_t, std::string> tokens_;
  std::map<std::string, int64_t, std::less<>> ids_;
  AddedTokens added_;
  std::string delimiter_, blank_;
  int64_t unknown_ = -1;
  bool cleans_up_;
};

}  // namespace

std::unique_ptr<TextCodec> make_character_codec(const std::map<std::string, std::string>& files,
                                                const TokenizerSettings& settings) {
  return std::make_unique<CharacterCodec>(json_file(files, "vocab.json"), settings);
}

}  // namespace zoo
