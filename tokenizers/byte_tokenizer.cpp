#include "tokenizers/byte_tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/unicode/lowercase.h"

namespace zoo {

ByteTokenizer::ByteTokenizer(SpecialTokenSet special, bool fold)
    : ByteTokenizer(TokenizerFile{.type = TokenizerKind::byte,
                                  .lowercase = fold,
                                  .special = special_tokens(special),
                                  .symbols = {},
                                  .model_sha256 = {}}) {}

ByteTokenizer::ByteTokenizer(TokenizerFile file) : file_(std::move(file)), first_(count(file_.special)) {
  const auto set = first_ == 0 ? SpecialTokenSet::none : SpecialTokenSet::all;
  const TokenizerFile ours{.type = file_.type,
                           .lowercase = file_.lowercase,
                           .special = special_tokens(set),
                           .symbols = {},
                           .model_sha256 = {}};
  if (to_json(ours) != to_json(file_))
    throw DataError("the ids of the special tokens are wrong for a byte tokenizer");
}

TokenIds ByteTokenizer::encode(std::string_view text) const {
  const std::string folded = file_.lowercase ? lowercase(text) : std::string();
  if (file_.lowercase) text = folded;
  TokenIds result;
  result.reserve(text.size());
  for (const char c : text) result.push_back(first_ + static_cast<unsigned char>(c));
  return result;
}

std::vector<PlacedToken> ByteTokenizer::encode_with_places(std::string_view text) const {
  std::vector<PlacedToken> tokens;
  for (const int64_t id : encode(text)) tokens.push_back({id, tokens.size(), tokens.size()});
  in_code_points(file_.lowercase ? lowercase(text) : std::string(text), tokens);
  for (auto& token : tokens) token.end = token.begin + 1;
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    if (id >= first_) text += static_cast<char>(id - first_);
  }
  return text;
}

std::string ByteTokenizer::label(int64_t id) const {
  check_id(id, vocab_size());
  if (id < first_) return std::string(special_label(file_.special, id));
  const auto byte = static_cast<unsigned char>(id - first_);
  if (byte == '\n') return "↵";
  if (byte == '\t') return "⇥";
  if (byte == ' ') return "▁";
  return byte > 0x20 && byte < 0x7F ? std::string(1, static_cast<char>(byte))
                                    : fmt::format("<0x{:02X}>", byte);
}

std::map<std::string, std::string> ByteTokenizer::exported_files(const TextFrame& frame) const {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return export_vocabulary({.special = exported_tokens(file_.special, [&](int64_t id) { return label(id); }),
                            .symbols = std::move(bytes),
                            .kind = SymbolKind::byte,
                            .letters = file_.lowercase ? LetterCase::folded : LetterCase::as_written,
                            .frame = frame});
}

}  // namespace zoo
