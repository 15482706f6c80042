#include "tokenizers/hub/old_files.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/subwords/known_patterns.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

/// Calls `use` with each line, without its end.
template <class Use>
void for_each_old_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

SpecJson token_and_id(const SpecJson& vocab, const std::string& token) {
  const auto found = vocab.find(token);
  if (found == vocab.end()) throw DataError(fmt::format("the vocabulary has no '{}'", excerpt(token, 40)));
  return SpecJson::array({token, *found});
}

/// The template that puts a frame around texts; `names`: of its tokens, by their ids.
SpecJson template_of(const TextFrame& frame, const std::map<int64_t, std::string>& names) {
  return SpecJson(post_processor_of(frame, [&](int64_t id) { return names.at(id); }));
}

SpecJson bert_document(std::string_view text, const TokenizerSettings& settings) {
  SpecJson vocab = SpecJson::object();
  int64_t id = 0;
  for_each_old_line(text, [&](std::string_view line) {
    if (find_invalid_utf8(line)) throw DataError(fmt::format("vocab.txt: line {} is not UTF-8", id + 1));
    vocab[std::string(line)] = id++;  // the last one counts, as in transformers
  });
  const auto token = [&](TokenRole role, const char* otherwise) {
    const auto named = settings.token(role);
    return named.empty() ? std::string(otherwise) : named;
  };
  const bool lowercase = settings.flag("do_lower_case", true);
  SpecJson normalizer = {{"type", "BertNormalizer"},
                         {"clean_text", true},
                         {"handle_chinese_chars", settings.flag("tokenize_chinese_chars", true)},
                         {"strip_accents", settings.flag("strip_accents", lowercase)},
                         {"lowercase", lowercase}};
  const auto sep = token_and_id(vocab, token(TokenRole::sep, "[SEP]"));
  const auto cls = token_and_id(vocab, token(TokenRole::cls, "[CLS]"));
  SpecJson model = {{"type", "WordPiece"}, {"unk_token", token(TokenRole::unk, "[UNK]")}};
  model["vocab"] = std::move(vocab);
  SpecJson document = {{"normalizer", std::move(normalizer)},
                       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                       {"post_processor", {{"type", "BertProcessing"}, {"sep", sep}, {"cls", cls}}},
                       {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}}};
  document["model"] = std::move(model);
  return document;
}

/// Each token is found wherever it stands in a text, the longest first. A word between tokens is unknown.
SpecJson esm_document(std::string_view text, const TokenizerSettings& settings) {
  SpecJson vocab = SpecJson::object(), added = SpecJson::array();
  int64_t id = 0;
  for_each_old_line(text, [&](std::string_view line) {
    if (find_invalid_utf8(line)) throw DataError(fmt::format("vocab.txt: line {} is not UTF-8", id + 1));
    const std::string token(line);
    const bool is_special =
        std::ranges::any_of(settings.roles, [&](const auto& role) { return role.second.content == token; });
    added.push_back({{"id", id}, {"content", token}, {"normalized", false}, {"special", is_special}});
    vocab[token] = id++;
  });
  const auto cls = settings.token(TokenRole::cls), eos = settings.token(TokenRole::eos);
  const int64_t cls_id = token_and_id(vocab, cls)[1], eos_id = token_and_id(vocab, eos)[1];
  // What Python's str.split() takes for a blank.
  SpecJson document = {{"added_tokens", std::move(added)}};
  document["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"Regex", "[\\s\x1c-\x1f]+"}}},
                               {"behavior", "Removed"},
                               {"invert", false}};
  document["post_processor"] =
      template_of({.before = {cls_id}, .between = {eos_id}, .after = {eos_id}, .second_segment = 0},
                  {{cls_id, cls}, {eos_id, eos}});
  document["model"] = {{"type", "WordPiece"},
                       {"unk_token", settings.token(TokenRole::unk)},
                       {"continuing_subword_prefix", ""}};
  document["model"]["vocab"] = std::move(vocab);
  return document;
}

