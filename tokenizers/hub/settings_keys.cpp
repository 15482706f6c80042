#include "tokenizers/hub/settings_keys.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// What this program reads: how texts are read and written, and the tokens with a meaning.
constexpr auto text_keys = std::to_array<std::string_view>(
    {"add_bos_token", "add_eos_token", "add_prefix_space", "clean_up_tokenization_spaces",
     "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", "do_lower_case",
     "frame_by_task", "legacy", "model_input_names", "replace_word_delimiter_char", "split_special_tokens",
     "strip_accents", "tokenize_chinese_chars", "truncation_side", "word_delimiter_token"});
constexpr auto token_keys = std::to_array<std::string_view>(
    {"added_tokens_decoder", "additional_special_tokens", "backend", "chat_template", "extra_ids",
     "extra_special_tokens", "model_specific_special_tokens", "separate_vocabs", "tokenizer_class"});

// What changes neither ids nor texts: how texts are padded and cut when someone asks for it,
constexpr auto padding_keys = std::to_array<std::string_view>(
    {"max_len", "max_length", "max_model_input_sizes", "model_max_length", "pad_to_max_length",
     "pad_to_multiple_of", "pad_token_box", "pad_token_label", "pad_type_id", "padding", "padding_side",
     "padding_strategy", "return_attention_mask", "return_tensors", "return_token_type_ids", "stride",
     "truncation", "truncation_strategy"});
// what a file was made from,
constexpr auto origin_keys = std::to_array<std::string_view>(
    {"_commit_hash", "_name_or_path", "auto_map", "cache_dir", "device_map", "from_slow", "init_inputs",
     "is_local", "local_files_only", "metadata", "model_type", "name_or_path", "processor_class",
     "pytorch_dump_format", "revision", "subfolder", "tokenizer_type", "torch_dtype",
     "transformers_version"});
// how it is opened and used,
constexpr auto use_keys = std::to_array<std::string_view>(
    {"chat_control_tokens", "do_normalize", "fix_mistral_regex", "response_schema", "response_template",
     "template", "token", "tool_parser_type", "trust_remote_code", "use_auth_token",
     "use_default_system_prompt", "use_fast", "verbose", "version"});
// and options of classes whose tokenizer.json says the same: of texts, and of vocabularies.
constexpr auto options_of_texts = std::to_array<std::string_view>(
    {"clean_text", "do_clean_text", "errors", "keep_accents", "language", "lowercase", "normalization",
     "only_label_first_subword", "predict_timestamps", "remove_space", "source_lang",
     "spaces_between_special_tokens", "split_by_punct", "suffix_first", "target_lang", "task",
     "trim_offsets"});
constexpr auto options_of_vocabularies = std::to_array<std::string_view>(
    {"cls_token_box", "dropout", "fill_token", "fuse_unk", "mask_token_sent", "max_input_chars_per_word",
     "min_frequency", "offset", "replacement", "replacement_char", "sep_token_box", "special_tokens",
     "special_tokens_attr", "unk_id", "unk_index", "vocab_size", "vocab_type", "wordpieces_prefix"});

bool is_read_or_harmless(std::string_view key) {
  const std::span<const std::string_view> lists[] = {
      text_keys, token_keys, padding_keys, origin_keys, use_keys, options_of_texts, options_of_vocabularies};
  return std::ranges::any_of(lists, [&](auto names) { return is_one_of(key, names); });
}

/// Classes that put a language's tokens around texts.
constexpr auto classes_of_languages =
    std::to_array<std::string_view>({"MBartTokenizer", "MBart50Tokenizer", "M2M100Tokenizer", "NllbTokenizer",
                                     "PLBartTokenizer", "SeamlessM4TTokenizer", "SMALL100Tokenizer"});

[[noreturn]] void refuse_key(std::string_view key, const SpecJson& value, std::string_view reason) {
  throw DataError(fmt::format("tokenizer_config.json: {}: {} {}", excerpt(key, 60),
                              excerpt(shown_json(value), 60), reason));
}

/// Whether a key is about something that only some files or classes read, and asks for nothing there.
bool is_without_effect(std::string_view key, const SpecJson& value, std::string_view type,
                       VocabularyFiles files) {
  const bool has_json = files == VocabularyFiles::tokenizer_json;
  if (key == "sp_model_kwargs") {
    if (!has_json && !value.empty()) refuse_key(key, value, "is not supported: remove its options");
    return true;
  }
  if (key == "do_basic_tokenize" || key == "never_split") {
    const bool is_usual = key == "never_split" ? value.empty() : value == true;
    if (!has_json && !is_usual) refuse_key(key, value, "is not supported");
    return true;
  }
  if (key == "src_lang" || key == "tgt_lang" || key == "legacy_behaviour" || key == "lang_codes" ||
      key == "language_codes") {
    if (is_one_of(type, classes_of_languages))
      refuse_key(key, value, fmt::format("is not supported: {} puts a language's tokens around texts", type));
    return true;
  }
  // Numbers and paths that older versions saved beside their tokens.
  return key.ends_with("_token_id") || key.ends_with("_token_type_id") || key.ends_with("_file") ||
         key.ends_with("_files_names");
}

}  // namespace

bool names_token(std::string_view key, const SpecJson& value) {
  // CodeLlama's fill_token is a mark in its users' texts, and wav2vec 2.0's word_delimiter_token is a blank.
  return key.ends_with("_token") && key != "fill_token" && key != "word_delimiter_token" &&
         (value.is_string() || value.is_object());
}

void check_tokenizer_keys(const SpecJson& config, std::string_view type, VocabularyFiles files) {
  for (const auto& [key, value] : config.items()) {
    if (value.is_null() || is_read_or_harmless(key)) continue;
    if (names_token(key, value) || is_without_effect(key, value, type, files)) continue;
    refuse_key(key, value, "is not known, and may change the tokens: remove the key if it does not");
  }
}

void check_token_map_keys(const SpecJson& map) {
  for (const auto& [key, value] : map.items()) {
    const bool is_list = key == "additional_special_tokens" || key == "extra_special_tokens";
    const bool is_blank = key == "word_delimiter_token";
    if (!is_list && !is_blank && !value.is_null() && !names_token(key, value))
      throw DataError(fmt::format("special_tokens_map.json: {}: this is no token", excerpt(key, 60)));
  }
}

std::vector<OrderedKey> keys_in_order(std::string_view text) {
  std::vector<OrderedKey> keys;
  std::string outer;
  const auto note = [&](int depth, SpecJson::parse_event_t event, const SpecJson& parsed) {
    if (event != SpecJson::parse_event_t::key || depth > 2) return true;
    auto key = parsed.get<std::string>();
    if (depth == 1) outer = key;
    keys.push_back({.object = depth == 1 ? "" : outer, .key = std::move(key)});
    return true;
  };
  [[maybe_unused]] const auto document = SpecJson::parse(text, note, /*allow_exceptions=*/false);
  return keys;
}

}  // namespace zoo
