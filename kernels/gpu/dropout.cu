// x + dropout(y) in CUDA C++, and the gradient of y. No mask is stored: the backward pass draws the same numbers again
// (dropout_numbers.cu). The text needs no headers, and compiles as C++, too (tests/support/cuda_shim.h).

constexpr int kDropoutThreads = ZOO_BLOCK_THREADS;

/// n: eights.
template <class X, class Y>
__device__ inline void add_dropout_forward(const X* inputs, const Y* addends, X* outputs, const DropoutRule& rule,
                                           long long n) {
  const auto* const x = reinterpret_cast<const Eight<X>*>(inputs);
  const auto* const y = reinterpret_cast<const Eight<Y>*>(addends);
  auto* const out = reinterpret_cast<Eight<X>*>(outputs);
  const long long step = static_cast<long long>(gridDim.x) * kDropoutThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kDropoutThreads + threadIdx.x; i < n; i += step)
    out[i] = add_dropped(x[i], y[i], rule, i);
}

template <class X, class Y>
__device__ inline void add_dropout_backward(const X* gradients, Y* addend_gradients, const DropoutRule& rule,
                                            long long n) {
  const auto* const d = reinterpret_cast<const Eight<X>*>(gradients);
  auto* const to_y = reinterpret_cast<Eight<Y>*>(addend_gradients);
  const long long step = static_cast<long long>(gridDim.x) * kDropoutThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kDropoutThreads + threadIdx.x; i < n; i += step) {
    const DropoutNumbers numbers = rule.numbers(i);
    const Eight<X> gradient = d[i];
    Eight<Y> of_addend;
    for (int j = 0; j < 8; ++j)
      set(of_addend.values[j], to_float(gradient.values[j]) * rule.factor(numbers, j));
    to_y[i] = of_addend;
  }
}

#define ZOO_ADD_DROPOUT(suffix, X, Y)                                                                                 \
  extern "C" __global__ void __launch_bounds__(kDropoutThreads)                                                       \
      add_dropout_##suffix##_forward(const X* inputs, const Y* addends, X* outputs, const long long* seed,            \
                                     unsigned threshold, float scale, long long n) {                                  \
    add_dropout_forward<X, Y>(inputs, addends, outputs, {seed, threshold, scale}, n);                                 \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kDropoutThreads)                                                       \
      add_dropout_##suffix##_backward(const X* gradients, Y* addend_gradients, const long long* seed,                 \
                                      unsigned threshold, float scale, long long n) {                                 \
    add_dropout_backward<X, Y>(gradients, addend_gradients, {seed, threshold, scale}, n);                             \
  }
// The types of x and y.
ZOO_ADD_DROPOUT(float_float, float, float)
ZOO_ADD_DROPOUT(float_bf16, float, Bf16)
ZOO_ADD_DROPOUT(float_half, float, Half)
ZOO_ADD_DROPOUT(bf16_bf16, Bf16, Bf16)
ZOO_ADD_DROPOUT(half_half, Half, Half)
