// Attention of one new token a row in CUDA C++, with all that stands between the product before and the one behind: norms
// of queries and keys, rotary positions, writing the cache, and attention over as many columns as the row has (Dao et
// al. 2023, "Flash-Decoding"). A block serves up to 8 heads of queries that share keys, and up to 256 columns; what
// blocks of the same heads find is put together by the last of them. Where a column is computed does not depend on other
// rows. The text needs no headers, and compiles as C++, too (tests/support/cuda_shim.h).

using zoo::DecodingAttentionCall;
using zoo::kColumnsOfABlock;
using zoo::kQueriesOfABlock;

constexpr int kAttentionThreads = ZOO_BLOCK_THREADS, kAttentionWarps = kAttentionThreads / ZOO_WARP_THREADS;
constexpr int kMostHeadDim = 256;
constexpr float kNothing = -1e30f;

/// A part of a softmax: the largest score, in powers of 2, the sum of weights beside it, and the weighted values.
struct SoftmaxPart {
  float largest, sum;
};

/// The factors for two parts that become one.
struct Merged {
  SoftmaxPart part;
  float of_first, of_second;

  __device__ Merged(const SoftmaxPart& a, const SoftmaxPart& b) {
    part.largest = a.largest > b.largest ? a.largest : b.largest;
    of_first = exp2f(a.largest - part.largest);
    of_second = exp2f(b.largest - part.largest);
    part.sum = a.sum * of_first + b.sum * of_second;
  }
};

/// The new token's vectors: those of the queries of the block, the key and the value, as numbers of type T have them.
template <class T>
struct NewVectors {
  float queries[kQueriesOfABlock][kMostHeadDim];
  alignas(16) T key[kMostHeadDim], value[kMostHeadDim];
};

/// Divides a vector of the head by its root mean square. Every warp takes part.
template <class T>
__device__ inline void normalise(float* vector, const float* gain, const DecodingAttentionCall& call, int lane) {
  float sum = 0.0f;
  for (int i = lane; vector && i < call.head_dim; i += ZOO_WARP_THREADS) sum += vector[i] * vector[i];
  const float scale = 1.0f / sqrtf(warp_sum(sum) / static_cast<float>(call.head_dim) + call.norm_eps);
  for (int i = lane; vector && i < call.head_dim; i += ZOO_WARP_THREADS)
    vector[i] = rounded_to<T>(vector[i] * scale * (gain[i] + call.gain_offset));
}

/// Turns the pairs of a vector by the angles of its row.
template <class T>
__device__ inline void turn_pairs(float* vector, const float* cosines, const float* sines, const DecodingAttentionCall& call) {
  for (int i = static_cast<int>(threadIdx.x); i < call.pairs; i += kAttentionThreads) {
    const int first = call.pairs_are_neighbours ? 2 * i : i, second = call.pairs_are_neighbours ? 2 * i + 1 : i + call.pairs;
    const float a = vector[first], b = vector[second];
    vector[first] = rounded_to<T>(a * cosines[i] - b * sines[i]);
    vector[second] = rounded_to<T>(b * cosines[i] + a * sines[i]);
  }
}

/// Reads, normalises and turns the vectors of a row: the first of the block's n_queries heads of queries is first_query.
template <class T>
__device__ inline void read_vectors(const DecodingAttentionCall& call, int row, int kv_head, int first_query, int n_queries,
                                    NewVectors<T>& to) {
  __shared__ float key[kMostHeadDim];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % ZOO_WARP_THREADS, warp = thread / ZOO_WARP_THREADS;
  const int width = call.head_dim;
  const T* const heads =
      static_cast<const T*>(call.heads) + static_cast<long long>(row) * (call.n_heads + 2 * call.n_kv_heads) * width;
  const T* const own_key = heads + (call.n_heads + kv_head) * width;
  const T* const own_value = own_key + call.n_kv_heads * width;
  for (int i = thread; i < kMostHeadDim; i += kAttentionThreads) {
    for (int q = 0; q < n_queries; ++q) to.queries[q][i] = i < width ? to_float(heads[(first_query + q) * width + i]) : 0.0f;
    if (i >= width) continue;
    key[i] = to_float(own_key[i]);
    to.value[i] = own_value[i];
  }
  __syncthreads();
  if (call.query_gain) {
    for (int first = 0; first <= n_queries; first += kAttentionWarps) {
      const int vector = first + warp;  // the last one is the key
      float* const numbers = vector < n_queries ? to.queries[vector] : vector == n_queries ? key : nullptr;
      normalise<T>(numbers, vector < n_queries ? call.query_gain : call.key_gain, call, lane);
    }
    __syncthreads();
  }
  if (call.cosines) {
    const float *const cosines = call.cosines + row * call.angles_stride, *const sines = call.sines + row * call.angles_stride;
    for (int q = 0; q < n_queries; ++q) turn_pairs<T>(to.queries[q], cosines, sines, call);
    turn_pairs<T>(key, cosines, sines, call);
    __syncthreads();
  }
  for (int i = thread; i < width; i += kAttentionThreads) set(to.key[i], key[i]);
  __syncthreads();
}

