// Rotary positions in CUDA C++: the two elements of each pair are turned by the angle of their position, and elements
// behind the turned width are copied. Each number is read and written once, and turned as a float. The text needs no
// headers, and compiles as C++, too (tests/support/cuda_shim.h).

constexpr int kRotaryThreads = ZOO_BLOCK_THREADS;

/// x, y: (B, H, T, Dh) with strides by batch, head and position; elements of a head stand together. cosines, sines:
/// (T, pairs), `angles_batch` numbers apart from one row of the batch to the next. sign: -1 turns back, for gradients.
/// n: how many pairs and copied elements there are in all.
template <class T, bool kHalf>
__device__ inline void turn(const T* x, const float* cosines, const float* sines, T* y, long long n, int n_heads,
                            int n_positions, int head_dim, int pairs, long long x_batch, long long x_head,
                            long long x_position, long long y_batch, long long y_head, long long y_position,
                            long long angles_batch, float sign) {
  const int slots = head_dim - pairs;  // of a head: its pairs, then its elements that are copied
  const long long stride = static_cast<long long>(gridDim.x) * kRotaryThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kRotaryThreads + threadIdx.x; i < n; i += stride) {
    const int slot = static_cast<int>(i % slots);
    const long long vector = i / slots, row = vector / n_heads;
    const long long head = vector % n_heads, position = row % n_positions, batch = row / n_positions;
    const T* const from = x + batch * x_batch + head * x_head + position * x_position;
    T* const to = y + batch * y_batch + head * y_head + position * y_position;
    if (slot < pairs) {
      const long long angle = batch * angles_batch + position * pairs + slot;
      const float c = cosines[angle], s = sign * sines[angle];
      const int first = kHalf ? slot : 2 * slot, second = kHalf ? slot + pairs : 2 * slot + 1;
      const float a = to_float(from[first]), b = to_float(from[second]);
      set(to[first], a * c - b * s);
      set(to[second], b * c + a * s);
    } else {
      to[pairs + slot] = from[pairs + slot];
    }
  }
}

#define ZOO_ROTARY(name, T, half)                                                                                   \
  extern "C" __global__ void __launch_bounds__(kRotaryThreads)                                                      \
      name(const T* x, const float* cosines, const float* sines, T* y, long long n, int n_heads, int n_positions,   \
           int head_dim, int pairs, long long x_batch, long long x_head, long long x_position, long long y_batch,   \
           long long y_head, long long y_position, long long angles_batch, float sign) {                            \
    turn<T, half>(x, cosines, sines, y, n, n_heads, n_positions, head_dim, pairs, x_batch, x_head, x_position,      \
                  y_batch, y_head, y_position, angles_batch, sign);                                                 \
  }
#define ZOO_ROTARIES(suffix, T)                    \
  ZOO_ROTARY(rotary_half_##suffix, T, true)        \
  ZOO_ROTARY(rotary_interleaved_##suffix, T, false)
ZOO_ROTARIES(float, float)
ZOO_ROTARIES(bf16, Bf16)
ZOO_ROTARIES(half, Half)
