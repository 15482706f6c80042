#include "interop/gguf/gguf_pre_tokenizers.h"

#include <algorithm>
#include <utility>

#include "data/text/subwords/known_patterns.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

Json split(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

Json byte_level(bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json sequence(Json::array_t parts) { return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}}; }

std::vector<GgufPreTokenizer> make_all() {
  return {{.names = {"gpt-2"}, .pre_tokenizer = byte_level(true), .normalizer = nullptr},
          {.names = {"llama-bpe", "llama3", "llama-v3"},
           .pre_tokenizer = sequence({split(patterns::llama3), byte_level(false)}),
           .normalizer = nullptr,
           .ignores_merges = true},
          {.names = {"qwen2", "deepseek-r1-qwen"},
           .pre_tokenizer = sequence({split(patterns::qwen2), byte_level(false)}),
           .normalizer = {{"type", "NFC"}}},
          {.names = {"smollm", "starcoder", "refact"},
           .pre_tokenizer = sequence({{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true)}),
           .normalizer = nullptr}};
}

/// The steps of a pre-tokenizer, without sequences in sequences and options that do not change the tokens.
Json steps_of(const Json& part) {
  auto steps = Json::array();
  if (!part.is_object()) return steps;
  if (part.value("type", "") != "Sequence") {
    auto step = part;
    step.erase("trim_offsets");
    if (step.value("type", "") == "ByteLevel" && !step.contains("use_regex")) step["use_regex"] = true;
    steps.push_back(std::move(step));
    return steps;
  }
  for (const auto& inner : part.value("pretokenizers", Json::array())) {
    for (auto& step : steps_of(inner)) steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers() {
  static const auto all = make_all();
  return all;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  const auto& all = gguf_pre_tokenizers();
  const auto found = std::ranges::find_if(
      all, [&](const auto& one) { return std::ranges::find(one.names, name) != one.names.end(); });
  return found == all.end() ? nullptr : &*found;
}

const GgufPreTokenizer* gguf_pre_tokenizer_of(const Json& pre_tokenizer, bool ignores_merges) {
  const auto& all = gguf_pre_tokenizers();
  const auto steps = steps_of(pre_tokenizer);
  const auto found = std::ranges::find_if(all, [&](const auto& one) {
    return one.ignores_merges == ignores_merges && steps_of(one.pre_tokenizer) == steps;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace zoo
