// x + dropout(y) in CUDA C++, and the gradient of y. No mask is stored: the backward pass draws the same numbers again, with
// Philox4x32 of 7 rounds (Salmon et al. 2011), as the processor does (kernels/isa/dropout_loops.h). One counter has
// the 16 bits of 8 elements beside each other. The text needs no headers, and compiles as C++, too
// (tests/support/cuda_shim.h).

constexpr int kDropoutThreads = ZOO_BLOCK_THREADS;

/// The elements of one counter.
template <class T>
struct alignas(16) Eight {
  T values[8];
};

/// A number that is below `threshold` drops its element; others multiply it by `scale`.
struct DropoutNumbers {
  unsigned words[4];

  __device__ DropoutNumbers(unsigned long long seed, unsigned long long counter) {
    unsigned c0 = static_cast<unsigned>(counter), c1 = static_cast<unsigned>(counter >> 32), c2 = 0, c3 = 0;
    unsigned key0 = static_cast<unsigned>(seed), key1 = static_cast<unsigned>(seed >> 32);
    for (int round = 0; round < 7; ++round) {
      const unsigned long long product0 = 0xD2511F53ull * c0, product1 = 0xCD9E8D57ull * c2;
      c0 = static_cast<unsigned>(product1 >> 32) ^ c1 ^ key0;
      c2 = static_cast<unsigned>(product0 >> 32) ^ c3 ^ key1;
      c1 = static_cast<unsigned>(product1);
      c3 = static_cast<unsigned>(product0);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
  }
  __device__ float factor(int element, unsigned threshold, float scale) const {
    return (words[element / 2] >> (element % 2 * 16) & 0xFFFFu) >= threshold ? scale : 0.0f;
  }
};

/// seed: one number, which is read on the device, because a recorded step must draw others each time. n: eights.
template <class X, class Y>
__device__ inline void add_dropout_forward(const X* inputs, const Y* addends, X* outputs, const long long* seed,
                                           unsigned threshold, float scale, long long n) {
  const auto* const x = reinterpret_cast<const Eight<X>*>(inputs);
  const auto* const y = reinterpret_cast<const Eight<Y>*>(addends);
  auto* const out = reinterpret_cast<Eight<X>*>(outputs);
  const long long step = static_cast<long long>(gridDim.x) * kDropoutThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kDropoutThreads + threadIdx.x; i < n; i += step) {
    const DropoutNumbers numbers(static_cast<unsigned long long>(*seed), static_cast<unsigned long long>(i));
    const Eight<X> input = x[i];
    const Eight<Y> addend = y[i];
    Eight<X> sum;
    for (int j = 0; j < 8; ++j)
      set(sum.values[j], to_float(input.values[j]) + to_float(addend.values[j]) * numbers.factor(j, threshold, scale));
    out[i] = sum;
  }
}

template <class X, class Y>
__device__ inline void add_dropout_backward(const X* gradients, Y* addend_gradients, const long long* seed,
                                            unsigned threshold, float scale, long long n) {
  const auto* const d = reinterpret_cast<const Eight<X>*>(gradients);
  auto* const to_y = reinterpret_cast<Eight<Y>*>(addend_gradients);
  const long long step = static_cast<long long>(gridDim.x) * kDropoutThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kDropoutThreads + threadIdx.x; i < n; i += step) {
    const DropoutNumbers numbers(static_cast<unsigned long long>(*seed), static_cast<unsigned long long>(i));
    const Eight<X> gradient = d[i];
    Eight<Y> of_addend;
    for (int j = 0; j < 8; ++j)
      set(of_addend.values[j], to_float(gradient.values[j]) * numbers.factor(j, threshold, scale));
    to_y[i] = of_addend;
  }
}

#define ZOO_ADD_DROPOUT(suffix, X, Y)                                                                                  \
  extern "C" __global__ void __launch_bounds__(kDropoutThreads)                                                       \
      add_dropout_##suffix##_forward(const X* inputs, const Y* addends, X* outputs, const long long* seed,            \
                                     unsigned threshold, float scale, long long n) {                                  \
    add_dropout_forward<X, Y>(inputs, addends, outputs, seed, threshold, scale, n);                                   \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kDropoutThreads)                                                       \
      add_dropout_##suffix##_backward(const X* gradients, Y* addend_gradients, const long long* seed,                 \
                                      unsigned threshold, float scale, long long n) {                                 \
    add_dropout_backward<X, Y>(gradients, addend_gradients, seed, threshold, scale, n);                               \
  }
// The types of x and y.
ZOO_ADD_DROPOUT(float_float, float, float)
ZOO_ADD_DROPOUT(float_bf16, float, Bf16)
ZOO_ADD_DROPOUT(float_half, float, Half)
ZOO_ADD_DROPOUT(bf16_bf16, Bf16, Bf16)
ZOO_ADD_DROPOUT(half_half, Half, Half)
