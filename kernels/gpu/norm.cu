// LayerNorm and RMSNorm in CUDA C++, forward and backward: y = γ ⊙ (x - μ)/√(σ² + ε) + β, or γ ⊙ x/√(mean(x²) + ε). The
// input may be float and the output 16 bits, so that no pass only converts numbers. x may be the sum of two tensors, such
// as the residual stream and what a sub-layer adds to it: it is computed and written in the same pass, which may also drop
// elements of the second one (dropout_numbers.cu). A block computes a row at a time; all sums are float. The text needs no
// headers, and compiles as C++, too (tests/support/cuda_shim.h).

constexpr int kNormThreads = ZOO_BLOCK_THREADS;

/// The sum over a block, in every thread. `shared`: kNormThreads numbers.
__device__ inline float block_sum(float x, float* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // whoever still reads the sum before
  shared[thread] = x;
  __syncthreads();
  for (int half = kNormThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] += shared[thread + half];
    __syncthreads();
  }
  return shared[0];
}

/// The sum of a row whose addends lose elements. width: a multiple of 8.
template <class In, class Add>
__device__ inline void add_dropped_row(const In* inputs, const Add* addends, In* sums, const DropoutRule& rule,
                                       long long first, int width) {
  const auto* const x = reinterpret_cast<const Eight<In>*>(inputs);
  const auto* const y = reinterpret_cast<const Eight<Add>*>(addends);
  auto* const out = reinterpret_cast<Eight<In>*>(sums);
  const long long end = (first + width) / 8;
  for (long long i = first / 8 + threadIdx.x; i < end; i += kNormThreads) out[i] = add_dropped(x[i], y[i], rule, i);
}

