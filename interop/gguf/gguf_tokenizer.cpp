#include "interop/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Kinds of tokens in tokenizer.ggml.token_type.
constexpr int64_t kControl = 3, kUserDefined = 4;

OrderedJson split(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

OrderedJson byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

OrderedJson sequence(OrderedJson::array_t parts) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

/// The pre-tokenizers of the names in tokenizer.ggml.pre, as their tokenizer.json has them
/// (convert_hf_to_gguf.py of llama.cpp gives the names).
OrderedJson pre_tokenizer_of(const GgufKeys& keys, const std::string& name) {
  constexpr std::string_view llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (name == "gpt-2") return byte_level(true);
  if (name == "llama-bpe") return sequence({split(llama3), byte_level(false)});
  if (name == "qwen2") return sequence({split(qwen2), byte_level(false)});
  if (name == "smollm")
    return sequence({{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true)});
  keys.fail("tokenizer.ggml.pre",
            fmt::format("'{}' is not known; known are gpt-2, llama-bpe, qwen2, smollm", excerpt(name)));
}

/// The texts of the special tokens, by the key of tokenizer_config.json.
OrderedJson config_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  constexpr auto names = std::to_array<std::pair<const char*, const char*>>(
      {{"tokenizer.ggml.bos_token_id", "bos_token"},
       {"tokenizer.ggml.eos_token_id", "eos_token"},
       {"tokenizer.ggml.unknown_token_id", "unk_token"},
       {"tokenizer.ggml.padding_token_id", "pad_token"}});
  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [key, name] : names) {
    const int64_t id = keys.integer(key, -1);
    if (id < 0) continue;
    if (id >= std::ssize(tokens)) keys.fail(key, "outside the vocabulary");
    config[name] = tokens[static_cast<size_t>(id)];
  }
  if (keys.has("tokenizer.chat_template")) config["chat_template"] = keys.text("tokenizer.chat_template");
  return config;
}

/// <bos> before each text, if the file says so.
OrderedJson post_processor_of(const GgufKeys& keys, const std::vector<std::string>& tokens) {
  if (!keys.flag("tokenizer.ggml.add_bos_token", false)) return nullptr;
  const int64_t bos = keys.integer("tokenizer.ggml.bos_token_id");
  if (bos < 0 || bos >= std::ssize(tokens)) keys.fail("tokenizer.ggml.bos_token_id", "outside the vocabulary");
  const auto& name = tokens[static_cast<size_t>(bos)];
  const OrderedJson before{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  const auto text = [](const char* id, int type) {
    return OrderedJson{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const OrderedJson special{{name, {{"id", name}, {"ids", {bos}}, {"tokens", {name}}}}};
  return {{"type", "TemplateProcessing"},
          {"single", {before, text("A", 0)}},
          {"pair", {before, text("A", 0), before, text("B", 1)}},
          {"special_tokens", special}};
}

OrderedJson added_tokens(const std::vector<std::string>& tokens, const std::vector<int64_t>& kinds) {
  OrderedJson added = OrderedJson::array();
  for (size_t id = 0; id < kinds.size(); ++id) {
    if (kinds[id] != kControl && kinds[id] != kUserDefined) continue;
    added.push_back({{"id", id},
                     {"content", tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", kinds[id] == kControl}});
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
  const auto tokens = keys.texts("tokenizer.ggml.tokens");
  const auto kinds = keys.has("tokenizer.ggml.token_type") ? keys.integers("tokenizer.ggml.token_type")
                                                           : std::vector<int64_t>(tokens.size(), 1);
  if (kinds.size() != tokens.size()) keys.fail("tokenizer.ggml.token_type", "not as many as tokens");
  OrderedJson vocab = OrderedJson::object();
  for (size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  if (vocab.size() != tokens.size()) keys.fail("tokenizer.ggml.tokens", "a token appears twice");
  const auto pre = keys.text("tokenizer.ggml.pre", "gpt-2");
  OrderedJson file{{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens", added_tokens(tokens, kinds)},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", pre_tokenizer_of(keys, pre)},
                   {"post_processor", post_processor_of(keys, tokens)},
                   {"decoder", byte_level(true)},
                   {"model",
                    {{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", nullptr},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", false},
                     {"byte_fallback", false},
                     {"ignore_merges", pre == "llama-bpe"},
                     {"vocab", std::move(vocab)},
                     {"merges", keys.texts("tokenizer.ggml.merges")}}}};
  if (pre == "qwen2") file["normalizer"] = {{"type", "NFC"}};
  return {{"tokenizer.json", file.dump()}, {"tokenizer_config.json", config_of(keys, tokens).dump()}};
}

}  // namespace zoo
