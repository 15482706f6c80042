#pragma once
// CUDA C++ for the processor: a text for GPUs that includes no header compiles as C++ behind this one. The
// threads of a block are threads of the processor.

#include <math.h>  // exp2f() and others without a namespace

#include <array>
#include <barrier>
#include <bit>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <c10/util/Half.h>

// Fewer threads than a GPU has, because each waits for the others at every step of a sum.
#define ZOO_BLOCK_THREADS 8
#define ZOO_WARP_THREADS 4
#define ZOO_UNROLL
#define __device__
#define __global__
#define __launch_bounds__(threads)
// Blocks run one after the other.
#define __shared__ static

namespace zoo::testing {

struct CudaIndex {
  unsigned x = 0;
};
inline thread_local CudaIndex threadIdx, blockIdx, gridDim;
inline thread_local std::barrier<>* block_barrier = nullptr;

inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float half_bits_to_float(unsigned short bits) {
  return static_cast<float>(c10::Half(bits, c10::Half::from_bits()));
}
inline unsigned short float_to_half_bits(float x) { return c10::Half(x).x; }

inline float warp_exchange(float x, int apart) {
  static float numbers[ZOO_BLOCK_THREADS];
  numbers[threadIdx.x] = x;
  __syncthreads();
  const float other = numbers[threadIdx.x ^ static_cast<unsigned>(apart)];
  __syncthreads();
  return other;
}
inline int dot_of_bytes(int a, int b, int sum) {
  const auto bytes_of = [](int x) { return std::bit_cast<std::array<signed char, 4>>(x); };
  const auto first = bytes_of(a), second = bytes_of(b);
  for (size_t i = 0; i < 4; ++i) sum += first[i] * second[i];
  return sum;
}
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* to, unsigned x) { return std::exchange(*to, *to + x); }

/// Runs `kernel` in every thread of every block.
template <class Kernel>
void run_blocks(unsigned n_blocks, unsigned n_threads, const Kernel& kernel) {
  std::barrier<> barrier(n_threads);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < n_threads; ++thread) {
    threads.emplace_back([&, thread] {
      threadIdx.x = thread;
      gridDim.x = n_blocks;
      block_barrier = &barrier;
      for (blockIdx.x = 0; blockIdx.x < n_blocks; ++blockIdx.x) {
        kernel();
        barrier.arrive_and_wait();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace zoo::testing
