#pragma once
// The normalizer Precompiled: the rules of a SentencePiece model, as tokenizers applies them. They differ
// from SentencePiece's own: a grapheme of less than 6 bytes is replaced as a whole by what its first bytes
// say.

#include <optional>

#include <nlohmann/json.hpp>

#include "tokenizers/subwords/normalizer.h"

namespace zoo {

/// From {"precompiled_charsmap": "… in Base64"}; nothing for an empty one. Throws DataError for a damaged
/// one.
std::optional<Normalizer> make_precompiled(const nlohmann::json& part);

}  // namespace zoo
