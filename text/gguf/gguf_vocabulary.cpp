#include "text/gguf/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"
#include "text/chat_template.h"
#include "text/gguf/gguf_pre_tokenizers.h"
#include "text/gguf/gguf_token_kinds.h"
#include "text/gguf/gguf_unigram.h"
#include "text/gguf/gguf_word_pieces.h"
#include "text/gguf/sentencepiece_blanks.h"
#include "text/gguf/sentencepiece_document.h"
#include "text/gguf/tokenizer_refusal.h"
#include "tokenizers/hub/old_files.h"
#include "tokenizers/hub/sentencepiece_merges.h"
#include "tokenizers/hub/settings.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/decoder.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

std::string type_in(const Json& document, const char* part) {
  const auto found = document.find(part);
  return found == document.end() || !found->is_object() ? "none" : found->value("type", "none");
}

/// A token and its kind by its id.
struct Entry {
  std::string text;
  int32_t kind = gguf_token::normal;
};
using Entries = std::map<int64_t, Entry>;

/// Whether it changes the tokens of a text if an added token takes the blanks around it.
enum class BlanksAroundTokens { count, are_dropped };

void add(const AddedToken& token, int64_t id, BlanksAroundTokens blanks, Entries& to) {
  const bool takes_blanks = blanks == BlanksAroundTokens::count && (token.lstrip || token.rstrip);
  if (takes_blanks || token.single_word) {
    refuse_tokenizer(
        "the token '{}' takes blanks around it, or stands between words only (lstrip, rstrip, single_word)",
        excerpt(token.content));
  }
  to[id] = {token.content, token.special ? gguf_token::control : gguf_token::user_defined};
}

/// The tokens that stand for a byte, and the one for what has no token.
void mark_bytes(const Json& model, Entries& to) {
  const auto unk = model.value("unk_token", Json());
  for (auto& [id, entry] : to) {
    const bool is_byte = entry.text.size() == 6 && entry.text.starts_with("<0x") && entry.text.ends_with('>');
    if (is_byte && entry.kind == gguf_token::normal) entry.kind = gguf_token::byte;
    if (unk == entry.text) entry.kind = gguf_token::unknown;
  }
}

Entries entries_of(const Json& document, const TokenizerSettings& settings, int64_t n_tokens) {
  Entries entries;
  const auto& model = document.at("model");
  if (const auto& vocab = model.at("vocab"); vocab.is_array()) {  // Unigram
    for (size_t id = 0; id < vocab.size(); ++id)
      entries[static_cast<int64_t>(id)] = {vocab[id].at(0).get<std::string>()};
  } else {
    for (const auto& [text, id] : vocab.items()) entries[id.get<int64_t>()] = {text};
  }
  // A Unigram that is written here drops them at both ends of a text.
  const auto blanks =
      type_in(document, "model") == "Unigram" ? BlanksAroundTokens::are_dropped : BlanksAroundTokens::count;
  for (const auto& part : document.value("added_tokens", Json::array()))
    add(added_token(part), part.at("id"), blanks, entries);
  for (const auto& [id, token] : settings.added) add(token, id, blanks, entries);
  const auto name = [&](const AddedToken& token) {
    const auto found =
        std::ranges::find_if(entries, [&](const auto& entry) { return entry.second.text == token.content; });
    if (found == entries.end())
      refuse_tokenizer("the token '{}' has no id in its files", excerpt(token.content));
    if (found->second.kind == gguf_token::normal) found->second.kind = gguf_token::control;
  };
  for (const auto& [role, token] : settings.roles) name(token);
  for (const auto& token : settings.further_tokens()) name(token);
  if (option(model, "byte_fallback", false)) mark_bytes(model, entries);
  if (const auto unk = entries.find(option(model, "unk_id", int64_t{-1})); unk != entries.end())
    unk->second.kind = gguf_token::unknown;
  if (entries.empty() || entries.begin()->first < 0 || entries.rbegin()->first >= n_tokens)
    refuse_tokenizer("its ids are not those of {} tokens", n_tokens);
  return entries;
}

void to_stored_word_pieces(Entries& entries) {
  std::set<std::string_view> texts;
  for (auto& [id, entry] : entries) {
    if (entry.kind == gguf_token::normal) entry.text = stored_word_piece(entry.text);
    if (!texts.insert(entry.text).second)
      refuse_tokenizer("two tokens have the name '{}' there", excerpt(entry.text));
  }
}

/// Rows of the embeddings without a token get a name that no text has.
void write_tokens(const Entries& entries, int64_t n_rows, GgufMetadata& to) {
  std::vector<std::string> texts;
  std::vector<int32_t> kinds;
  for (int64_t id = 0; id < n_rows; ++id) {
    const auto found = entries.find(id);
    texts.push_back(found == entries.end() ? fmt::format("[PAD{}]", id) : found->second.text);
    kinds.push_back(found == entries.end() ? gguf_token::unused : found->second.kind);
  }
  to.emplace_back("tokenizer.ggml.tokens", std::move(texts));
  to.emplace_back("tokenizer.ggml.token_type", std::move(kinds));
}

