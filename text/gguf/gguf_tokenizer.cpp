#include "text/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/json_document.h"
#include "text/gguf/gguf_pre_tokenizers.h"
#include "text/gguf/gguf_token_kinds.h"
#include "text/gguf/gguf_unigram.h"
#include "text/gguf/gguf_word_pieces.h"
#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/hub/sentencepiece_merges.h"
#include "tokenizers/subwords/vocabulary.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

const GgufPreTokenizer& pre_tokenizer_of(const GgufKeys& keys) {
  const char* const key = "tokenizer.ggml.pre";
  const auto name = keys.text(key, "gpt-2");
  if (const auto* found = find_gguf_pre_tokenizer(name)) return *found;
  std::vector<std::string> known;
  for (const auto& one : gguf_pre_tokenizers()) known.push_back(one.names.front());
  keys.fail(key, fmt::format("'{}' is not known; known are {}", excerpt(name), fmt::join(known, ", ")));
}

/// The kinds of tokenizers, tokenizer.ggml.model, with what llama.cpp takes where a file says nothing.
struct GgufTokenizerForm {
  std::string_view name;
  std::vector<std::pair<std::string_view, int64_t>> ids;
  bool adds_bos = false, adds_eos = false;
};

const GgufTokenizerForm* find_kind(const std::string& name) {
  static const auto kinds = std::to_array<GgufTokenizerForm>(
      {{.name = "gpt2", .ids = {}},
       {.name = "llama", .ids = {{"unknown", 0}, {"bos", 1}, {"eos", 2}}, .adds_bos = true},
       {.name = "bert",
        .ids = {{"bos", 101}, {"unknown", 100}, {"seperator", 102}, {"padding", 0}, {"mask", 103}}},
       {.name = "t5", .ids = {{"padding", 0}, {"eos", 1}, {"unknown", 2}}, .adds_eos = true}});
  const auto found = std::ranges::find(kinds, name, &GgufTokenizerForm::name);
  return found == kinds.end() ? nullptr : &*found;
}

const GgufTokenizerForm& kind_of(const GgufKeys& keys) {
  const char* const key = "tokenizer.ggml.model";
  const auto name = keys.text(key);
  if (const auto* found = find_kind(name)) return *found;
  keys.fail(key, fmt::format("'{}' is not supported; gpt2, a BPE of bytes, llama, a BPE of SentencePiece, "
                             "bert, a WordPiece, and t5, a Unigram, are",
                             excerpt(name)));
}

std::string id_key(std::string_view token) { return fmt::format("tokenizer.ggml.{}_token_id", token); }

[[noreturn]] void fail_outside(const GgufKeys& keys, std::string_view token) {
  keys.fail(id_key(token), "outside the vocabulary");
}

/// The texts of the special tokens, by the key of tokenizer_config.json.
Json config_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  constexpr auto names = std::to_array<std::pair<const char*, const char*>>({{"bos", "bos_token"},
                                                                             {"eos", "eos_token"},
                                                                             {"unknown", "unk_token"},
                                                                             {"padding", "pad_token"},
                                                                             {"cls", "cls_token"},
                                                                             {"seperator", "sep_token"},
                                                                             {"mask", "mask_token"}});
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [part, name] : names) {
    const int64_t id = gguf_token_id(keys, part);
    // The first token of BERT's texts, which it has under this name, too, begins no text that is written.
    if (id < 0 || (part == std::string_view("bos") && kind_of(keys).name == "bert")) continue;
    if (id >= std::ssize(tokens)) {
      if (!keys.has(id_key(part))) continue;
      fail_outside(keys, part);
    }
    config[name] = tokens[static_cast<size_t>(id)];
  }
  const char* const chat = "tokenizer.chat_template";
  if (!keys.has("tokenizer.chat_templates")) {
    if (keys.has(chat)) config["chat_template"] = keys.text(chat);
    return config;
  }
  auto& templates = config["chat_template"] = Json::array();
  const auto add = [&](const std::string& name, const std::string& key) {
    templates.push_back({{"name", name}, {"template", keys.text(key)}});
  };
  if (keys.has(chat)) add("default", chat);
  for (const auto& name : keys.texts("tokenizer.chat_templates")) {
    if (name != "default") add(name, fmt::format("{}.{}", chat, name));
  }
  return config;
}

