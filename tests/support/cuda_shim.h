#pragma once
// CUDA C++ for the processor: a text for GPUs that includes no header compiles as C++ behind this one. The
// threads of a block take turns on one thread of the processor, each from one barrier to the next.

#include <math.h>  // exp2f() and others without a namespace
#include <ucontext.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <c10/util/Half.h>

// Fewer threads than a GPU has: what is computed does not depend on their number.
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

/// The threads of one block.
class BlockThreads {
 public:
  BlockThreads(unsigned n, const std::function<void()>& kernel);
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;
  /// Runs the kernel in each of them.
  void run();
  /// The thread that calls it goes on when all others have come to the same barrier.
  void wait();

 private:
  static constexpr size_t kStackBytes = 128 * 1024;
  static void begin();
  void go_on_with(unsigned thread);

  std::function<void()> kernel_;
  std::vector<ucontext_t> contexts_;
  std::vector<std::unique_ptr<std::byte[]>> stacks_;
  ucontext_t outside_ = {};
};
inline thread_local BlockThreads* block_threads = nullptr;

inline void __syncthreads() { block_threads->wait(); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float half_bits_to_float(unsigned short bits) {
  return static_cast<float>(c10::Half(bits, c10::Half::from_bits()));
}
inline unsigned short float_to_half_bits(float x) { return c10::Half(x).x; }
inline float warp_exchange(float x, int apart) {
  static thread_local float numbers[ZOO_BLOCK_THREADS];
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

inline BlockThreads::BlockThreads(unsigned n, const std::function<void()>& kernel)
    : kernel_(kernel), contexts_(n), stacks_(n) {
  for (auto& stack : stacks_) stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
}

inline void BlockThreads::begin() {
  block_threads->kernel_();
  const unsigned next = threadIdx.x + 1;
  if (next < block_threads->contexts_.size()) block_threads->go_on_with(next);
}

inline void BlockThreads::go_on_with(unsigned thread) {
  const unsigned before = std::exchange(threadIdx.x, thread);
  ::swapcontext(&contexts_[before], &contexts_[thread]);
}

/// All threads come to their barriers in the order of their numbers, so the first one goes on after the last.
inline void BlockThreads::wait() { go_on_with((threadIdx.x + 1) % static_cast<unsigned>(contexts_.size())); }

inline void BlockThreads::run() {
  block_threads = this;
  for (size_t i = 0; i < contexts_.size(); ++i) {
    ::getcontext(&contexts_[i]);
    contexts_[i].uc_stack = {.ss_sp = stacks_[i].get(), .ss_flags = 0, .ss_size = kStackBytes};
    contexts_[i].uc_link = &outside_;  // only the last thread ends by itself
    ::makecontext(&contexts_[i], &BlockThreads::begin, 0);
  }
  threadIdx.x = 0;
  ::swapcontext(&outside_, &contexts_[0]);
}

/// Runs `kernel` in every thread of every block.
template <class Kernel>
void run_blocks(unsigned n_blocks, unsigned n_threads, const Kernel& kernel) {
  BlockThreads threads(n_threads, kernel);
  gridDim.x = n_blocks;
  for (blockIdx.x = 0; blockIdx.x < n_blocks; ++blockIdx.x) threads.run();
}

}  // namespace zoo::testing
