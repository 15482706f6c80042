#pragma once
// Documents in another order, so that a model learns to fill a gap between two texts.

#include <cstdint>
#include <span>

#include "data/text/token_store.h"
#include "data/text/tokenizer.h"

namespace zoo {

/// Fill-in-the-middle (Bavarian et al. 2022) in the order prefix, suffix, middle, with StarCoder's tokens: a
/// document p m s is read as <fim_prefix> p <fim_suffix> s <fim_middle> m.
struct Infilling {
  double share = 0;                               // of the documents
  int64_t prefix = -1, suffix = -1, middle = -1;  // the three tokens
  int64_t end = -1;                               // the token that ends a document; -1: nothing does
};

/// What a vocabulary with <fim_prefix>, <fim_suffix> and <fim_middle> needs for this. Throws DataError if it
/// lacks them.
Infilling infilling_of(double share, const Tokenizer& tokenizer);

/// The coordinates of all random choices of an epoch.
struct InfillingDraw {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// Fills `out` with the stream's tokens from `begin` on, at least out.size() of them being there, with the
/// share of the documents in the other order. Whether a document is among them depends on the draw and its
/// number. Two places, drawn uniformly, cut what the window has of it: a token before, between or after. The
/// three marks take the room of tokens at the window's end. A document of which the window has too little
/// stays as it is, and so do the ends of documents.
void copy_infilled(const TokenStore& stream, const Infilling& infilling, InfillingDraw draw, int64_t begin,
                   std::span<int64_t> out);

}  // namespace zoo
