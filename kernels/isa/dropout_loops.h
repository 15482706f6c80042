#pragma once
// Philox4x32 with 7 rounds (Salmon et al. 2011), and dropout with its numbers.

#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

// One call of the generator computes 16 counters at a time, which gives 128 numbers of 16 bits: one for each
// element of a block.
constexpr int64_t kCounters = kDropoutBlock / 8;

/// The random words of a block.
inline void random_words(uint64_t seed, uint64_t place, uint64_t block, uint32_t* words) {
  constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  constexpr int rounds = 7;
  for (int64_t lane = 0; lane < kCounters; ++lane) {
    const uint64_t counter = block * kCounters + static_cast<uint64_t>(lane);
    auto c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    auto c2 = static_cast<uint32_t>(place), c3 = static_cast<uint32_t>(place >> 32);
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < rounds; ++round) {
      const uint64_t product0 = uint64_t{multiplier0} * c0, product1 = uint64_t{multiplier1} * c2;
      c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
      c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
      c1 = static_cast<uint32_t>(product1);
      c3 = static_cast<uint32_t>(product0);
      key0 += weyl0;
      key1 += weyl1;
    }
    words[lane] = c0;
    words[kCounters + lane] = c1;
    words[2 * kCounters + lane] = c2;
    words[3 * kCounters + lane] = c3;
  }
}

/// The factors of a block: 0 or `scale`.
inline void factors(const DropoutMask& mask, uint64_t place, uint64_t block, float* out) {
  constexpr int64_t n_words = 4 * kCounters;
  uint32_t words[n_words];
  random_words(mask.seed, place, block, words);
  for (int64_t i = 0; i < n_words; ++i) {
    out[i] = (words[i] & 0xFFFF) >= mask.threshold ? mask.scale : 0.0F;
    out[n_words + i] = (words[i] >> 16) >= mask.threshold ? mask.scale : 0.0F;
  }
}

void dropout(const DropoutMask& mask, uint64_t place, const float* x, const float* y, float* out,
             int64_t begin, int64_t end) {
  float factor[kDropoutBlock];
  for (int64_t at = begin; at < end; at += kDropoutBlock) {
    factors(mask, place, static_cast<uint64_t>(at / kDropoutBlock), factor);
    const int64_t n = std::min(kDropoutBlock, end - at);
    if (n == kDropoutBlock && x != nullptr) {
      for (int64_t i = 0; i < kDropoutBlock; ++i) out[at + i] = x[at + i] + y[at + i] * factor[i];
    } else if (n == kDropoutBlock) {
      for (int64_t i = 0; i < kDropoutBlock; ++i) out[at + i] = y[at + i] * factor[i];
    } else {
      for (int64_t i = 0; i < n; ++i) out[at + i] = (x != nullptr ? x[at + i] : 0.0F) + y[at + i] * factor[i];
    }
  }
}

}  // namespace
}  // namespace zoo