/// addends: may be null; otherwise the norm is that of inputs + addends, which is written to `sums` and rounded there.
/// rule: its seed is null without dropout of the addends. means: null for RMSNorm. bias: may be null.
template <class In, class Add, class Out, bool kCentred>
__device__ inline void norm_forward(const In* inputs, const Add* addends, In* sums, const DropoutRule& rule,
                                    const float* gain, const float* bias, Out* outputs, float* means, float* scales,
                                    int width, float eps) {
  __shared__ float shared[kNormThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const long long first = static_cast<long long>(blockIdx.x) * width;
  const In* const x = (addends ? sums : inputs) + first;
  Out* const y = outputs + first;
  const float n = static_cast<float>(width);
  if (rule.seed) {
    add_dropped_row(inputs, addends, sums, rule, first, width);
    __syncthreads();  // threads read what others have written
  } else if (addends) {  // each thread reads afterwards what it has written itself
    for (int i = thread; i < width; i += kNormThreads)
      set(sums[first + i], to_float(inputs[first + i]) + to_float(addends[first + i]));
  }
  float mean = 0.0f, sum = 0.0f;
  if (kCentred) {
    for (int i = thread; i < width; i += kNormThreads) sum += to_float(x[i]);
    mean = block_sum(sum, shared) / n;
    sum = 0.0f;
  }
  for (int i = thread; i < width; i += kNormThreads) {
    const float apart = to_float(x[i]) - mean;
    sum += apart * apart;
  }
  const float scale = 1.0f / sqrtf(block_sum(sum, shared) / n + eps);
  for (int i = thread; i < width; i += kNormThreads) {
    const float normal = (to_float(x[i]) - mean) * scale * gain[i];
    set(y[i], bias ? normal + bias[i] : normal);
  }
  if (thread == 0) {
    scales[blockIdx.x] = scale;
    if (kCentred) means[blockIdx.x] = mean;
  }
}

/// Each block takes every gridDim.x-th row. inputs: x, or the sum. sum_gradients: of the sum, as far as it was used beside
/// the norm; may be null. addend_gradients: may be null without dropout. gain_sums, bias_sums: (gridDim.x, width), zeros at
/// first; bias_sums may be null.
template <class In, class Add, class Out, bool kCentred>
__device__ inline void norm_backward(const Out* gradients, const In* sum_gradients, const In* inputs, const float* gain,
                                     const float* means, const float* scales, In* input_gradients, Add* addend_gradients,
                                     const DropoutRule& rule, float* gain_sums, float* bias_sums, int n_rows, int width) {
  __shared__ float shared[kNormThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const long long own = static_cast<long long>(blockIdx.x) * width;
  const float n = static_cast<float>(width);
  for (int row = static_cast<int>(blockIdx.x); row < n_rows; row += static_cast<int>(gridDim.x)) {
    const long long first = static_cast<long long>(row) * width;
    const float mean = kCentred ? means[row] : 0.0f, scale = scales[row];
    float sum = 0.0f, product = 0.0f;
    for (int i = thread; i < width; i += kNormThreads) {
      const float gradient = to_float(gradients[first + i]), normal = (to_float(inputs[first + i]) - mean) * scale;
      sum += gradient * gain[i];
      product += gradient * gain[i] * normal;
      gain_sums[own + i] += gradient * normal;
      if (bias_sums) bias_sums[own + i] += gradient;
    }
    const float mean_gradient = kCentred ? block_sum(sum, shared) / n : 0.0f;
    const float mean_product = block_sum(product, shared) / n;
    const auto total_of = [&](int i) {
      const float normal = (to_float(inputs[first + i]) - mean) * scale;
      const float gradient = to_float(gradients[first + i]) * gain[i];
      const float of_norm = scale * (gradient - mean_gradient - normal * mean_product);
      return sum_gradients ? of_norm + to_float(sum_gradients[first + i]) : of_norm;
    };
    if (rule.seed) {
      for (int eight = thread; eight < width / 8; eight += kNormThreads) {
        const DropoutNumbers numbers = rule.numbers(first / 8 + eight);
        Eight<In> to_x;
        Eight<Add> to_y;
        for (int j = 0; j < 8; ++j) {
          const float total = total_of(8 * eight + j);
          set(to_x.values[j], total);
          set(to_y.values[j], total * rule.factor(numbers, j));
        }
        reinterpret_cast<Eight<In>*>(input_gradients)[first / 8 + eight] = to_x;
        reinterpret_cast<Eight<Add>*>(addend_gradients)[first / 8 + eight] = to_y;
      }
    } else {
      for (int i = thread; i < width; i += kNormThreads) {
        const float total = total_of(i);
        set(input_gradients[first + i], total);
        if (addend_gradients) set(addend_gradients[first + i], total);
      }
    }
  }
}

#define ZOO_NORM(name, In, Add, Out, centred)                                                                         \
  extern "C" __global__ void __launch_bounds__(kNormThreads)                                                          \
      name##_forward(const In* inputs, const Add* addends, In* sums, const long long* seed, unsigned threshold,       \
                     float kept_scale, const float* gain, const float* bias, Out* outputs, float* means,              \
                     float* scales, int width, float eps) {                                                           \
    const DropoutRule rule = {seed, threshold, kept_scale};                                                           \
    norm_forward<In, Add, Out, centred>(inputs, addends, sums, rule, gain, bias, outputs, means, scales, width, eps); \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kNormThreads)                                                          \
      name##_backward(const Out* gradients, const In* sum_gradients, const In* inputs, const float* gain,             \
                      const float* means, const float* scales, In* input_gradients, Add* addend_gradients,            \
                      const long long* seed, unsigned threshold, float kept_scale, float* gain_sums,                  \
                      float* bias_sums, int n_rows, int width) {                                                      \
    const DropoutRule rule = {seed, threshold, kept_scale};                                                           \
    norm_backward<In, Add, Out, centred>(gradients, sum_gradients, inputs, gain, means, scales, input_gradients,      \
                                         addend_gradients, rule, gain_sums, bias_sums, n_rows, width);                \
  }
#define ZOO_NORMS(suffix, In, Add, Out)                  \
  ZOO_NORM(layer_norm_##suffix, In, Add, Out, true)      \
  ZOO_NORM(rms_norm_##suffix, In, Add, Out, false)
// The types of inputs, addends and outputs.
ZOO_NORMS(float_bf16_bf16, float, Bf16, Bf16)
ZOO_NORMS(float_half_half, float, Half, Half)
ZOO_NORMS(float_float_bf16, float, float, Bf16)
ZOO_NORMS(float_float_half, float, float, Half)
ZOO_NORMS(float_bf16_float, float, Bf16, float)
ZOO_NORMS(float_half_float, float, Half, float)
ZOO_NORMS(float_float_float, float, float, float)
ZOO_NORMS(bf16_bf16_bf16, Bf16, Bf16, Bf16)
ZOO_NORMS(half_half_half, Half, Half, Half)
