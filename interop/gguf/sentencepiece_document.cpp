#include "interop/gguf/sentencepiece_document.h"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "data/sentencepiece/wire_format.h"
#include "data/text/hub/tiktoken.h"
#include "interop/gguf/gguf_token_kinds.h"
#include "interop/gguf/gguf_unigram.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

// The numbers of fields in sentencepiece_model.proto. The types of pieces are the kinds of GGUF.
namespace field_number {
constexpr uint32_t pieces = 1, trainer = 2, normalizer = 3;          // of the model
constexpr uint32_t text = 1, score = 2, type = 3;                    // of a piece
constexpr uint32_t model_type = 3, byte_fallback = 35;               // of the trainer
constexpr uint32_t charsmap = 2, adds_blank = 3, merges_blanks = 4;  // of the normalizer
}  // namespace field_number
constexpr uint64_t kUnigram = 1;

struct Pieces {
  Json vocab = Json::array(), added = Json::array();
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
    if (field->number == field_number::text) text = std::string(field->bytes);
    if (field->number == field_number::score)
      score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    if (field->number == field_number::type) type = field->value;
  }
  const auto id = static_cast<int64_t>(to.vocab.size());
  if (type == gguf_token::unknown) to.unk = id;
  if (type == gguf_token::control) to.added.push_back(special_token(id, text));
  to.vocab.push_back({text, static_cast<double>(score)});
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
  uint64_t model_type = kUnigram;
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
  if (model_type != kUnigram) return nullptr;
  if (file->first == "spiece.model") add_extra_ids(settings, pieces);
  auto document = unigram_text_parts(text, WithinTokens::no_blanks);
  document["added_tokens"] = std::move(pieces.added);
  document["model"] = {{"type", "Unigram"}, {"unk_id", pieces.unk}, {"byte_fallback", byte_fallback}};
  document["model"]["vocab"] = std::move(pieces.vocab);
  return document;
}

}  // namespace zoo
