#pragma once
// A model of SentencePiece as a tokenizer.json, as transformers converts it.

#include <nlohmann/json.hpp>

#include "tokenizers/hub/settings.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {

/// The document for spiece.model or tokenizer.model, if it is a Unigram or a BPE; null for other files.
/// Throws DataError for a damaged model, ConfigError for a BPE that llama.cpp does not read.
nlohmann::json sentencepiece_document(const HubFiles& files, const TokenizerSettings& settings);

}  // namespace zoo
