// Small tokenizers of the Hub.

#include <string>

#include <fmt/format.h>

#include "tests/fuzz/targets.h"

namespace zoo::fuzz {
namespace {

constexpr const char* byte_level_json = R"({"version": "1.0", "truncation": null,
"added_tokens": [{"id": 12, "content": "<s>", "single_word": false, "lstrip": true, "rstrip": true,
  "normalized": false, "special": true}, {"id": 13, "content": "cat", "single_word": true, "normalized": true}],
"normalizer": {"type": "NFC"},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
  {"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"},
   "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]},
"post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
  "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
           {"Sequence": {"id": "B", "type_id": 1}}],
  "special_tokens": {"<s>": {"id": "<s>", "ids": [12], "tokens": ["<s>"]}}},
"decoder": {"type": "ByteLevel"},
"model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "fuse_unk": false,
  "byte_fallback": false, "ignore_merges": true, "vocab": {"a": 0, "c": 1, "t": 2, "Ġ": 3, "h": 4, "e": 5, "th": 6,
  "the": 7, "Ġthe": 8, "at": 9, "aa": 10, "aaaa": 11}, "merges": [["t", "h"], "th e", "Ġ the", "a t", "a a", "aa aa"]}})";

constexpr const char* byte_fallback_json =
    R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
  {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Lowercase"}, {"type": "StripAccents"}]},
"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
  {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
"model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "end_of_word_suffix": "",
  "vocab": {"<unk>": 0, "▁": 1, "a": 2, "<0x0A>": 3, "t": 4, "<0xC3>": 5, "at": 6}, "merges": ["a t"]}})";

constexpr const char* word_piece_json = R"({"added_tokens": [{"id": 1, "content": "[CLS]", "special": true}],
"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
  "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
  "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 3, "c": 4, "##at": 5}}})";

constexpr const char* unigram_json =
    R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true, "lstrip": true}],
"normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": ""}, {"type": "Nmt"},
  {"type": "NFKC"}, {"type": "ByteLevel"}, {"type": "Strip", "strip_left": true, "strip_right": true}]},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
  {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}, {"type": "FixedLength", "length": 3}]},
"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": true},
  {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": false}]},
"decoder": {"type": "CTC", "pad_token": "<s>", "word_delimiter_token": "▁", "cleanup": true},
"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
  "vocab": [["<s>", 0.0], ["▁", -1.5], ["the", -2], ["t", -3], ["▁t", -1e300], ["<0x41>", -9.0], ["a", -4.0]]}})";

constexpr const char* word_level_json = R"({"pre_tokenizer": {"type": "Whitespace"},
"model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "the": 1, "cat": 2}}})";

constexpr const char* gpt2_settings = R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true,
"clean_up_tokenization_spaces": true, "add_bos_token": true, "bos_token": {"content": "<s>", "lstrip": false},
"added_tokens_decoder": {"3": {"content": "<pad>", "special": true, "normalized": false}}, "pad_token": "<pad>"})";

}  // namespace

/// tokenizer.json, tokenizer_config.json, special_tokens_map.json, vocab.txt, vocab.json, merges.txt,
/// tokenizer.model, gpt2.tiktoken, config.json.
Seeds hub_seeds() {
  // Each part makes the text eight times longer.
  std::string growing = R"({"type": "Replace", "pattern": {"Regex": "."}, "content": "........"})";
  for (int i = 0; i < 20; ++i)
    growing += R"(, {"type": "Replace", "pattern": {"String": "."}, "content": "........"})";
  const auto bomb = fmt::format(
      R"({{"normalizer": {{"type": "Sequence", "normalizers": [{}]}}, "model": {{"type": "BPE", "vocab": {{".": 0}}, "merges": []}}}})",
      growing);
  return {join({unigram_json, "{}", "", "", "", ""}),
          join({word_level_json, "", "", "", "", ""}),
          join({"", "", "", "", "", "", "YQ== 0\nYg== 1\nYWI= 2\n", ""}),
          join({"", "", "", "", "", "", "", "YQ== 0\nYg== 1\nIA== 2\nIGE= 3\n"}),
          join({byte_level_json, "{}", "", "", "", ""}),
          join({byte_level_json, gpt2_settings, "", "", "", ""}),
          join({byte_fallback_json, R"({"tokenizer_class": "LlamaTokenizer", "unk_token": "<unk>"})", "", "",
                "", ""}),
          join({word_piece_json, R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})", "", "",
                "", ""}),
          join({"", R"({"do_lower_case": true})", R"({"unk_token": "[UNK]"})",
                "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n", "", ""}),
          join({word_piece_json, R"({"truncation_side": "left"})", "", "", "", "", "", "",
                R"({"model_type": "bert"})"}),
          join({"", R"({"tokenizer_class": "EsmTokenizer"})", "",
                "<cls>\n<pad>\n<eos>\n<unk>\nt\nhe\n-\n<mask>\n", "", ""}),
          join({"", gpt2_settings, "", "", R"({"a": 0, "Ġ": 1, "Ġa": 2, "<s>": 4})", "#version: 0.2\nĠ a\n"}),
          join({bomb, "", "", "", "", ""})};
}

}  // namespace zoo::fuzz
