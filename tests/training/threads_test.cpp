#include "training/parallel/threads.h"

#include <atomic>
#include <stdexcept>
#include <vector>

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

}  // namespace
}  // namespace zoo
