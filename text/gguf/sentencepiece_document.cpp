#include "text/gguf/sentencepiece_document.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "text/gguf/gguf_token_kinds.h"
#include "text/gguf/gguf_unigram.h"
#include "text/gguf/tokenizer_refusal.h"
#include "tokenizers/hub/sentencepiece_merges.h"
#include "tokenizers/hub/tiktoken.h"
#include "tokenizers/sentencepiece/model_fields.h"
#include "tokenizers/sentencepiece/wire_format.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

namespace field_number = sentencepiece_field;

struct Pieces {
  Json vocab = Json::array(), added = Json::array();
  std::vector<std::string> normal;  // what a BPE merges
  std::vector<float> scores;
  bool has_user_symbols = false;
  int64_t unk = -1;
};

Json special_token(int64_t id, const std::string& content) {
  return {{"id", id}, {"content", content}, {"special", true}, {"normalized", false}};
}

void add_piece(std::string_view message, Pieces& to) {
  std::string text;
  float score = 0;
  uint64_t type = gguf_token::normal;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == field_number::piece_text) text = std::string(field->bytes);
    if (field->number == field_number::piece_score)
      score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    if (field->number == field_number::piece_type) type = field->value;
  }
  const auto id = static_cast<int64_t>(to.vocab.size());
  if (type == gguf_token::unknown) to.unk = id;
  if (type == gguf_token::control) to.added.push_back(special_token(id, text));
  if (type == gguf_token::user_defined) to.has_user_symbols = true;
  if (type == gguf_token::normal) {
    to.normal.push_back(text);
    to.scores.push_back(score);
  }
  to.vocab.push_back({text, static_cast<double>(score)});
}

/// The document of a BPE, as LlamaTokenizer reads it.
Json bpe_document(const UnigramText& text, bool byte_fallback, Pieces pieces) {
  if (pieces.has_user_symbols)
    refuse_tokenizer("its model of SentencePiece has symbols of its users, which are not written");
  if (!text.charsmap.empty() || text.merges_blanks)
    refuse_tokenizer("a BPE of SentencePiece that changes characters or blanks is unknown there");
  const auto is_long = [](const auto& token) { return token.size() > kLongestMergedToken; };
  if (std::ranges::any_of(pieces.normal, is_long))
    refuse_tokenizer("a token has more than {} bytes", kLongestMergedToken);
  const auto learnt = merges_of_scores(pieces.normal, pieces.scores);
  if (!learnt) refuse_tokenizer("its model of SentencePiece has too many tokens");
  Json vocab = Json::object(), merges = Json::array();
  for (size_t id = 0; id < pieces.vocab.size(); ++id)
    vocab[pieces.vocab[id].at(0).get<std::string>()] = static_cast<int64_t>(id);
  for (const auto& [left, right] : *learnt) merges.push_back({left, right});
  const Json replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", gguf_token::word_mark}};
  const Json prepend{{"type", "Prepend"}, {"prepend", gguf_token::word_mark}};
  Json document{
      {"added_tokens", std::move(pieces.added)},
      {"normalizer",
       text.adds_blank ? Json{{"type", "Sequence"}, {"normalizers", {prepend, replace}}} : replace}};
  document["model"] = {{"type", "BPE"}, {"byte_fallback", byte_fallback}, {"merges", std::move(merges)}};
  if (pieces.unk >= 0) document["model"]["unk_token"] = pieces.vocab[static_cast<size_t>(pieces.unk)].at(0);
  document["model"]["vocab"] = std::move(vocab);
  return document;
}

/// The tokens that T5Tokenizer adds; <extra_id_0> has the last id.
void add_extra_ids(const TokenizerSettings& settings, Pieces& to) {
  const int64_t n = settings.config.value("extra_ids", int64_t{100});
  for (int64_t i = n - 1; i >= 0; --i) {
    const auto name = fmt::format("<extra_id_{}>", i);
    to.added.push_back(special_token(static_cast<int64_t>(to.vocab.size()), name));
    to.vocab.push_back({name, 0.0});
  }
}

}  // namespace

Json sentencepiece_document(const HubFiles& files, const TokenizerSettings& settings) {
  const auto file =
      files.contains("spiece.model") ? files.find("spiece.model") : files.find("tokenizer.model");
  if (file == files.end() || files.contains("source.spm") || is_tiktoken_file(file->second)) return nullptr;
  Pieces pieces;
  uint64_t model_type = field_number::unigram;
  bool byte_fallback = false;
  UnigramText text;
  WireReader reader(file->second);
  while (const auto field = reader.next()) {
    if (field->number == field_number::pieces) add_piece(field->bytes, pieces);
    if (field->number != field_number::trainer && field->number != field_number::normalizer) continue;
    WireReader part(field->bytes);
    while (const auto option = part.next()) {
      if (field->number == field_number::trainer) {
        if (option->number == field_number::model_type) model_type = option->value;
        if (option->number == field_number::byte_fallback) byte_fallback = option->value != 0;
      } else {
        if (option->number == field_number::charsmap) text.charsmap = std::string(option->bytes);
        if (option->number == field_number::adds_blank) text.adds_blank = option->value != 0;
        if (option->number == field_number::merges_blanks) text.merges_blanks = option->value != 0;
      }
    }
  }
  if (model_type == field_number::bpe) return bpe_document(text, byte_fallback, std::move(pieces));
  if (model_type != field_number::unigram) return nullptr;
  if (file->first == "spiece.model") add_extra_ids(settings, pieces);
  auto document = unigram_text_parts(text, WithinTokens::no_blanks);
  document["added_tokens"] = std::move(pieces.added);
  document["model"] = {{"type", "Unigram"}, {"unk_id", pieces.unk}, {"byte_fallback", byte_fallback}};
  document["model"]["vocab"] = std::move(pieces.vocab);
  return document;
}

}  // namespace zoo
