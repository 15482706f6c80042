#include "tokenizers/subwords/word_piece.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

WordPiece::WordPiece(const nlohmann::json& part)
    : vocabulary_(part.at("vocab")),
      prefix_(short_option(part, "continuing_subword_prefix", "##")),
      most_characters_(option(part, "max_input_chars_per_word", int64_t{100})) {
  if (most_characters_ > 1000) refuse_part("max_input_chars_per_word", fmt::format("{}", most_characters_));
  const auto unk = option(part, "unk_token", "[UNK]");
  unk_ = vocabulary_.find(unk);
  if (unk_ < 0) throw DataError(fmt::format("the unk_token '{}' is no token", excerpt(unk, 40)));
}

void WordPiece::append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const {
  if (std::ranges::count_if(piece, begins_character) > most_characters_)
    return tokens.push_back({unk_, 0, piece.size()});
  const size_t before = tokens.size();
  std::string key;
  for (size_t begin = 0; begin < piece.size();) {
    const std::string_view prefix = begin > 0 ? std::string_view(prefix_) : std::string_view();
    size_t end = std::min(piece.size(), begin + vocabulary_.longest());
    int64_t id = -1;
    for (; end > begin; --end) {
      if (end < piece.size() && !begins_character(piece[end])) continue;
      key.assign(prefix).append(piece.substr(begin, end - begin));
      if ((id = vocabulary_.find(key)) >= 0) break;
    }
    if (id < 0) {
      tokens.resize(before);
      return tokens.push_back({unk_, 0, piece.size()});
    }
    tokens.push_back({id, begin, end});
    begin = end;
  }
}

}  // namespace zoo
