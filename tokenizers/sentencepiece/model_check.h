#pragma once
// Models of SentencePiece from anywhere (sentencepiece_model.proto of the library).

#include <string>
#include <string_view>

namespace zoo {

/// Checks a serialised ModelProto before the library sees it, which trusts what it reads: it ends the
/// process, or reads beyond its memory, for models that its own trainer does not write. Returns what the
/// library is to read: the pieces, trainer_spec, normalizer_spec and denormalizer_spec. (Other parts do not
/// change an encoding, but the samples of self_test_data would be encoded.) Throws DataError "not a
/// SentencePiece model: reason".
std::string checked_sentencepiece_model(std::string_view model);

}  // namespace zoo
