// Gated activations in CUDA C++, act(gate) ⊙ up, quick GELU, for which LibTorch has no operation, and their gradients.
// Each number is read and written once, in packs of 16 bytes, and computed as a float. The text needs no headers, and
// compiles as C++, too (tests/support/cuda_shim.h).

constexpr int kGateThreads = ZOO_BLOCK_THREADS;

/// gates, ups: rows of `width` packs, `stride` packs apart. out: the same without gaps. n: packs in all.
template <class T, class Act>
__device__ inline void gate_forward(const T* gates, const T* ups, T* outputs, long long n, int width, long long stride) {
  const auto* const g = reinterpret_cast<const Pack<T>*>(gates);
  const auto* const u = reinterpret_cast<const Pack<T>*>(ups);
  auto* const out = reinterpret_cast<Pack<T>*>(outputs);
  const long long step = static_cast<long long>(gridDim.x) * kGateThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kGateThreads + threadIdx.x; i < n; i += step) {
    const long long at = i / width * stride + i % width;
    const Pack<T> gate = g[at], up = u[at];
    Pack<T> y;
    for (int j = 0; j < Pack<T>::kSize; ++j)
      set(y.values[j], Act::of(to_float(gate.values[j])).value * to_float(up.values[j]));
    out[i] = y;
  }
}

/// to_gates, to_ups: as gates and ups.
template <class T, class Act>
__device__ inline void gate_backward(const T* gradients, const T* gates, const T* ups, T* to_gates, T* to_ups,
                                     long long n, int width, long long stride) {
  const auto* const d = reinterpret_cast<const Pack<T>*>(gradients);
  const auto* const g = reinterpret_cast<const Pack<T>*>(gates);
  const auto* const u = reinterpret_cast<const Pack<T>*>(ups);
  auto* const to_g = reinterpret_cast<Pack<T>*>(to_gates);
  auto* const to_u = reinterpret_cast<Pack<T>*>(to_ups);
  const long long step = static_cast<long long>(gridDim.x) * kGateThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kGateThreads + threadIdx.x; i < n; i += step) {
    const long long at = i / width * stride + i % width;
    const Pack<T> gradient = d[i], gate = g[at], up = u[at];
    Pack<T> of_gate, of_up;
    for (int j = 0; j < Pack<T>::kSize; ++j) {
      const float slope = to_float(gradient.values[j]);
      const ValueAndSlope act = Act::of(to_float(gate.values[j]));
      set(of_gate.values[j], slope * to_float(up.values[j]) * act.slope);
      set(of_up.values[j], slope * act.value);
    }
    to_g[at] = of_gate;
    to_u[at] = of_up;
  }
}

/// n: packs.
template <class T, class Act>
__device__ inline void activation_forward(const T* inputs, T* outputs, long long n) {
  const auto* const x = reinterpret_cast<const Pack<T>*>(inputs);
  auto* const out = reinterpret_cast<Pack<T>*>(outputs);
  const long long step = static_cast<long long>(gridDim.x) * kGateThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kGateThreads + threadIdx.x; i < n; i += step) {
    const Pack<T> input = x[i];
    Pack<T> y;
    for (int j = 0; j < Pack<T>::kSize; ++j) set(y.values[j], Act::of(to_float(input.values[j])).value);
    out[i] = y;
  }
}

template <class T, class Act>
__device__ inline void activation_backward(const T* gradients, const T* inputs, T* input_gradients, long long n) {
  const auto* const d = reinterpret_cast<const Pack<T>*>(gradients);
  const auto* const x = reinterpret_cast<const Pack<T>*>(inputs);
  auto* const to_x = reinterpret_cast<Pack<T>*>(input_gradients);
  const long long step = static_cast<long long>(gridDim.x) * kGateThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kGateThreads + threadIdx.x; i < n; i += step) {
    const Pack<T> gradient = d[i], input = x[i];
    Pack<T> of_input;
    for (int j = 0; j < Pack<T>::kSize; ++j)
      set(of_input.values[j], to_float(gradient.values[j]) * Act::of(to_float(input.values[j])).slope);
    to_x[i] = of_input;
  }
}

#define ZOO_GATE(name, T, Act)                                                                                        \
  extern "C" __global__ void __launch_bounds__(kGateThreads)                                                          \
      name##_forward(const T* gates, const T* ups, T* outputs, long long n, int width, long long stride) {            \
    gate_forward<T, Act>(gates, ups, outputs, n, width, stride);                                                      \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kGateThreads)                                                          \
      name##_backward(const T* gradients, const T* gates, const T* ups, T* to_gates, T* to_ups, long long n,          \
                      int width, long long stride) {                                                                  \
    gate_backward<T, Act>(gradients, gates, ups, to_gates, to_ups, n, width, stride);                                 \
  }
#define ZOO_ACTIVATION(name, T, Act)                                                                                  \
  extern "C" __global__ void __launch_bounds__(kGateThreads)                                                          \
      name##_forward(const T* inputs, T* outputs, long long n) {                                                      \
    activation_forward<T, Act>(inputs, outputs, n);                                                                   \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kGateThreads)                                                          \
      name##_backward(const T* gradients, const T* inputs, T* input_gradients, long long n) {                         \
    activation_backward<T, Act>(gradients, inputs, input_gradients, n);                                               \
  }
#define ZOO_GATES(suffix, T)                     \
  ZOO_GATE(silu_##suffix, T, Silu)               \
  ZOO_GATE(gelu_exact_##suffix, T, GeluExact)    \
  ZOO_GATE(gelu_by_tanh_##suffix, T, GeluByTanh) \
  ZOO_GATE(relu_##suffix, T, Relu)               \
  ZOO_ACTIVATION(quick_gelu_##suffix, T, QuickGelu)
ZOO_GATES(float, float)
ZOO_GATES(bf16, Bf16)
ZOO_GATES(half, Half)