/// <bos> before each text and <eos> after it, if the file says so; always <cls> and <sep> with WordPiece.
Json frame_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  TextFrame frame;
  const auto add = [&](const char* name, std::vector<int64_t>& to) {
    const int64_t id = gguf_token_id(keys, name);
    if (id < 0 && !keys.has(fmt::format("tokenizer.ggml.add_{}_token", name))) return;  // as llama.cpp
    if (id < 0 || id >= std::ssize(tokens)) fail_outside(keys, name);
    to.push_back(id);
    frame.between.push_back(id);
  };
  const auto asks_for = [&](const char* name, bool usual) {
    return keys.flag(fmt::format("tokenizer.ggml.add_{}_token", name), usual);
  };
  const auto& kind = kind_of(keys);
  if (kind.name == "bert") {
    add("seperator", frame.after);
    const auto between = frame.between;
    add("bos", frame.before);
    frame.between = between;
  } else {
    if (asks_for("eos", kind.adds_eos)) add("eos", frame.after);
    const bool adds_bos = kind.name == "gpt2" ? pre_tokenizer_of(keys).adds_bos : kind.adds_bos;
    if (asks_for("bos", adds_bos)) add("bos", frame.before);
  }
  return post_processor_of(frame, [&](int64_t id) { return tokens[static_cast<size_t>(id)]; });
}

