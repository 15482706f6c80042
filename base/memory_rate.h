#pragma once
// How fast this machine reads memory.

#include <cstdint>

namespace zoo {

struct MemoryRateOptions {
  int64_t bytes = 1'000'000'000;  // that are allocated, and read in one round; more than any cache holds
  int rounds = 7;                 // at least one
  double seconds = 1e9;           // no round begins later than this after the first
};

/// Bytes in a second at which all threads of LibTorch together read numbers that lie one after the other: the
/// best of several rounds.
double memory_read_rate(const MemoryRateOptions& options = {});

}  // namespace zoo
