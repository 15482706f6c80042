#pragma once
// The numbers of fields and types in sentencepiece_model.proto of the library SentencePiece.

#include <cstdint>

namespace zoo::sentencepiece_field {

inline constexpr uint32_t pieces = 1, trainer = 2, normalizer = 3;                       // of the model
inline constexpr uint32_t piece_text = 1, piece_score = 2, piece_type = 3;               // of a piece
inline constexpr uint32_t model_type = 3, blanks_behind_words = 24, byte_fallback = 35;  // of the trainer
inline constexpr uint32_t charsmap = 2, adds_blank = 3, merges_blanks = 4;               // of the normalizer
inline constexpr uint64_t unigram = 1, bpe = 2;                                          // types of models
inline constexpr uint64_t user_defined = 4;                                              // a type of pieces

}  // namespace zoo::sentencepiece_field
