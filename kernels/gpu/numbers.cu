// Numbers of 16 bits and groups of numbers, for all texts: NVIDIA's headers are not at hand where texts are compiled.

struct Bf16 {
  unsigned short bits;
};
struct Half {
  unsigned short bits;
};

/// Numbers that are read and written at once: 16 bytes.
template <class T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ inline float to_float(Half x) { return half_bits_to_float(x.bits); }

__device__ inline void set(float& to, float x) { to = x; }
__device__ inline void set(Bf16& to, float x) {
  const unsigned bits = __float_as_uint(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;  // to the nearest number, or the even one of two
  to.bits = static_cast<unsigned short>(is_nan ? 0x7fc0u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
__device__ inline void set(Half& to, float x) { to.bits = float_to_half_bits(x); }

/// x as a number of type T has it.
template <class T>
__device__ inline float rounded_to(float x) {
  T number;
  set(number, x);
  return to_float(number);
}

constexpr float kLog2E = 1.44269504088896f;

/// The sum and the largest number of a warp, in every thread. Every thread of the block takes part.
__device__ inline float warp_sum(float x) {
  for (int apart = ZOO_WARP_THREADS / 2; apart > 0; apart /= 2) x += warp_exchange(x, apart);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int apart = ZOO_WARP_THREADS / 2; apart > 0; apart /= 2) x = fmaxf(x, warp_exchange(x, apart));
  return x;
}
