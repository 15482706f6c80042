#include "text/gguf/gguf_word_pieces.h"

#include <string_view>
#include <utility>

#include "text/gguf/gguf_token_kinds.h"
#include "text/gguf/tokenizer_refusal.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kContinues = "##";
constexpr const char *const kLowercase = "tokenizer.ggml.normalizer.lowercase",
                            *const kStripAccents = "tokenizer.ggml.normalizer.strip_accents";

bool has_type(const Json& document, const char* part, const char* type) {
  const auto found = document.find(part);
  return found != document.end() && found->is_object() && found->value("type", "") == type;
}

}  // namespace

std::string stored_word_piece(const std::string& token) {
  if (token.starts_with(kContinues)) return token.substr(kContinues.size());
  return gguf_token::word_mark + token;
}

std::string word_piece_of(const std::string& stored, int64_t kind) {
  if (kind == gguf_token::control || kind == gguf_token::unknown) return stored;
  if (stored.starts_with(gguf_token::word_mark))
    return stored.substr(std::string_view(gguf_token::word_mark).size());
  // A token that somebody added is found before words are cut.
  return kind == gguf_token::user_defined ? stored : std::string(kContinues) + stored;
}

Json word_piece_parts(const GgufKeys& keys, Json vocab, const std::string& unk) {
  const bool lowercase = keys.flag(kLowercase, true);
  Json parts{{"normalizer",
              {{"type", "BertNormalizer"},
               {"clean_text", true},
               {"handle_chinese_chars", true},
               {"strip_accents", keys.flag(kStripAccents, lowercase)},
               {"lowercase", lowercase}}},
             {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
             {"decoder", {{"type", "WordPiece"}, {"prefix", kContinues}, {"cleanup", true}}},
             {"model",
              {{"type", "WordPiece"},
               {"unk_token", unk},
               {"continuing_subword_prefix", kContinues},
               {"max_input_chars_per_word", 100}}}};
  parts["model"]["vocab"] = std::move(vocab);
  return parts;
}

void write_word_pieces(const Json& document, GgufMetadata& to) {
  const auto& model = document.at("model");
  if (!has_type(document, "normalizer", "BertNormalizer") ||
      !has_type(document, "pre_tokenizer", "BertPreTokenizer"))
    refuse_tokenizer("its normalizer or its pre_tokenizer is not that of BERT");
  if (option(model, "continuing_subword_prefix", "##") != kContinues)
    refuse_tokenizer("the continuing_subword_prefix is not '{}'", kContinues);
  const auto& normalizer = document.at("normalizer");
  for (const char* const step : {"clean_text", "handle_chinese_chars"}) {
    if (!option(normalizer, step, true)) refuse_tokenizer("the normalizer without {} is unknown there", step);
  }
  const bool lowercase = option(normalizer, "lowercase", true);
  to.emplace_back("tokenizer.ggml.model", "bert");
  to.emplace_back("tokenizer.ggml.pre", "default");
  to.emplace_back(kLowercase, lowercase);
  to.emplace_back(kStripAccents, option(normalizer, "strip_accents", lowercase));
}

}  // namespace zoo
