// Conversions that are instructions of a GPU. They stand before every text; elsewhere they are those of LibTorch
// (tests/support/cuda_shim.h).

// Threads of a block, a power of two.
#define ZOO_BLOCK_THREADS 256

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