/// The output of a head from its parts: those of the blocks, or the only one.
__device__ inline float finished(const DecodingAttentionCall& call, int head, const SoftmaxPart& part, float sum_of_values) {
  if (!call.sinks) return sum_of_values / part.sum;
  const Merged all(part, {call.sinks[head] * kLog2E, 1.0f});
  return sum_of_values * all.of_first / all.part.sum;
}

/// Puts the parts of a head together, in their order: parts of (largest, sum, values).
template <class T>
__device__ inline void finish_head(const DecodingAttentionCall& call, int row, int head) {
  const int width = call.head_dim, stride = width + 2;
  const float* const parts = call.parts + (static_cast<long long>(row) * call.n_heads + head) * call.n_parts * stride;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kAttentionThreads) {
    SoftmaxPart all = {kNothing, 0.0f};
    float value = 0.0f;
    for (int p = 0; p < call.n_parts; ++p) {
      const volatile float* const part = parts + p * stride;
      const Merged merged(all, {part[0], part[1]});
      value = value * merged.of_first + part[2 + i] * merged.of_second;
      all = merged.part;
    }
    set(static_cast<T*>(call.outputs)[(static_cast<long long>(row) * call.n_heads + head) * width + i],
        finished(call, head, all, value));
  }
}

/// kQueries: as many as the block's heads of queries, or more.
template <class T, int kQueries>
__device__ inline void decoding_attention(const DecodingAttentionCall& call) {
  constexpr int kSize = Pack<T>::kSize;
  __shared__ NewVectors<T> news;
  __shared__ float values_of_warps[kAttentionWarps][kMostHeadDim];
  __shared__ SoftmaxPart parts_of_warps[kAttentionWarps];
  __shared__ unsigned n_before;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / ZOO_WARP_THREADS;
  const int group = call.n_heads / call.n_kv_heads, n_chunks = (group + kQueriesOfABlock - 1) / kQueriesOfABlock;
  int block = static_cast<int>(blockIdx.x);
  const int part = block % call.n_parts;
  block /= call.n_parts;
  const int chunk = block % n_chunks, kv_head = block / n_chunks % call.n_kv_heads, row = block / n_chunks / call.n_kv_heads;
  const int first_query = kv_head * group + chunk * kQueriesOfABlock;
  const int n_queries = group - chunk * kQueriesOfABlock < kQueriesOfABlock ? group - chunk * kQueriesOfABlock : kQueriesOfABlock;
  const int position = call.positions ? static_cast<int>(call.positions[row]) : call.position;
  read_vectors<T>(call, row, kv_head, first_query, n_queries, news);

  const long long cache = row * call.row_stride + kv_head * call.head_stride;
  T *const keys = static_cast<T*>(call.keys) + cache, *const values = static_cast<T*>(call.values) + cache;
  const int begin = part * kColumnsOfABlock;
  const int end = begin + kColumnsOfABlock < position + 1 ? begin + kColumnsOfABlock : position + 1;
  if (chunk == 0 && begin <= position && position < end) {
    for (int i = thread; i < call.head_dim; i += kAttentionThreads) {
      keys[static_cast<long long>(position) * call.head_dim + i] = news.key[i];
      values[static_cast<long long>(position) * call.head_dim + i] = news.value[i];
    }
  }

  // Some lanes share a column: each has 16 bytes of its key and of its value.
  const int n_packs = call.head_dim / kSize;
  int lanes = 1;
  while (lanes < n_packs) lanes *= 2;
  const int lane = thread % lanes, n_teams = kAttentionThreads / lanes, team = thread / lanes;
  const bool has_pack = lane < n_packs;
  SoftmaxPart softmax[kQueries];
  float sums[kQueries][kSize];
  for (int q = 0; q < kQueries; ++q) {
    softmax[q] = {kNothing, 0.0f};
    for (int j = 0; j < kSize; ++j) sums[q][j] = 0.0f;
  }
  for (int first = begin; first < end; first += n_teams) {
    const int column = first + team;
    const bool is_there = column < end;
    const bool is_new = column == position;  // which another block may be writing
    Pack<T> key = {}, value = {};
    if (is_there && has_pack) {
      const long long at = static_cast<long long>(column) * n_packs + lane;
      key = is_new ? reinterpret_cast<const Pack<T>*>(news.key)[lane] : reinterpret_cast<const Pack<T>*>(keys)[at];
      value = is_new ? reinterpret_cast<const Pack<T>*>(news.value)[lane] : reinterpret_cast<const Pack<T>*>(values)[at];
    }
    ZOO_UNROLL
    for (int q = 0; q < kQueries; ++q) {
      float score = 0.0f;
      for (int j = 0; j < kSize; ++j)
        score += news.queries[q][lane * kSize + j] * to_float(key.values[j]);
      for (int apart = lanes / 2; apart > 0; apart /= 2) score += warp_exchange(score, apart);
      score *= call.scale;
      if (call.softcap > 0.0f) score = call.softcap * tanhf(score / call.softcap);
      const Merged merged(softmax[q], {is_there ? score * kLog2E : kNothing, is_there ? 1.0f : 0.0f});
      softmax[q] = merged.part;
      for (int j = 0; j < kSize; ++j)
        sums[q][j] = sums[q][j] * merged.of_first + to_float(value.values[j]) * merged.of_second;
    }
  }

  ZOO_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    if (q >= n_queries) break;
    for (int apart = lanes; apart < ZOO_WARP_THREADS; apart *= 2) {
      const SoftmaxPart other = {warp_exchange(softmax[q].largest, apart), warp_exchange(softmax[q].sum, apart)};
      const Merged merged(softmax[q], other);
      for (int j = 0; j < kSize; ++j)
        sums[q][j] = sums[q][j] * merged.of_first + warp_exchange(sums[q][j], apart) * merged.of_second;
      softmax[q] = merged.part;
    }
    if (thread % ZOO_WARP_THREADS < n_packs) {
      for (int j = 0; j < kSize; ++j) values_of_warps[warp][lane * kSize + j] = sums[q][j];
      if (thread % ZOO_WARP_THREADS == 0) parts_of_warps[warp] = softmax[q];
    }
    __syncthreads();
    SoftmaxPart all = parts_of_warps[0];
    for (int w = 1; w < kAttentionWarps; ++w) all = Merged(all, parts_of_warps[w]).part;
    const int head = first_query + q;
    float* const to =
        call.n_parts > 1
            ? call.parts + ((static_cast<long long>(row) * call.n_heads + head) * call.n_parts + part) * (call.head_dim + 2)
            : nullptr;
    for (int i = thread; i < call.head_dim; i += kAttentionThreads) {
      float sum = 0.0f;
      for (int w = 0; w < kAttentionWarps; ++w)
        sum += values_of_warps[w][i] * exp2f(parts_of_warps[w].largest - all.largest);
      if (to) {
        to[2 + i] = sum;
      } else {
        set(static_cast<T*>(call.outputs)[(static_cast<long long>(row) * call.n_heads + head) * call.head_dim + i],
            finished(call, head, all, sum));
      }
    }
    if (to && thread == 0) {
      to[0] = all.largest;
      to[1] = all.sum;
    }
    __syncthreads();
  }
  if (call.n_parts == 1) return;

  __threadfence();  // what this block found is there before it counts itself
  __syncthreads();
  if (thread == 0) n_before = atomicAdd(call.n_done + block, 1u);
  __syncthreads();
  if (static_cast<int>(n_before) + 1 < call.n_parts) return;
  __threadfence();
  for (int q = 0; q < n_queries; ++q) finish_head<T>(call, row, first_query + q);
}

#define ZOO_DECODING_ATTENTION(name, T, queries)                                               \
  extern "C" __global__ void __launch_bounds__(kAttentionThreads) name##_##queries(DecodingAttentionCall call) { \
    decoding_attention<T, queries>(call);                                                      \
  }
#define ZOO_DECODING_ATTENTIONS(suffix, T)                        \
  ZOO_DECODING_ATTENTION(decoding_attention_##suffix, T, 1)       \
  ZOO_DECODING_ATTENTION(decoding_attention_##suffix, T, 4)       \
  ZOO_DECODING_ATTENTION(decoding_attention_##suffix, T, 8)
ZOO_DECODING_ATTENTIONS(float, float)
ZOO_DECODING_ATTENTIONS(bf16, Bf16)
ZOO_DECODING_ATTENTIONS(half, Half)