Json added_tokens(const std::vector<std::string>& tokens, const std::vector<int64_t>& kinds) {
  Json added = Json::array();
  for (size_t id = 0; id < kinds.size(); ++id) {
    const bool is_special = kinds[id] == gguf_token::control || kinds[id] == gguf_token::unknown;
    if (!is_special && kinds[id] != gguf_token::user_defined) continue;
    added.push_back({{"id", id},
                     {"content", tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", is_special}});
  }
  return added;
}

Json vocab_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  Json vocab = Json::object();
  for (size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  if (vocab.size() != tokens.size()) keys.fail("tokenizer.ggml.tokens", "a token appears twice");
  return vocab;
}

/// A BPE of bytes.
Json byte_level_parts(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  const auto& pre = pre_tokenizer_of(keys);
  return {{"normalizer", pre.normalizer},
          {"pre_tokenizer", pre.pre_tokenizer},
          {"decoder",
           {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", pre.ignores_merges},
            {"vocab", vocab_of(keys, tokens)},
            {"merges", keys.texts("tokenizer.ggml.merges")}}}};
}

Json merges_of(const GgufKeys& keys, const std::vector<std::string>& tokens,
               const std::vector<int64_t>& kinds) {
  const auto scores = keys.numbers("tokenizer.ggml.scores");
  if (scores.size() < tokens.size()) keys.fail("tokenizer.ggml.scores", "not as many as tokens");
  std::vector<std::string> parts;
  std::vector<float> their_scores;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() > kLongestMergedToken) {
      if (kinds[id] == gguf_token::normal)
        keys.fail("tokenizer.ggml.tokens", fmt::format("a token of more than {} bytes", kLongestMergedToken));
      continue;
    }
    if (std::isnan(scores[id])) keys.fail("tokenizer.ggml.scores", "not a number");
    parts.push_back(tokens[id]);
    their_scores.push_back(static_cast<float>(scores[id]));
  }
  auto found = merges_of_scores(parts, their_scores);
  if (!found)
    keys.fail("tokenizer.ggml.tokens", "they are too long, or are made of each other in too many ways");
  Json merges = Json::array();
  for (auto& [left, right] : *found) merges.push_back(Json::array({std::move(left), std::move(right)}));
  return merges;
}

/// A BPE of SentencePiece, as transformers writes Llama 2's.
Json sentencepiece_parts(const GgufKeys& keys, const std::vector<std::string>& tokens,
                         const std::vector<int64_t>& kinds) {
  const Json to_mark{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", gguf_token::word_mark}};
  const Json from_mark{
      {"type", "Replace"}, {"pattern", {{"String", gguf_token::word_mark}}}, {"content", " "}};
  const Json to_bytes{{"type", "ByteFallback"}}, fuse{{"type", "Fuse"}};
  const Json strip{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  const Json prepend{{"type", "Prepend"}, {"prepend", gguf_token::word_mark}};
  const bool adds_blank = keys.flag("tokenizer.ggml.add_space_prefix", true);
  auto decoders = Json::array({from_mark, to_bytes, fuse});
  if (adds_blank) decoders.push_back(strip);
  const int64_t unk = gguf_token_id(keys, "unknown");
  const bool has_unk = unk >= 0 && unk < std::ssize(tokens);
  return {
      {"normalizer",
       adds_blank ? Json{{"type", "Sequence"}, {"normalizers", Json::array({prepend, to_mark})}} : to_mark},
      {"pre_tokenizer", nullptr},
      {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", has_unk ? Json(tokens[static_cast<size_t>(unk)]) : Json()},
        {"fuse_unk", true},
        {"byte_fallback", std::ranges::find(kinds, gguf_token::byte) != kinds.end()},
        {"ignore_merges", false},
        {"vocab", vocab_of(keys, tokens)},
        {"merges", merges_of(keys, tokens, kinds)}}}};
}

Json parts_of(const GgufTokenizerForm& kind, const GgufKeys& keys, std::vector<std::string>& tokens,
              const std::vector<int64_t>& kinds) {
  if (kind.name == "llama") return sentencepiece_parts(keys, tokens, kinds);
  if (kind.name == "gpt2") return byte_level_parts(keys, tokens);
  const int64_t unk = gguf_token_id(keys, "unknown");
  if (kind.name == "t5") return unigram_parts(keys, tokens, unk);
  for (size_t id = 0; id < tokens.size(); ++id) tokens[id] = word_piece_of(tokens[id], kinds[id]);
  if (unk < 0 || unk >= std::ssize(tokens)) fail_outside(keys, "unknown");
  return word_piece_parts(keys, vocab_of(keys, tokens), tokens[static_cast<size_t>(unk)]);
}

}  // namespace

int64_t gguf_token_id(const GgufKeys& keys, const std::string& name) {
  const auto* const kind = find_kind(keys.text("tokenizer.ggml.model", ""));
  int64_t usual = -1;
  for (const auto& [role, id] : kind ? kind->ids : std::vector<std::pair<std::string_view, int64_t>>()) {
    if (role == name) usual = id;
  }
  if (name == "cls" && kind && kind->name == "bert") usual = gguf_token_id(keys, "bos");
  const auto id = keys.integer(id_key(name), usual);
  // "None" is -1, which may be stored without a sign.
  constexpr int64_t none = 0xFFFFFFFF;
  return id == none ? -1 : id;
}

std::map<std::string, std::string> tokenizer_files(const GgufKeys& keys) {
  const auto& kind = kind_of(keys);
  constexpr size_t most_tokens = kMostTokenIds - 1;
  auto tokens = keys.texts("tokenizer.ggml.tokens");
  if (tokens.size() > most_tokens)
    keys.fail("tokenizer.ggml.tokens", fmt::format("more than {}", most_tokens));
  auto kinds = keys.has("tokenizer.ggml.token_type")
                   ? keys.integers("tokenizer.ggml.token_type")
                   : std::vector<int64_t>(tokens.size(), gguf_token::normal);
  if (kinds.size() != tokens.size()) keys.fail("tokenizer.ggml.token_type", "not as many as tokens");
  // The last ones may be rows of the embeddings that no token has.
  while (!kinds.empty() && kinds.back() == gguf_token::unused) {
    kinds.pop_back();
    tokens.pop_back();
  }
  auto file = parts_of(kind, keys, tokens, kinds);
  file["version"] = "1.0";
  file["truncation"] = file["padding"] = nullptr;
  file["added_tokens"] = added_tokens(tokens, kinds);
  file["post_processor"] = frame_of(keys, tokens);
  if (file["model"]["type"] == "BPE") {
    for (const char* const absent : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      file["model"][absent] = nullptr;
  }
  return {{"tokenizer.json", json_text(file)}, {"tokenizer_config.json", json_text(config_of(keys, tokens))}};
}

}  // namespace zoo
