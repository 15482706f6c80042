#include "parallel/threads.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

class ForEachOnOneThread : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(2); }
  void TearDown() override { at::set_num_threads(before_); }
  int before_ = at::get_num_threads();
};

TEST_F(ForEachOnOneThread, TakesEachNumberOnce) {
  for (const int64_t n : {0, 1, 2, 100}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(n));
    for_each_on_one_thread(n, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST_F(ForEachOnOneThread, KeepsTheGradientModeOfItsCaller) {
  for (const bool recorded : {false, true}) {
    const at::AutoGradMode mode(recorded);
    std::vector<std::atomic<int>> seen(16);
    for_each_on_one_thread(16, [&](int64_t i) {
      const auto x = torch::ones({2}).requires_grad_(true);
      seen[static_cast<size_t>(i)] = static_cast<int>((x * 2).requires_grad());
    });
    for (const auto& one : seen) EXPECT_EQ(one, static_cast<int>(recorded));
  }
}

TEST_F(ForEachOnOneThread, ThrowsWhatACallThrows) {
  EXPECT_THROW(for_each_on_one_thread(8,
                                      [](int64_t i) {
                                        if (i == 5) throw std::out_of_range("5");
                                      }),
               std::out_of_range);
}

TEST_F(ForEachOnOneThread, WorksWithinItself) {
  std::atomic<int64_t> sum = 0;
  for_each_on_one_thread(4, [&](int64_t i) { for_each_on_one_thread(4, [&](int64_t j) { sum += i * j; }); });
  EXPECT_EQ(sum, 36);
}

TEST(FlushDenormals, ReachesEachThreadOfLibTorch) {
  if (!at::globalContext().setFlushDenormal(false)) GTEST_SKIP() << "this processor cannot flush denormals";
  const auto threads = at::get_num_threads();
  at::set_num_threads(2);
  // Whether a thread takes the product of two normal numbers, 1e-40, for zero. Threads that flush denormals
  // also take them for zero when they compare, so each thread compares for itself.
  const auto flushed = [] {
    std::vector<int> found(2, -1);
    const volatile float x = 1e-30F, y = 1e-10F;
    at::parallel_for(0, 2, 1, [&](int64_t i, int64_t) { found[static_cast<size_t>(i)] = x * y == 0; });
    return found;
  };
  EXPECT_EQ(flushed(), (std::vector<int>{0, 0}));
  flush_denormals();
  EXPECT_EQ(flushed(), (std::vector<int>{1, 1}));
  at::parallel_for(0, 2, 1, [](int64_t, int64_t) { at::globalContext().setFlushDenormal(false); });
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace zoo
