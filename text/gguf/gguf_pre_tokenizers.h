#pragma once
// How tokenizers of llama.cpp cut texts before a BPE of bytes: tokenizer.ggml.pre names it. The names are
// those that convert_hf_to_gguf.py of llama.cpp gives.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

struct GgufPreTokenizer {
  std::vector<std::string> names;            // the first one is written
  nlohmann::json pre_tokenizer, normalizer;  // of tokenizer.json
  bool ignores_merges = false;               // model.ignore_merges of tokenizer.json
  bool adds_bos = false;                     // bos stands before texts unless a file says otherwise
  /// Other forms of pre_tokenizer that mean the same.
  std::vector<nlohmann::json> also = {};
};

const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers();

/// Null if the name is not known.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

/// The one that cuts as the pre_tokenizer of a tokenizer.json does; null if there is none.
const GgufPreTokenizer* gguf_pre_tokenizer_of(const nlohmann::json& pre_tokenizer, bool ignores_merges);

}  // namespace zoo
