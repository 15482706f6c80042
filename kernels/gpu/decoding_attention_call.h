#pragma once
// The arguments of the kernel for attention in decoding (decoding_attention.cu). The host and the text both
// read this file, so it includes nothing.

namespace zoo {

/// Columns of the cache that one block reads.
constexpr int kColumnsOfABlock = 256;
/// Heads of queries that a block serves at once.
constexpr int kQueriesOfABlock = 8;

struct DecodingAttentionCall {
  const void* heads = nullptr;  // (n_rows, (H + 2K) · Dh): queries, keys and values of the new tokens
  void *keys = nullptr, *values = nullptr;    // (n_rows, K, capacity, Dh): the new tokens are written, too
  long long row_stride = 0, head_stride = 0;  // of keys and values, in numbers
  const long long* positions =
      nullptr;  // (n_rows): the columns of the new tokens; null: all are at `position`
  const float *cosines = nullptr, *sines = nullptr;        // (n_rows or 1, pairs); null: nothing is rotated
  const float *query_gain = nullptr, *key_gain = nullptr;  // (Dh): RMS norms of each head; null: none
  const float* sinks = nullptr;                            // (H); null: none
  void* outputs = nullptr;                                 // (n_rows, H · Dh)
  float* parts = nullptr;      // (n_rows, H, n_parts, Dh + 2); null if n_parts is 1
  unsigned* n_done = nullptr;  // (blocks / n_parts) zeros; null if n_parts is 1
  int position = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, pairs = 0;
  int angles_stride = 0;         // from one row to the next; 0: all have the same
  int pairs_are_neighbours = 0;  // the elements 2i and 2i+1 are a pair, not i and i+pairs
  int n_parts = 1;               // blocks that share the columns of a row and its heads
  float scale = 1.0f, softcap = 0.0f, norm_eps = 0.0f, gain_offset = 0.0f;
};

}  // namespace zoo
