#pragma once
// A tokenizer as files of the Hub describe it, without what its tokens mean to a task.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/hub/placed_token.h"
#include "tokenizers/hub/settings.h"
#include "tokenizers/hub/text_frame.h"
#include "tokenizers/hub/token_text.h"

namespace zoo {

/// Whether a text stands alone or continues another one, whose last word it then may continue.
enum class TextPlace { alone, continuation };

class TextCodec {
 public:
  virtual ~TextCodec() = default;
  /// Ids of `text`, which is UTF-8, without a frame. The text of an added token becomes this token, unless it
  /// is a special one and split_special_tokens is set; those of the tokens `also` always do.
  virtual std::vector<int64_t> encode(std::string_view text, TextPlace place,
                                      std::span<const int64_t> also = {}) const = 0;
  /// A place, after `begin` and about `size` bytes further, where `text` can be cut: the ids of both parts
  /// are those of the whole. text.size() if there is none.
  virtual size_t part_end(std::string_view text, size_t /*begin*/, size_t /*size*/) const {
    return text.size();
  }
  /// The same with the places of the tokens, as tokenizers gives them. Throws DataError if this
  /// kind of tokenizer does not know them.
  virtual std::vector<PlacedToken> encode_with_places(std::string_view text, TextPlace place,
                                                      std::span<const int64_t> also = {}) const = 0;
  /// The text of `ids`, which are from 0 to id_end() - 1, without special tokens.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// What a token adds to a text if decode() does not say it: it may hold a part of a character. Empty: its
  /// text depends on its neighbours.
  virtual std::optional<TokenText> token_text(int64_t /*id*/) const { return std::nullopt; }
  /// The token as its file has it, or as the text it stands for if that can be shown.
  virtual std::string label(int64_t id) const = 0;
  /// The id of a token; -1 if there is none.
  virtual int64_t find(std::string_view token) const = 0;
  /// One more than the largest id.
  virtual int64_t id_end() const = 0;
  virtual TextFrame frame() const = 0;
  virtual bool joins_blanks() const = 0;
  virtual bool keeps_text() const = 0;
  /// Whether decode() removes blanks that English text does not have (tokenizers/subwords/decoder.h).
  virtual bool cleans_up() const = 0;
};

/// The tokenizer that files (by name) describe. Throws DataError: no tokenizer, damaged, or of a kind that is
/// not supported.
std::unique_ptr<TextCodec> make_text_codec(const std::map<std::string, std::string>& files,
                                           const TokenizerSettings& settings);

/// The kinds. `document` is a tokenizer.json.
std::unique_ptr<TextCodec> make_json_codec(nlohmann::json document, const TokenizerSettings& settings);
std::unique_ptr<TextCodec> make_sentencepiece_codec(const std::map<std::string, std::string>& files,
                                                    const TokenizerSettings& settings);
std::unique_ptr<TextCodec> make_character_codec(const std::map<std::string, std::string>& files,
                                                const TokenizerSettings& settings);

}  // namespace zoo
