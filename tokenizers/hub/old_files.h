#pragma once
// Vocabularies from before there was tokenizer.json: vocab.txt (BERT, ESM), vocab.json with merges.txt
// (GPT-2).

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "tokenizers/hub/settings.h"

namespace zoo {

/// The tokenizer.json that transformers makes from these files; null if there are none. Throws DataError for
/// damaged ones.
nlohmann::json tokenizer_json_of_old_files(const std::map<std::string, std::string>& files,
                                           const TokenizerSettings& settings);

}  // namespace zoo