SpecJson merges_in(std::string_view text) {
  SpecJson merges = SpecJson::array();
  bool is_first = true;
  for_each_old_line(text, [&](std::string_view line) {
    const bool is_version = std::exchange(is_first, false) && line.starts_with("#version");
    if (is_version || line.empty()) return;
    if (find_invalid_utf8(line)) throw DataError("merges.txt is not UTF-8");
    merges.push_back(std::string(line));
  });
  return merges;
}

SpecJson gpt2_document(const std::map<std::string, std::string>& files, const TokenizerSettings& settings) {
  SpecJson vocab = json_file(files, "vocab.json");
  const bool is_qwen = settings.type == "Qwen2Tokenizer";
  const bool is_roberta = settings.roles.contains(TokenRole::cls) && settings.roles.contains(TokenRole::sep);
  const bool adds_blank = settings.flag("add_prefix_space", false);
  SpecJson bytes = {{"type", "ByteLevel"}, {"add_prefix_space", adds_blank}};
  SpecJson document = {{"decoder", {{"type", "ByteLevel"}}}, {"normalizer", nullptr}};
  if (is_qwen) {
    bytes["use_regex"] = false;
    const SpecJson split = {{"type", "Split"},
                            {"pattern", {{"Regex", patterns::qwen2}}},
                            {"behavior", "Isolated"},
                            {"invert", false}};
    document["normalizer"] = {{"type", "NFC"}};
    document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", SpecJson::array({split, bytes})}};
  } else {
    document["pre_tokenizer"] = bytes;
  }
  document["post_processor"] = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  if (is_roberta) {
    document["post_processor"] = {{"type", "RobertaProcessing"},
                                  {"add_prefix_space", adds_blank},
                                  {"sep", token_and_id(vocab, settings.token(TokenRole::sep))},
                                  {"cls", token_and_id(vocab, settings.token(TokenRole::cls))}};
  } else if (settings.flag("add_bos_token", false)) {
    const auto bos = settings.token(TokenRole::bos);
    const int64_t id = token_and_id(vocab, bos)[1];
    document["post_processor"] = template_of({.before = {id}, .between = {}, .after = {}}, {{id, bos}});
  }
  document["model"] = {{"type", "BPE"}, {"merges", merges_in(files.at("merges.txt"))}};
  document["model"]["vocab"] = std::move(vocab);
  return document;
}

/// As CLIPConverter of transformers: words end with a suffix.
SpecJson clip_document(const std::map<std::string, std::string>& files, const TokenizerSettings& settings) {
  SpecJson vocab = json_file(files, "vocab.json");
  const SpecJson normalizers = {{{"type", "NFC"}},
                                {{"type", "Replace"}, {"pattern", {{"Regex", R"(\s+)"}}}, {"content", " "}},
                                {{"type", "Lowercase"}}};
  const SpecJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", patterns::clip}}}, {"behavior", "Removed"}, {"invert", true}};
  const SpecJson bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  SpecJson document = {
      {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", SpecJson::array({split, bytes})}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"post_processor",
       {{"type", "RobertaProcessing"},
        {"trim_offsets", false},
        {"add_prefix_space", false},
        {"sep", token_and_id(vocab, settings.token(TokenRole::eos))},
        {"cls", token_and_id(vocab, settings.token(TokenRole::bos))}}}};
  document["model"] = {{"type", "BPE"},
                       {"unk_token", settings.token(TokenRole::unk)},
                       {"end_of_word_suffix", "</w>"},
                       {"merges", merges_in(files.at("merges.txt"))}};
  document["model"]["vocab"] = std::move(vocab);
  return document;
}

}  // namespace

SpecJson tokenizer_json_of_old_files(const std::map<std::string, std::string>& files,
                                     const TokenizerSettings& settings) {
  if (const auto file = files.find("vocab.txt"); file != files.end())
    return settings.type == "EsmTokenizer" ? esm_document(file->second, settings)
                                           : bert_document(file->second, settings);
  if (files.contains("vocab.json") && files.contains("merges.txt"))
    return settings.type == "CLIPTokenizer" ? clip_document(files, settings) : gpt2_document(files, settings);
  return nullptr;
}

}  // namespace zoo
