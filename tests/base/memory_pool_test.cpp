#include "base/memory_pool.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace zoo {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(MemoryPool, UsesAgainWhatWasReleased) {
  MemoryPool pool;
  void* const first = pool.allocate(10 * kMiB);
  EXPECT_EQ(reinterpret_cast<size_t>(first) % 64, 0U);
  EXPECT_TRUE(pool.release(first));
  const size_t reserved = pool.reserved();
  for (int i = 0; i < 100; ++i) {
    void* const again = pool.allocate(10 * kMiB);
    EXPECT_EQ(again, first);
    EXPECT_TRUE(pool.release(again));
  }
  EXPECT_EQ(pool.reserved(), reserved);
  EXPECT_EQ(pool.used(), 0U);
}

TEST(MemoryPool, JoinsFreeNeighboursInEveryOrder) {
  const std::vector<std::vector<size_t>> orders = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2},
                                                   {1, 2, 0}, {0, 2, 1}, {2, 0, 1}};
  for (const auto& order : orders) {
    MemoryPool pool;
    std::vector<void*> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(pool.allocate(20 * kMiB));
    const size_t reserved = pool.reserved();
    for (const size_t i : order) EXPECT_TRUE(pool.release(parts[i]));
    EXPECT_EQ(pool.allocate(60 * kMiB), parts[0]);  // possible only if the three were joined
    EXPECT_EQ(pool.reserved(), reserved);
  }
}

TEST(MemoryPool, LargerThanARegion) {
  MemoryPool pool;
  auto* const data = static_cast<std::byte*>(pool.allocate(300 * kMiB));
  data[0] = data[300 * kMiB - 1] = std::byte{1};
  EXPECT_TRUE(pool.release(data));
}

TEST(MemoryPool, KnowsWhatIsNotItsOwn) {
  MemoryPool pool;
  int other = 0;
  EXPECT_FALSE(pool.release(&other));
  void* const data = pool.allocate(kMiB);
  EXPECT_FALSE(pool.release(static_cast<std::byte*>(data) + 256));
  EXPECT_TRUE(pool.release(data));
  EXPECT_FALSE(pool.release(data));
}

/// Uses blocks of random sizes. Each is filled with its own byte value and must still hold it at the end.
void use_at_random(MemoryPool& pool, uint64_t seed) {
  struct Held {
    unsigned char* data;
    size_t size;
    unsigned char value;
  };
  CounterRandom random({seed});
  std::deque<Held> held;
  for (int i = 0; i < 3000; ++i) {
    if (held.size() < 20 && random.below(2) == 0) {
      const auto size = static_cast<size_t>(1 + random.below(200'000));
      const auto value = static_cast<unsigned char>(random.below(256));
      auto* const data = static_cast<unsigned char*>(pool.allocate(size));
      std::memset(data, value, size);
      held.push_back({data, size, value});
    } else if (!held.empty()) {
      std::swap(held[static_cast<size_t>(random.below(static_cast<int64_t>(held.size())))], held.front());
      const auto [data, size, value] = held.front();
      held.pop_front();
      for (size_t k = 0; k < size; k += 97) ASSERT_EQ(data[k], value);
      ASSERT_EQ(data[size - 1], value);
      ASSERT_TRUE(pool.release(data));
    }
  }
  for (const auto& block : held) ASSERT_TRUE(pool.release(block.data));
}

TEST(MemoryPool, BlocksDoNotOverlapWhoeverAsks) {
  MemoryPool pool;
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back([&, seed] { use_at_random(pool, seed); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.used(), 0U);
  void* const all = pool.allocate(60 * kMiB);  // everything is one block again
  EXPECT_TRUE(pool.release(all));
  EXPECT_LE(pool.reserved(), 64 * kMiB);
}

}  // namespace
}  // namespace zoo
