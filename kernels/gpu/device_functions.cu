// Conversions that are instructions of a GPU. They stand before every text; elsewhere they are those of LibTorch
// (tests/support/cuda_shim.h).

// Threads of a block, a power of two.
#define ZOO_BLOCK_THREADS 256
// Threads that exchange numbers without shared memory, a power of two.
#define ZOO_WARP_THREADS 32
#define ZOO_UNROLL _Pragma("unroll")

__device__ inline float half_bits_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

__device__ inline unsigned short float_to_half_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

/// The number of the thread whose place in the warp differs by `apart`, a power of two. Every thread of the block takes
/// part.
__device__ inline float warp_exchange(float x, int apart) { return __shfl_xor_sync(0xffffffffu, x, apart); }

/// sum + a · b, of four whole numbers of a byte each.
__device__ inline int dot_of_bytes(int a, int b, int sum) { return __dp4a(a, b, sum); }
