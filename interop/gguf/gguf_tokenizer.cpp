#include "interop/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "data/text/hub/exported_vocabulary.h"
#include "interop/gguf/gguf_pre_tokenizers.h"
#include "interop/gguf/gguf_token_kinds.h"

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

/// The texts of the special tokens, by the key of tokenizer_config.json.
Json config_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  constexpr auto names =
      std::to_array<std::pair<const char*, const char*>>({{"tokenizer.ggml.bos_token_id", "bos_token"},
                                                          {"tokenizer.ggml.eos_token_id", "eos_token"},
                                                          {"tokenizer.ggml.unknown_token_id", "unk_token"},
                                                          {"tokenizer.ggml.padding_token_id", "pad_token"}});
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [key, name] : names) {
    const int64_t id = keys.integer(key, -1);
    if (id < 0) continue;
    if (id >= std::ssize(tokens)) keys.fail(key, "outside the vocabulary");
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

/// <bos> before each text and <eos> after it, if the file says so.
Json frame_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  TextFrame frame;
  const auto add = [&](const char* name, std::vector<int64_t>& to) {
    if (!keys.flag(fmt::format("tokenizer.ggml.add_{}_token", name), false)) return;
    const auto key = fmt::format("tokenizer.ggml.{}_token_id", name);
    const int64_t id = keys.integer(key);
    if (id < 0 || id >= std::ssize(tokens)) keys.fail(key, "outside the vocabulary");
    to.push_back(id);
    frame.between.push_back(id);
  };
  add("eos", frame.after);
  add("bos", frame.before);
  return post_processor_of(frame, [&](int64_t id) { return tokens[static_cast<size_t>(id)]; });
}

Json added_tokens(const std::vector<std::string>& tokens, const std::vector<int64_t>& kinds) {
  Json added = Json::array();
  for (size_t id = 0; id < kinds.size(); ++id) {
    if (kinds[id] != gguf_token::control && kinds[id] != gguf_token::user_defined) continue;
    added.push_back({{"id", id},
                     {"content", tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", kinds[id] == gguf_token::control}});
  }
  return added;
}

}  // namespace

std::map<std::string, std::string> tokenizer_files(const GgufKeys& keys) {
  const auto model = keys.text("tokenizer.ggml.model");
  if (model != "gpt2") {
    keys.fail("tokenizer.ggml.model",
              fmt::format("'{}' is not supported; gpt2, a BPE of bytes, is", excerpt(model)));
  }
  auto tokens = keys.texts("tokenizer.ggml.tokens");
  auto kinds = keys.has("tokenizer.ggml.token_type")
                   ? keys.integers("tokenizer.ggml.token_type")
                   : std::vector<int64_t>(tokens.size(), gguf_token::normal);
  if (kinds.size() != tokens.size()) keys.fail("tokenizer.ggml.token_type", "not as many as tokens");
  // The last ones may be rows of the embeddings that no token has.
  while (!kinds.empty() && kinds.back() == gguf_token::unused) {
    kinds.pop_back();
    tokens.pop_back();
  }
  Json vocab = Json::object();
  for (size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  if (vocab.size() != tokens.size()) keys.fail("tokenizer.ggml.tokens", "a token appears twice");
  const auto& pre = pre_tokenizer_of(keys);
  const Json bytes{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json file{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", added_tokens(tokens, kinds)},
                  {"normalizer", pre.normalizer},
                  {"pre_tokenizer", pre.pre_tokenizer},
                  {"post_processor", frame_of(keys, tokens)},
                  {"decoder", bytes},
                  {"model",
                   {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", nullptr},
                    {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr},
                    {"fuse_unk", false},
                    {"byte_fallback", false},
                    {"ignore_merges", pre.ignores_merges},
                    {"vocab", std::move(vocab)},
                    {"merges", keys.texts("tokenizer.ggml.merges")}}}};
  return {{"tokenizer.json", file.dump()}, {"tokenizer_config.json", config_of(keys, tokens).dump()}};
}

}  // namespace zoo