/// llama.cpp cuts texts at such a token.
void stand_apart(const std::string& token, Entries& entries) {
  const auto found = std::ranges::find(entries, token, [](const auto& entry) { return entry.second.text; });
  if (found != entries.end()) found->second = {"\n", gguf_token::user_defined};
}

std::vector<std::string> merges_in(const Json& model) {
  std::vector<std::string> merges;
  for (const auto& merge : model.value("merges", Json::array())) {
    merges.push_back(merge.is_array() ? merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>()
                                      : merge.get<std::string>());
  }
  return merges;
}

/// A BPE of bytes, which llama.cpp calls gpt2.
void write_byte_level(const Json& document, GgufMetadata& to) {
  const auto& model = document.at("model");
  const auto normalizer = type_in(document, "normalizer");
  const bool is_empty =
      normalizer == "Sequence" && document["normalizer"].value("normalizers", Json()).empty();
  // llama.cpp has no normal forms, so it ignores the NFC of Qwen.
  if (!is_empty && normalizer != "none" && normalizer != "NFC")
    refuse_tokenizer("the normalizer {} is unknown there", excerpt(normalizer));
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const auto affix = model.value(key, Json()); affix.is_string() && affix != "")
      refuse_tokenizer("{} is unknown there", key);
  }
  auto merges = merges_in(model);
  const bool ignores_merges = option(model, "ignore_merges", false);
  const auto part = document.value("pre_tokenizer", Json());
  // Without merges it does not matter where a text is cut.
  const auto* const pre =
      merges.empty() ? find_gguf_pre_tokenizer("gpt-2") : gguf_pre_tokenizer_of(part, ignores_merges);
  if (pre == nullptr)
    refuse_tokenizer("its pre_tokenizer has no name there: {}", excerpt(json_text(part), 100));
  to.emplace_back("tokenizer.ggml.model", "gpt2");
  to.emplace_back("tokenizer.ggml.pre", pre->names.front());
  to.emplace_back("tokenizer.ggml.merges", std::move(merges));
  to.emplace_back("tokenizer.ggml.add_space_prefix", false);
}

/// A BPE of SentencePiece, which llama.cpp calls llama.
void write_sentencepiece(const Json& document, int64_t n_rows, GgufMetadata& to) {
  const auto& model = document.at("model");
  const auto blanks = sentencepiece_blanks(document);
  const auto& vocab = model.at("vocab");
  for (int byte = 0; byte < 256; ++byte) {
    if (!vocab.contains(fmt::format("<0x{:02X}>", byte)))
      refuse_tokenizer("it has no token for the byte {}", byte);
  }
  std::vector<Merge> merges;
  std::set<std::string> made;
  for (const auto& merge : merges_in(model)) {
    const auto blank = merge.find(' ');
    merges.emplace_back(merge.substr(0, blank), merge.substr(blank + 1));
    made.insert(merges.back().first + merges.back().second);
  }
  // Special tokens and bytes are no merges, though other tokens may spell their names.
  std::set<std::string> apart;
  for (const auto& part : document.value("added_tokens", Json::array())) {
    if (option(part, "special", false)) apart.insert(part.at("content").get<std::string>());
  }
  std::vector<std::string> tokens;
  for (const auto& [token, id] : vocab.items()) {
    const bool is_apart = apart.contains(token) || byte_of_token(token).has_value();
    if (!is_apart || made.contains(token)) tokens.push_back(token);
  }
  if (std::ranges::any_of(tokens, [](const auto& token) { return token.size() > kLongestMergedToken; }))
    refuse_tokenizer("a token has more than {} bytes", kLongestMergedToken);
  const auto scores = scores_of_merges(tokens, merges);
  if (!scores) refuse_tokenizer("its merges are not those of a model of SentencePiece");
  // What is not made of others has the lowest score.
  const float lowest = scores->empty() ? 0 : std::ranges::min(*scores);
  std::vector<float> by_id(static_cast<size_t>(n_rows), 0);
  for (const auto& [token, number] : vocab.items()) {
    const int64_t id = number;
    if (id < 0 || id >= n_rows) refuse_tokenizer("the id {} has no row in the embeddings", id);
    by_id[static_cast<size_t>(id)] = lowest;
  }
  for (size_t i = 0; i < tokens.size(); ++i) by_id[vocab.at(tokens[i]).get<size_t>()] = (*scores)[i];
  to.emplace_back("tokenizer.ggml.model", "llama");
  to.emplace_back("tokenizer.ggml.pre", "default");
  to.emplace_back("tokenizer.ggml.scores", std::move(by_id));
  to.emplace_back("tokenizer.ggml.add_space_prefix", blanks.before_parts);
}

bool is_sentencepiece(const Json& document) {
  return type_in(document, "model") == "BPE" && type_in(document, "decoder") != "ByteLevel" &&
         option(document.at("model"), "byte_fallback", false);
}

