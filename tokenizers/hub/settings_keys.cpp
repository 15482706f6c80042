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

/// What this program reads.
constexpr auto used_keys = std::to_array<std::string_view>({
    "add_bos_token",
    "add_eos_token",
    "add_prefix_space",
    "added_tokens_decoder",
    "additional_special_tokens",
    "backend",
    "chat_template",
    "clean_up_tokenization_spaces",
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
    "do_lower_case",
    "extra_ids",
    "extra_special_tokens",
    "frame_by_task",
    "legacy",
    "model_input_names",
    "model_specific_special_tokens",
    "separate_vocabs",
    "split_special_tokens",
    "strip_accents",
    "tokenize_chinese_chars",
    "tokenizer_class",
    "truncation_side",
});

/// What changes neither ids nor texts: how texts are padded and cut when someone asks for it, what a file was
/// made from, arguments of from_pretrained(), and options of classes whose tokenizer.json says the same.
constexpr auto harmless_keys = std::to_array<std::string_view>({
    "_commit_hash",
    "_name_or_path",
    "auto_map",
    "cache_dir",
    "chat_control_tokens",
    "clean_text",
    "cls_token_box",
    "device_map",
    "do_clean_text",
    "dropout",
    "errors",
    "fill_token",
    "fix_mistral_regex",
    "from_slow",
    "fuse_unk",
    "init_inputs",
    "is_local",
    "keep_accents",
    "language",
    "local_files_only",
    "lowercase",
    "mask_token_sent",
    "max_input_chars_per_word",
    "max_len",
    "max_length",
    "max_model_input_sizes",
    "metadata",
    "min_frequency",
    "model_max_length",
    "model_type",
    "name_or_path",
    "normalization",
    "offset",
    "only_label_first_subword",
    "pad_to_max_length",
    "pad_to_multiple_of",
    "pad_token_box",
    "pad_token_label",
    "pad_type_id",
    "padding",
    "padding_side",
    "padding_strategy",
    "predict_timestamps",
    "processor_class",
    "pytorch_dump_format",
    "remove_space",
    "replacement",
    "replacement_char",
    "response_schema",
    "response_template",
    "return_attention_mask",
    "return_tensors",
    "return_token_type_ids",
    "revision",
    "sep_token_box",
    "source_lang",
    "spaces_between_special_tokens",
    "special_tokens",
    "special_tokens_attr",
    "split_by_punct",
    "stride",
    "subfolder",
    "suffix_first",
    "target_lang",
    "task",
    "template",
    "token",
    "tokenizer_type",
    "tool_parser_type",
    "torch_dtype",
    "transformers_version",
    "trim_offsets",
    "truncation",
    "truncation_strategy",
    "trust_remote_code",
    "unk_id",
    "unk_index",
    "use_auth_token",
    "use_default_system_prompt",
    "use_fast",
    "verbose",
    "version",
    "vocab_size",
    "vocab_type",
    "wordpieces_prefix",
});

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

/// Notes the keys of all objects with the key of the object that they are in.
class KeyReader final : public nlohmann::json_sax<SpecJson> {
 public:
  std::vector<OrderedKey> take() { return std::move(keys_); }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override {
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t size) override { return start_object(size); }
  bool end_array() override { return end_object(); }
  bool key(string_t& name) override {
    if (depth_ == 1) keys_.push_back({.object = {}, .key = outer_ = name});
    if (depth_ == 2) keys_.push_back({.object = outer_, .key = name});
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::vector<OrderedKey> keys_;
  std::string outer_;
  int depth_ = 0;
};

}  // namespace

bool names_token(std::string_view key, const SpecJson& value) {
  // CodeLlama's fill_token is a mark in its users' texts.
  return key.ends_with("_token") && key != "fill_token" && (value.is_string() || value.is_object());
}

void check_tokenizer_keys(const SpecJson& config, std::string_view type, VocabularyFiles files) {
  for (const auto& [key, value] : config.items()) {
    if (value.is_null() || is_one_of(key, used_keys) || is_one_of(key, harmless_keys)) continue;
    if (names_token(key, value) || is_without_effect(key, value, type, files)) continue;
    refuse_key(key, value, "is not known, and may change the tokens: remove the key if it does not");
  }
}

void check_token_map_keys(const SpecJson& map) {
  for (const auto& [key, value] : map.items()) {
    const bool is_list = key == "additional_special_tokens" || key == "extra_special_tokens";
    if (!is_list && !value.is_null() && !names_token(key, value))
      throw DataError(fmt::format("special_tokens_map.json: {}: this is no token", excerpt(key, 60)));
  }
}

std::vector<OrderedKey> keys_in_order(std::string_view text) {
  KeyReader reader;
  SpecJson::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace zoo
