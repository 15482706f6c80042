#include "text/gguf/gguf_pre_tokenizers.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "tokenizers/subwords/known_patterns.h"

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

/// Cuts by each of the patterns in turn.
Json::array_t splits(std::initializer_list<std::string_view> patterns) {
  Json::array_t steps;
  for (const auto pattern : patterns) steps.push_back(split(pattern));
  return steps;
}

Json bytes_after(Json::array_t steps) {
  steps.push_back(byte_level(false));
  return sequence(std::move(steps));
}

Json single_digits() { return {{"type", "Digits"}, {"individual_digits", true}}; }

GgufPreTokenizer deepseek_llm() {
  auto steps = splits({"[\r\n]", patterns::deepseek_llm_letters, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
                       patterns::deepseek_characters});
  // Digits that are cut one by one have no merges, so it does not matter that llama.cpp keeps them together.
  auto published = steps;
  published.push_back(single_digits());
  steps.push_back(split("\\p{N}+"));
  return {.names = {"deepseek-llm"},
          .pre_tokenizer = bytes_after(std::move(steps)),
          .normalizer = nullptr,
          .also = {bytes_after(std::move(published))}};
}

GgufPreTokenizer deepseek_coder() {
  auto steps = splits({"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", patterns::deepseek_characters});
  steps.push_back(single_digits());
  return {.names = {"deepseek-coder"}, .pre_tokenizer = bytes_after(std::move(steps)), .normalizer = nullptr};
}

/// GPT-2's cuts between marks, and digits in threes.
GgufPreTokenizer falcon() {
  return {.names = {"falcon"},
          .pre_tokenizer = sequence({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                     byte_level(true),
                                     {{"type", "Digits"}, {"individual_digits", false}},
                                     split("[0-9][0-9][0-9]")}),
          .normalizer = nullptr};
}

// Several names stand for one pattern: models that were trained with it have got a name each.
std::vector<GgufPreTokenizer> make_all() {
  const Json nfc{{"type", "NFC"}};
  const auto llama3 = bytes_after(splits({patterns::llama3})), qwen2 = bytes_after(splits({patterns::qwen2}));
  const auto smollm = sequence({single_digits(), byte_level(true)});
  return {
      {.names = {"gpt-2", "mpt", "olmo", "phi-2", "jais", "exaone4", "trillion", "granite-docling",
                 "modern-bert", "gigachat", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "a.x-4.0",
                 "mellum"},
       .pre_tokenizer = byte_level(true),
       .normalizer = nullptr},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
       .pre_tokenizer = llama3,
       .normalizer = nullptr,
       .ignores_merges = true,
       .adds_bos = true},
      {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .pre_tokenizer = llama3, .normalizer = nullptr},
      {.names = {"qwen2", "deepseek-r1-qwen", "megrez"}, .pre_tokenizer = qwen2, .normalizer = nfc},
      {.names = {"stablelm2", "hunyuan", "kormo", "solar-open", "grok-2"},
       .pre_tokenizer = qwen2,
       .normalizer = nullptr},
      {.names = {"qwen35"}, .pre_tokenizer = bytes_after(splits({patterns::qwen35})), .normalizer = nfc},
      {.names = {"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b"},
       .pre_tokenizer = smollm,
       .normalizer = nullptr},
      {.names = {"command-r"}, .pre_tokenizer = smollm, .normalizer = nfc},
      {.names = {"tekken"},
       .pre_tokenizer = bytes_after(splits({patterns::tekken})),
       .normalizer = nullptr,
       .ignores_merges = true,
       .adds_bos = true},
      {.names = {"gpt-4o", "llama4", "kanana2"},
       .pre_tokenizer = bytes_after(splits({patterns::o200k})),
       .normalizer = nullptr},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       .pre_tokenizer =
           bytes_after(splits({"\\p{N}{1,3}", patterns::deepseek_v3_characters, patterns::deepseek})),
       .normalizer = nullptr},
      deepseek_llm(),
      deepseek_coder(),
      falcon()};
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
    const auto is_same = [&](const Json& form) { return steps_of(form) == steps; };
    return one.ignores_merges == ignores_merges &&
           (is_same(one.pre_tokenizer) || std::ranges::any_of(one.also, is_same));
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace zoo
