#include "tokenizers/hub/exported_vocabulary.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/json_document.h"
#include "tokenizers/subwords/byte_level.h"

namespace zoo {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson vocab_of(const ExportedVocabulary& vocabulary) {
  OrderedJson ids = OrderedJson::object();
  int64_t id = 0;
  for (const auto& token : vocabulary.special) ids[token.content] = id++;
  for (const auto& symbol : vocabulary.symbols) {
    ids[vocabulary.kind == SymbolKind::byte ? as_characters(symbol) : symbol] = id++;
  }
  return ids;
}

OrderedJson model_of(const ExportedVocabulary& vocabulary) {
  if (vocabulary.kind == SymbolKind::character)
    return {{"type", "WordLevel"}, {"vocab", vocab_of(vocabulary)}, {"unk_token", "<unk>"}};
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocab_of(vocabulary)},
          {"merges", OrderedJson::array()}};
}

/// One piece for each symbol.
OrderedJson pre_tokenizer_of(SymbolKind kind) {
  if (kind == SymbolKind::byte)
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return {
      {"type", "Split"}, {"pattern", {{"Regex", R"([\s\S])"}}}, {"behavior", "Isolated"}, {"invert", false}};
}

OrderedJson decoder_of(SymbolKind kind) {
  if (kind == SymbolKind::byte)
    return {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"type", "Fuse"}};
}

}  // namespace

bool is_frame_of_encoder(const TextFrame& frame, const std::vector<ExportedToken>& tokens) {
  return std::ranges::any_of(tokens, [&](const ExportedToken& token) {
    return (token.role == "cls_token" || token.role == "sep_token") && frame.contains(token.id);
  });
}

OrderedJson added_tokens_of(const std::vector<ExportedToken>& tokens, const TextFrame& frame,
                            BlanksBeforeMask blanks) {
  const bool takes_blanks = blanks == BlanksBeforeMask::belong_to_mask && is_frame_of_encoder(frame, tokens);
  OrderedJson added = OrderedJson::array();
  for (const auto& token : tokens) {
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", false},
                     {"lstrip", takes_blanks && token.role == "mask_token"},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

OrderedJson folding_steps() {
  return {{{"type", "Replace"}, {"pattern", {{"String", "İ"}}}, {"content", "i"}}, {{"type", "Lowercase"}}};
}

OrderedJson model_input_names_of(const TextFrame& frame) {
  if (frame.second_segment != 0 && !frame.between.empty())
    return {"input_ids", "token_type_ids", "attention_mask"};
  return {"input_ids", "attention_mask"};
}

OrderedJson config_of(const std::vector<ExportedToken>& tokens, const TextFrame& frame) {
  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"clean_up_tokenization_spaces", false},
                     {"split_special_tokens", !is_frame_of_encoder(frame, tokens)},
                     {"model_input_names", model_input_names_of(frame)}};
  for (const auto& token : tokens) config[token.role] = token.content;
  return config;
}

OrderedJson post_processor_of(const TextFrame& frame, const std::function<std::string(int64_t id)>& name_of) {
  if (frame.n_tokens_of_pair() == 0) return nullptr;
  OrderedJson used = OrderedJson::object();
  const auto special = [&](const std::vector<int64_t>& ids, int64_t segment, OrderedJson& to) {
    for (const int64_t id : ids) {
      const auto name = name_of(id);
      used[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
      to.push_back({{"SpecialToken", {{"id", name}, {"type_id", segment}}}});
    }
  };
  const auto text = [](const char* name, int64_t segment, OrderedJson& to) {
    to.push_back({{"Sequence", {{"id", name}, {"type_id", segment}}}});
  };
  OrderedJson single = OrderedJson::array(), pair = OrderedJson::array();
  special(frame.before, 0, single);
  text("A", 0, single);
  special(frame.after, 0, single);
  special(frame.before, 0, pair);
  text("A", 0, pair);
  special(frame.between, 0, pair);
  text("B", frame.second_segment, pair);
  special(frame.after, frame.second_segment, pair);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", used}};
}

std::map<std::string, std::string> export_vocabulary(const ExportedVocabulary& vocabulary) {
  const auto name_of = [&](int64_t id) { return vocabulary.special.at(static_cast<size_t>(id)).content; };
  const bool folds = vocabulary.letters == LetterCase::folded;
  const OrderedJson tokenizer{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens_of(vocabulary.special, vocabulary.frame, BlanksBeforeMask::stay)},
      {"normalizer",
       folds ? OrderedJson{{"type", "Sequence"}, {"normalizers", folding_steps()}} : OrderedJson()},
      {"pre_tokenizer", pre_tokenizer_of(vocabulary.kind)},
      {"post_processor", post_processor_of(vocabulary.frame, name_of)},
      {"decoder", decoder_of(vocabulary.kind)},
      {"model", model_of(vocabulary)}};
  return {{"tokenizer.json", json_text(tokenizer, 2) + "\n"},
          {"tokenizer_config.json", json_text(config_of(vocabulary.special, vocabulary.frame), 2) + "\n"}};
}

}  // namespace zoo
