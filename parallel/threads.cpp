#include "parallel/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

namespace zoo {
namespace {

/// Convolutions and products of oneDNN ask how many threads they have, and then wait for all of them. In a
/// parallel region they have one. The number holds for this thread in this region only. LibTorch sets its own
/// number when a thread needs it the first time, once for its own code and once for ours, so that comes
/// before.
void have_one_thread() {
  at::get_num_threads();
  at::internal::lazy_init_num_threads();
  omp_set_num_threads(1);
}

}  // namespace

void for_each_on_one_thread(int64_t n, const std::function<void(int64_t)>& work) {
  const at::ThreadLocalState state;
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, std::min<int64_t>(n, at::get_num_threads()), 1, [&](int64_t, int64_t) {
    const at::ThreadLocalStateGuard guard(state);
    if (at::in_parallel_region()) have_one_thread();
    for (int64_t i = next++; i < n; i = next++) work(i);
  });
}

void flush_denormals() {
  // New threads inherit it. Threads that exist already are asked one by one.
  at::globalContext().setFlushDenormal(true);
  at::parallel_for(0, at::get_num_threads(), 1,
                   [](int64_t, int64_t) { at::globalContext().setFlushDenormal(true); });
}

}  // namespace zoo
