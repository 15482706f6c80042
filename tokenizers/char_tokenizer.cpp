#include "tokenizers/char_tokenizer.h"

#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/unicode/lowercase.h"

namespace zoo {
namespace {

/// The text of unk: a double question mark, as in SentencePiece.
constexpr std::string_view kUnknownText = "⁇";

}  // namespace

std::unique_ptr<CharTokenizer> CharTokenizer::train(const TextReader& corpus, SpecialTokenSet special,
                                                    bool fold) {
  std::vector<bool> present(0x110000);
  bool empty = true;
  corpus([&](std::string_view text) {
    for (const char32_t c : decode_utf8(fold ? lowercase(text) : std::string(text))) {
      present[c] = true;
      empty = false;
    }
  });
  if (empty) throw DataError("the training text is empty: there is nothing to make a vocabulary from");
  TokenizerFile file{.type = TokenizerKind::character,
                     .lowercase = fold,
                     .special = special_tokens(special),
                     .symbols = {},
                     .model_sha256 = {}};
  for (char32_t c = 0; c < present.size(); ++c) {
    if (present[c]) file.symbols.push_back(encode_utf8({&c, 1}));
  }
  return std::make_unique<CharTokenizer>(std::move(file));
}

CharTokenizer::CharTokenizer(TokenizerFile file) : file_(std::move(file)), first_(count(file_.special)) {
  std::set<int64_t> special_ids;
  const SpecialTokens& s = file_.special;
  for (const int64_t id : {s.pad, s.unk, s.bos, s.eos, s.mask, s.cls, s.sep}) {
    if (id < 0) continue;
    if (id >= first_ || !special_ids.insert(id).second) {
      throw DataError(
          fmt::format("the id {} of a special token is used twice or is not below {}", id, first_));
    }
  }
  if (file_.symbols.empty()) throw DataError("there are no symbols");
  int64_t id = first_;
  for (const std::string& symbol : file_.symbols) {
    const std::u32string code_points = decode_utf8(symbol);
    if (code_points.size() != 1 || !ids_.emplace(code_points[0], id++).second) {
      throw DataError(
          fmt::format("the symbol \"{}\" is not one code point, or appears twice", excerpt(symbol)));
    }
  }
}

TokenIds CharTokenizer::encode(std::string_view text) const {
  check_utf8(text);
  TokenIds result;
  result.reserve(text.size());
  for (const char32_t c : decode_utf8(file_.lowercase ? lowercase(text) : std::string(text))) {
    const auto found = ids_.find(c);
    if (found == ids_.end() && file_.special.unk < 0) {
      throw UnknownSymbolError(
          fmt::format("the character \"{}\" (U+{:04X}) is not in the vocabulary, which has the {} "
                      "characters of the training text",
                      excerpt(encode_utf8({&c, 1})), static_cast<uint32_t>(c), file_.symbols.size()));
    }
    result.push_back(found == ids_.end() ? file_.special.unk : found->second);
  }
  return result;
}

std::vector<PlacedToken> CharTokenizer::encode_with_places(std::string_view text) const {
  std::vector<PlacedToken> tokens;
  for (const int64_t id : encode(text)) tokens.push_back({id, tokens.size(), tokens.size() + 1});
  return tokens;
}

std::string CharTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    if (id >= first_) {
      text += file_.symbols[static_cast<size_t>(id - first_)];
    } else if (id == file_.special.unk) {
      text += kUnknownText;
    }
  }
  return text;
}

std::string CharTokenizer::label(int64_t id) const {
  check_id(id, vocab_size());
  if (id < first_) return std::string(special_label(file_.special, id));
  const std::string& symbol = file_.symbols[static_cast<size_t>(id - first_)];
  if (symbol == "\n") return "↵";
  if (symbol == "\t") return "⇥";
  return symbol == " " ? "▁" : excerpt(symbol);
}

std::map<std::string, std::string> CharTokenizer::exported_files(const TextFrame& frame) const {
  return export_vocabulary({.special = exported_tokens(file_.special, [&](int64_t id) { return label(id); }),
                            .symbols = file_.symbols,
                            .kind = SymbolKind::character,
                            .letters = file_.lowercase ? LetterCase::folded : LetterCase::as_written,
                            .frame = frame});
}

}  // namespace zoo
