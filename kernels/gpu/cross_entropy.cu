// Cross-entropy over the vocabulary in CUDA C++: the gradient takes the place of the logits (kernels/cross_entropy.h).
// One block computes a row. It reads the row twice and writes it once, in the type of the logits; all sums are float.
// The text needs no headers, and compiles as C++, too (tests/support/cuda_shim.h).

constexpr int kThreads = ZOO_BLOCK_THREADS;
constexpr float kLn2 = 0.69314718055995f, kLowest = -3.4e38f;

/// How a row is divided: numbers up to the first address that is a multiple of 16, packs, and the rest.
template <class T>
struct RowParts {
  static constexpr int kPack = Pack<T>::kSize;
  int head, n_packs, tail_begin;

  __device__ RowParts(const T* row, int n) {
    const int beyond = static_cast<int>((reinterpret_cast<unsigned long long>(row) % 16) / sizeof(T));
    head = beyond == 0 ? 0 : kPack - beyond;
    if (head > n) head = n;
    n_packs = (n - head) / kPack;
    tail_begin = head + n_packs * kPack;
  }
};

/// The highest logit of some numbers m, Σ exp(x - m), and Σ x.
struct Sums {
  float highest, exponentials, all;
};

__device__ inline float power(float exponent) { return exp2f(exponent * kLog2E); }

__device__ inline void add(Sums& sums, float x) {
  sums.all += x;
  if (x > sums.highest) {
    sums.exponentials *= power(sums.highest - x);
    sums.highest = x;
  }
  sums.exponentials += power(x - sums.highest);
}

__device__ inline Sums both(const Sums& a, const Sums& b) {
  const float highest = a.highest > b.highest ? a.highest : b.highest;
  return {highest, a.exponentials * power(a.highest - highest) + b.exponentials * power(b.highest - highest),
          a.all + b.all};
}

template <class T>
__device__ inline void cross_entropy_of_row(T* logits, const long long* targets, float* losses, int n_classes,
                                            float smoothing, float weight) {
  __shared__ Sums shared[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  T* const row = logits + static_cast<long long>(blockIdx.x) * n_classes;
  const RowParts<T> parts(row, n_classes);
  Pack<T>* const packs = reinterpret_cast<Pack<T>*>(row + parts.head);

  Sums sums = {kLowest, 0.0f, 0.0f};
  for (int i = thread; i < parts.head; i += kThreads) add(sums, to_float(row[i]));
  for (int i = thread; i < parts.n_packs; i += kThreads) {
    const Pack<T> pack = packs[i];
    for (int j = 0; j < RowParts<T>::kPack; ++j) add(sums, to_float(pack.values[j]));
  }
  for (int i = parts.tail_begin + thread; i < n_classes; i += kThreads) add(sums, to_float(row[i]));

  const int target = static_cast<int>(targets[blockIdx.x]);
  const float logit_of_target = to_float(row[target]);
  shared[thread] = sums;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] = both(shared[thread], shared[thread + half]);
    __syncthreads();
  }
  const Sums total = shared[0];
  const float n = static_cast<float>(n_classes), scale = weight / total.exponentials, uniform = weight * smoothing / n;
  if (thread == 0) {
    // Differences first: the logarithm of the sum may be lost beside a large logit.
    const float log_sum = log2f(total.exponentials) * kLn2;
    float loss = (1.0f - smoothing) * (total.highest - logit_of_target + log_sum);
    if (smoothing > 0.0f) loss += smoothing * (total.highest - total.all / n + log_sum);
    losses[blockIdx.x] = weight * loss;
  }
  const float of_target = weight * (1.0f - smoothing);
  const auto gradient = [&](float x, int i) {
    return power(x - total.highest) * scale - uniform - (i == target ? of_target : 0.0f);
  };
  for (int i = thread; i < parts.head; i += kThreads) set(row[i], gradient(to_float(row[i]), i));
  for (int i = thread; i < parts.n_packs; i += kThreads) {
    Pack<T> pack = packs[i];
    for (int j = 0; j < RowParts<T>::kPack; ++j)
      set(pack.values[j], gradient(to_float(pack.values[j]), parts.head + i * RowParts<T>::kPack + j));
    packs[i] = pack;
  }
  for (int i = parts.tail_begin + thread; i < n_classes; i += kThreads)
    set(row[i], gradient(to_float(row[i]), i));
}

#define ZOO_CROSS_ENTROPY(name, type)                                                                          \
  extern "C" __global__ void __launch_bounds__(kThreads) name(type* logits, const long long* targets,           \
                                                              float* losses, int n_classes, float smoothing,    \
                                                              float weight) {                                   \
    cross_entropy_of_row(logits, targets, losses, n_classes, smoothing, weight);                                \
  }
ZOO_CROSS_ENTROPY(cross_entropy_float, float)
ZOO_CROSS_ENTROPY(cross_entropy_bf16, Bf16)
ZOO_CROSS_ENTROPY(cross_entropy_half, Half)
