#include "text/gguf/gguf_unigram.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "text/gguf/gguf_token_kinds.h"
#include "text/gguf/tokenizer_refusal.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

constexpr const char *const kAddsBlank = "tokenizer.ggml.add_space_prefix",
                            *const kMergesBlanks = "tokenizer.ggml.remove_extra_whitespaces",
                            *const kCharsmap = "tokenizer.ggml.precompiled_charsmap";
/// The score of rows that no token has: so low that none is chosen.
constexpr float kNever = -10000;

/// Several blanks as one.
Json one_blank() {
  return {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", gguf_token::word_mark}};
}

bool has_mark_within(std::string_view token) { return token.find(gguf_token::word_mark, 1) != token.npos; }

/// How a tokenizer.json changes a text before it looks for tokens.
struct TextRules {
  std::string charsmap;  // SentencePiece's rules of characters
  bool strips = false, replaces = false, splits = false;
  bool merges_blanks() const { return splits || (strips && replaces); }
};

void add_normalizer(const Json& step, TextRules& rules) {
  if (step.is_null()) return;
  const auto type = type_of(step);
  if (type == "Sequence") {
    for (const auto& inner : step.at("normalizers")) add_normalizer(inner, rules);
  } else if (type == "Precompiled" && rules.charsmap.empty() && !rules.strips && !rules.replaces) {
    const auto bytes = from_base64(option(step, "precompiled_charsmap", ""));
    if (!bytes) refuse_tokenizer("its precompiled_charsmap is not Base64");
    rules.charsmap = *bytes;
  } else if (type == "Strip" && option(step, "strip_right", true)) {
    rules.strips = true;
  } else if (type == "Replace" && step.at("pattern") == one_blank().at("pattern") &&
             (step.at("content") == gguf_token::word_mark || step.at("content") == " ")) {
    rules.replaces = true;
  } else {
    refuse_tokenizer("its normalizer {} is unknown there", type);
  }
}

void add_pre_tokenizer(const Json& step, TextRules& rules) {
  const auto type = step.is_null() ? "none" : type_of(step);
  if (type == "Sequence") {
    for (const auto& inner : step.at("pretokenizers")) add_pre_tokenizer(inner, rules);
    return;
  }
  if (type == "WhitespaceSplit") {
    rules.splits = true;
    return;
  }
  const auto prepends = [&] {
    const bool older = option(step, "add_prefix_space", true);
    return option(step, "prepend_scheme", older ? "always" : "never") != "never";
  };
  if (type != "Metaspace" || option(step, "replacement", gguf_token::word_mark) != gguf_token::word_mark ||
      !prepends())
    refuse_tokenizer("its pre_tokenizer is not that of SentencePiece");
}

}  // namespace

Json unigram_text_parts(const UnigramText& text, WithinTokens within) {
  auto normalizers = Json::array();
  if (!text.charsmap.empty()) {
    normalizers.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(text.charsmap)}});
  }
  if (text.merges_blanks) {
    normalizers.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
    normalizers.push_back(one_blank());
  }
  const Json blanks{{"type", "Metaspace"},
                    {"replacement", gguf_token::word_mark},
                    {"prepend_scheme", text.merges_blanks || text.adds_blank ? "always" : "never"},
                    {"split", within == WithinTokens::no_blanks}};
  return {
      {"normalizer",
       normalizers.empty() ? Json() : Json{{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
      {"pre_tokenizer", blanks},
      {"decoder", blanks}};
}

Json unigram_parts(const GgufKeys& keys, const std::vector<std::string>& tokens, int64_t unk) {
  const auto scores = keys.numbers("tokenizer.ggml.scores");
  if (scores.size() < tokens.size()) keys.fail("tokenizer.ggml.scores", "not as many as tokens");
  if (unk < 0 || unk >= std::ssize(tokens))
    keys.fail("tokenizer.ggml.unknown_token_id", "outside the vocabulary");
  auto vocab = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!std::isfinite(scores[id])) keys.fail("tokenizer.ggml.scores", "not a number");
    vocab.push_back({tokens[id], static_cast<double>(static_cast<float>(scores[id]))});
  }
  UnigramText text{.charsmap = keys.has(kCharsmap) ? keys.bytes(kCharsmap) : std::string(),
                   .adds_blank = keys.flag(kAddsBlank, false),
                   .merges_blanks = keys.flag(kMergesBlanks, false)};
  auto parts = unigram_text_parts(
      text, std::ranges::any_of(tokens, has_mark_within) ? WithinTokens::blanks : WithinTokens::no_blanks);
  parts["model"] = {{"type", "Unigram"}, {"unk_id", unk}, {"byte_fallback", false}};
  parts["model"]["vocab"] = std::move(vocab);
  return parts;
}

void write_unigram(const Json& document, int64_t n_rows, GgufMetadata& to) {
  const auto& model = document.at("model");
  if (option(model, "byte_fallback", false))
    refuse_tokenizer("a Unigram that writes unknown characters as bytes is unknown there");
  if (option(model, "unk_id", int64_t{-1}) < 0) refuse_tokenizer("it has no token for unknown characters");
  TextRules rules;
  add_normalizer(document.value("normalizer", Json()), rules);
  add_pre_tokenizer(document.value("pre_tokenizer", Json()), rules);
  if (!rules.merges_blanks())
    refuse_tokenizer("it keeps several blanks as they are, which is not written for a Unigram");
  std::vector<float> scores(static_cast<size_t>(n_rows), kNever);
  const auto& vocab = model.at("vocab");
  if (std::ssize(vocab) > n_rows) refuse_tokenizer("its tokens have no rows in the embeddings");
  for (size_t id = 0; id < vocab.size(); ++id) {
    const auto& entry = vocab[id];
    if (has_mark_within(entry.at(0).get_ref<const std::string&>()))
      refuse_tokenizer("the token '{}' is more than one word", excerpt(entry.at(0).get<std::string>()));
    scores[id] = entry.at(1).get<float>();
  }
  to.emplace_back("tokenizer.ggml.model", "t5");
  to.emplace_back("tokenizer.ggml.pre", "default");
  to.emplace_back("tokenizer.ggml.scores", std::move(scores));
  to.emplace_back(kAddsBlank, true);
  to.emplace_back(kMergesBlanks, true);
  if (!rules.charsmap.empty())
    to.emplace_back(kCharsmap, std::vector<uint8_t>(rules.charsmap.begin(), rules.charsmap.end()));
}

}  // namespace zoo
