#include "base/memory_rate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/stopwatch.h"

namespace zoo {
namespace {

void read_all(const torch::Tensor& memory) {
  const float* const data = memory.const_data_ptr<float>();
  const int threads = at::get_num_threads();
  const int64_t share = memory.numel() / threads;
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    std::array<float, 64> sums{};
    for (int64_t i = share * begin; i + 64 <= share * end; i += 64)
      for (size_t j = 0; j < sums.size(); ++j) sums[j] += data[i + static_cast<int64_t>(j)];
    volatile float sink = std::accumulate(sums.begin(), sums.end(), 0.0F);
    (void)sink;
  });
}

}  // namespace

double memory_read_rate(const MemoryRateOptions& options) {
  const torch::NoGradGuard no_grad;
  const auto memory = torch::ones({options.bytes / int64_t{sizeof(float)}});
  double least = std::numeric_limits<double>::infinity();
  const Stopwatch watch;
  for (int round = 0; round < options.rounds && (round == 0 || watch.seconds() < options.seconds); ++round) {
    const Stopwatch one;
    read_all(memory);
    least = std::min(least, one.seconds());
  }
  return static_cast<double>(memory.nbytes()) / least;
}

}  // namespace zoo