void write_model(const Json& document, int64_t n_rows, GgufMetadata& to) {
  const auto type = type_in(document, "model"), decoder = type_in(document, "decoder");
  if (type == "BPE" && decoder == "ByteLevel") return write_byte_level(document, to);
  if (is_sentencepiece(document)) return write_sentencepiece(document, n_rows, to);
  if (type == "WordPiece") return write_word_pieces(document, to);
  if (type == "Unigram") return write_unigram(document, n_rows, to);
  refuse_tokenizer("{} with the decoder {} is unknown there, or not written here", type, decoder);
}

/// Without an end token, llama.cpp takes one by its number. A vocabulary of text alone ends with a token that
/// no text has: the one for unknown characters, where all have tokens, or else the byte 0xFF.
SpecialTokens with_end(SpecialTokens special, const Json& document) {
  if (special.eos >= 0) return special;
  if (is_sentencepiece(document)) special.eos = special.unk;
  const auto& vocab = document.at("model").at("vocab");
  const auto byte = vocab.is_object() ? vocab.find(as_characters("\xFF")) : vocab.end();
  if (special.eos < 0 && type_in(document, "decoder") == "ByteLevel" && byte != vocab.end())
    special.eos = byte->get<int64_t>();
  return special;
}

void write_special_tokens(const SpecialTokens& special, bool is_word_piece, GgufMetadata& to) {
  const auto id = [&](const char* name, int64_t token) {
    if (token >= 0)
      to.emplace_back(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<uint32_t>(token));
  };
  if (special.eos < 0) refuse_tokenizer("it has no end token");
  id("bos", special.bos);
  // With WordPiece, llama.cpp puts the separator after texts, whatever the end is.
  if (!is_word_piece) id("eos", special.eos);
  id("unknown", special.unk);
  id("padding", special.pad);
  id("cls", special.cls);
  id("seperator", special.sep);  // llama.cpp spells it so
  id("mask", special.mask);
  const auto& ends = special.other_ends;
  constexpr auto names = std::to_array<const char*>({"eot", "eom"});
  if (ends.size() > names.size())
    refuse_tokenizer("it has {} end tokens; three can be named", ends.size() + 1);
  for (size_t i = 0; i < ends.size(); ++i) id(names.at(i), ends[i]);
}

void write_frame(const TextFrame& frame, const SpecialTokens& special, bool is_word_piece, GgufMetadata& to) {
  const auto is = [](const std::vector<int64_t>& ids, int64_t id) {
    return ids.empty() || ids == std::vector{id};
  };
  if (!is(frame.before, special.bos) || !is(frame.after, special.eos))
    refuse_tokenizer("other tokens than {} stand around its texts",
                     is_word_piece ? "cls and sep" : "bos and eos");
  if (is_word_piece && (frame.before.empty() || frame.after.empty()))
    refuse_tokenizer("cls and sep do not stand around its texts");
  to.emplace_back("tokenizer.ggml.add_bos_token", !frame.before.empty());
  to.emplace_back(is_word_piece ? "tokenizer.ggml.add_sep_token" : "tokenizer.ggml.add_eos_token",
                  !frame.after.empty());
}

/// The default template, and others by their names.
void write_chat_templates(const HubFiles& files, const TokenizerSettings& settings, GgufMetadata& to) {
  std::vector<std::string> names;
  for (const auto& [name, source] : chat_template_sources(files, settings)) {
    to.emplace_back(name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name,
                    source);
    if (name != "default") names.push_back(name);
  }
  if (!names.empty()) to.emplace_back("tokenizer.chat_templates", std::move(names));
}

Json document_of(const HubFiles& files, const TokenizerSettings& settings) {
  if (const auto file = files.find("tokenizer.json"); file != files.end()) return Json::parse(file->second);
  if (auto document = tokenizer_json_of_old_files(files, settings); document.is_object()) return document;
  if (auto document = sentencepiece_document(files, settings); document.is_object()) return document;
  refuse_tokenizer(
      "it has no tokenizer.json, vocab.txt, vocab.json with merges.txt, nor a Unigram of SentencePiece");
}

GgufMetadata keys_of(const GgufVocabulary& vocabulary) {
  const auto settings = read_settings(vocabulary.files);
  const auto document = document_of(vocabulary.files, settings);
  GgufMetadata keys;
  write_model(document, vocabulary.n_rows, keys);
  auto entries = entries_of(document, settings, vocabulary.n_tokens);
  const bool is_word_piece = type_in(document, "model") == "WordPiece";
  if (is_word_piece) to_stored_word_pieces(entries);
  if (is_sentencepiece(document)) stand_apart(sentencepiece_blanks(document).apart, entries);
  write_tokens(entries, vocabulary.n_rows, keys);
  const auto special = with_end(vocabulary.special, document);
  write_special_tokens(special, is_word_piece, keys);
  write_frame(vocabulary.frame, special, is_word_piece, keys);
  write_chat_templates(vocabulary.files, settings, keys);
  return keys;
}

}  // namespace

GgufMetadata gguf_keys_of(const GgufVocabulary& vocabulary) {
  try {
    return keys_of(vocabulary);
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("the tokenizer is damaged: {}", excerpt(error.what(), 150)));
  }
}

}  // namespace zoo
