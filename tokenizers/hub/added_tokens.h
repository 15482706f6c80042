#pragma once
// Tokens that are found in a text before anything else: the member "added_tokens" of a tokenizer.json.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/subwords/normalizer.h"

namespace zoo {

struct AddedToken {
  std::string content;
  bool single_word = false;             // not within a word
  bool lstrip = false, rstrip = false;  // blanks before or after it belong to it
  bool normalized = true;               // looked for in the normalised text
  bool special = false;                 // stands for no text

  bool operator==(const AddedToken&) const = default;
};

/// From {"content": …, "lstrip": …}. Throws nlohmann's exceptions.
AddedToken added_token(const nlohmann::json& part);

/// A part of a text: an added token, or text for the model.
struct TextSegment {
  int64_t id = -1;   // of the added token; -1: text
  AlignedText text;  // normalised; of an added token: the text that stands for it
  bool is_first = false;
};

/// What the text of a special token becomes.
enum class SpecialTexts {
  tokens,  // this token
  text     // text like any other: transformers' split_special_tokens
};

/// Finds the texts of several tokens: at each place the longest one.
class TokenFinder {
 public:
  void add(std::string_view content, int64_t id);
  struct Match {
    size_t begin, end;
    int64_t id;
  };
  /// The first match that begins at `from` or later.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  bool begins_token_[256] = {};
  std::vector<int64_t> ids_ = {-1};                    // of the nodes of a trie; -1: no token ends here
  std::unordered_map<uint64_t, uint32_t> next_nodes_;  // by node · 256 + byte
};

class AddedTokens {
 public:
  /// Adds a token, or changes one of the same content. `id` is its id in the model's vocabulary; -1: it gets
  /// the next id of its own.
  void add(const AddedToken& token, int64_t id, int64_t model_size);
  /// Call it after the last add().
  void index(const std::optional<Normalizer>& normalizer, SpecialTexts special_texts);

  /// Cuts a text into added tokens and text between them, as tokenizers' AddedVocabulary: a token of blanks
  /// is found although the token before took these blanks (rstrip). `normalizer` may be null.
  /// The texts of the tokens `also` become these tokens, too, although they are special ones.
  std::vector<TextSegment> split(std::string_view text, const std::optional<Normalizer>& normalizer,
                                 Alignment alignment, std::span<const int64_t> also = {}) const;

  /// Whether a token can hold a blank behind a letter: within it, or because it takes the blanks behind it.
  bool reach_over_blanks() const { return reach_over_blanks_; }
  /// Whether the text of this token becomes the token. False if it is no added token.
  bool finds(int64_t id) const;
  /// The id of a token; -1 if it is none of these.
  int64_t find(std::string_view content) const;
  /// The token with this id; null if it is none of these.
  const AddedToken* token(int64_t id) const;
  bool contains(const AddedToken& token) const;
  bool is_special(std::string_view content) const { return special_.contains(content); }
  /// One more than the largest id; 0 if there is none.
  int64_t id_end() const { return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1; }

 private:
  template <class Use>
  void split_by(const TokenFinder& finder, std::span<const int64_t> also, std::string_view text,
                const Use& use) const;

  std::map<int64_t, AddedToken> tokens_;
  std::map<std::string, int64_t, std::less<>> ids_;
  std::set<std::string, std::less<>> special_;
  TokenFinder raw_, normalized_;
  size_t n_bytes_ = 0;  // of all contents
  bool reach_over_blanks_ = false;
  SpecialTexts special_texts_ = SpecialTexts::tokens;
};

}  // namespace zoo
