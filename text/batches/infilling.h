#pragma once
// Documents in another order, so that a model learns to fill a gap between two texts.

#include <cstdint>
#include <span>

#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// How many documents are read in another order.
struct InfillingShares {
  double documents = 0;     // of all documents
  double suffix_first = 0;  // of these documents: read with the suffix before the prefix
};

/// Fill-in-the-middle (Bavarian et al. 2022) with StarCoder's tokens. A document p m s is read as
/// <fim_prefix> p <fim_suffix> s <fim_middle> m, or, with the suffix first, as
/// <fim_prefix> <fim_suffix> s <fim_middle> p m, in which the middle follows what it continues.
struct Infilling {
  InfillingShares shares;
  int64_t prefix = -1, suffix = -1, middle = -1;  // the three tokens
  int64_t end = -1;                               // the token that ends a document; -1: nothing does
};

/// What a vocabulary with <fim_prefix>, <fim_suffix> and <fim_middle> needs for this. Throws DataError if it
/// lacks them.
Infilling infilling_of(InfillingShares shares, const Tokenizer& tokenizer);

/// The coordinates of all random choices of an epoch.
struct InfillingDraw {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// Fills `out` with the stream's tokens from `begin` on, at least out.size() of them being there, with the
/// shares of the documents in the other orders. Whether a document is among them depends on the draw and its
/// number. Two places, drawn uniformly, cut what the window has of it: a token before, between or after. The
/// three marks take the room of tokens at the window's end. A document of which the window has too little
/// stays as it is, and so do the ends of documents.
void copy_infilled(const TokenStore& stream, const Infilling& infilling, InfillingDraw draw, int64_t begin,
                   std::span<int64_t> out);

}  // namespace zoo
