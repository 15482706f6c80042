#include "tokenizers/hub/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "tokenizers/hub/tiktoken.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

/// AutoTokenizer's class for a model_type. Not listed: where a tokenizer.json counts as it is, and where the
/// files alone tell the class (llama, mistral, marian).
constexpr auto classes_of_models = std::to_array<std::pair<std::string_view, const char*>>({
    {"bart", "BartTokenizer"},
    {"bert", "BertTokenizer"},
    {"big_bird", "BigBirdTokenizer"},
    {"clip", "CLIPTokenizer"},
    {"convbert", "ConvBertTokenizer"},
    {"data2vec-text", "RobertaTokenizer"},
    {"distilbert", "DistilBertTokenizer"},
    {"electra", "ElectraTokenizer"},
    {"ernie", "BertTokenizer"},
    {"esm", "EsmTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_neo", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"gptj", "GPT2Tokenizer"},
    {"hubert", "Wav2Vec2CTCTokenizer"},
    {"led", "LEDTokenizer"},
    {"longformer", "LongformerTokenizer"},
    {"mobilebert", "MobileBertTokenizer"},
    {"mvp", "MvpTokenizer"},
    {"opt", "GPT2Tokenizer"},
    {"pegasus", "PegasusTokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"roberta-prelayernorm", "RobertaTokenizer"},
    {"siglip", "SiglipTokenizer"},
    {"t5", "T5Tokenizer"},
    {"wav2vec2", "Wav2Vec2CTCTokenizer"},
    {"whisper", "WhisperTokenizer"},
});

std::string without_fast(std::string type) {
  constexpr std::string_view fast = "Fast";
  if (type.ends_with(fast)) type.resize(type.size() - fast.size());
  return type;
}

/// A text of the model's config.json; empty if it has none.
std::string text_of_model(const std::map<std::string, std::string>& files, const char* key) {
  const auto config = json_file(files, "config.json");
  if (config.is_null()) return {};
  const auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// What the model's config.json says; empty if it says nothing.
std::string class_by_model(const std::map<std::string, std::string>& files) {
  if (auto type = text_of_model(files, "tokenizer_class"); !type.empty())
    return without_fast(std::move(type));
  const auto found = std::ranges::find(classes_of_models, text_of_model(files, "model_type"),
                                       [](const auto& entry) { return entry.first; });
  return found == classes_of_models.end() ? "" : found->second;
}

/// The class that reads such files, where no file names one.
std::string type_by_files(const std::map<std::string, std::string>& files) {
  if (files.contains("tokenizer.json")) return {};
  if (files.contains("source.spm")) return "MarianTokenizer";
  if (files.contains("spiece.model")) return "T5Tokenizer";
  if (const auto model = files.find("tokenizer.model"); model != files.end())
    return is_tiktoken_file(model->second) ? "" : "LlamaTokenizer";
  if (files.contains("vocab.txt")) return "BertTokenizer";
  return files.contains("merges.txt") ? "GPT2Tokenizer" : "";
}

}  // namespace

bool is_character_class(std::string_view type) {
  return type == "Wav2Vec2CTCTokenizer" || type == "Wav2Vec2Tokenizer";
}

std::map<TokenRole, AddedToken> roles_of_class(std::string_view type) {
  using enum TokenRole;
  std::map<TokenRole, AddedToken> roles;
  const auto set = [&](TokenRole role, const char* content) {
    roles[role] = {.content = content, .normalized = false, .special = true};
  };
  static constexpr auto bert_like =
      std::to_array<std::string_view>({"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer",
                                       "MobileBertTokenizer", "ConvBertTokenizer"});
  static constexpr auto roberta_like = std::to_array<std::string_view>(
      {"RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer", "MvpTokenizer"});
  if (std::ranges::find(bert_like, type) != bert_like.end()) {
    set(unk, "[UNK]");
    set(sep, "[SEP]");
    set(pad, "[PAD]");
    set(cls, "[CLS]");
    set(mask, "[MASK]");
  } else if (std::ranges::find(roberta_like, type) != roberta_like.end()) {
    set(bos, "<s>");
    set(eos, "</s>");
    set(unk, "<unk>");
    set(sep, "</s>");
    set(pad, "<pad>");
    set(cls, "<s>");
    set(mask, "<mask>");
    roles[mask].lstrip = true;
  } else if (type == "BigBirdTokenizer") {
    set(bos, "<s>");
    set(eos, "</s>");
    set(unk, "<unk>");
    set(sep, "[SEP]");
    set(pad, "<pad>");
    set(cls, "[CLS]");
    set(mask, "[MASK]");
    roles[mask].lstrip = true;
  } else if (type == "EsmTokenizer") {
    set(unk, "<unk>");
    set(pad, "<pad>");
    set(cls, "<cls>");
    set(mask, "<mask>");
    // It stands where other encoders have a separator.
    for (const auto role : {eos, sep}) set(role, "<eos>");
  } else if (type == "GPT2Tokenizer" || type == "GPTNeoXTokenizer" || type == "WhisperTokenizer") {
    for (const auto role : {bos, eos, unk}) set(role, "<|endoftext|>");
  } else if (type == "CLIPTokenizer") {
    set(bos, "<|startoftext|>");
    for (const auto role : {eos, unk, pad}) set(role, "<|endoftext|>");
  } else if (type == "SiglipTokenizer") {
    for (const auto role : {eos, pad}) set(role, "</s>");
    set(unk, "<unk>");
    for (auto& [role, token] : roles) token.lstrip = token.rstrip = true;
  } else if (type == "Qwen2Tokenizer") {
    for (const auto role : {eos, unk, pad}) set(role, "<|endoftext|>");
  } else if (type == "T5Tokenizer" || type == "MarianTokenizer") {
    set(eos, "</s>");
    set(unk, "<unk>");
    set(pad, "<pad>");
  } else if (type == "PegasusTokenizer") {
    set(eos, "</s>");
    set(unk, "<unk>");
    set(pad, "<pad>");
    set(mask, "<mask_2>");
  } else if (is_character_class(type)) {
    set(bos, "<s>");
    set(eos, "</s>");
    set(unk, "<unk>");
    set(pad, "<pad>");
  } else if (type == "LlamaTokenizer" || type == "CodeLlamaTokenizer") {
    set(bos, "<s>");
    set(eos, "</s>");
    set(unk, "<unk>");
  } else if (type == "GemmaTokenizer") {
    set(bos, "<bos>");
    set(eos, "<eos>");
    set(unk, "<unk>");
    set(pad, "<pad>");
  }
  return roles;
}

std::string tokenizer_class_of(const std::map<std::string, std::string>& files, const SpecJson& config) {
  auto type = without_fast(option(config, "tokenizer_class", ""));
  if (type.empty()) type = class_by_model(files);
  if (type == "GemmaTokenizer" && text_of_model(files, "model_type") == "siglip")
    throw DataError(
        "tokenizer_config.json: the tokenizer of SigLIP 2 is not supported, which reads texts in lower case "
        "without saying so in its files: choose a SigLIP model with a SiglipTokenizer");
  return type.empty() ? type_by_files(files) : type;
}

void write_down_class(std::map<std::string, std::string>& files) {
  const auto config = json_file(files, "tokenizer_config.json");
  if (config.is_object() && !option(config, "tokenizer_class", "").empty()) return;
  if (const auto type = class_by_model(files); !type.empty()) set_setting(files, "tokenizer_class", type);
}

}  // namespace zoo
