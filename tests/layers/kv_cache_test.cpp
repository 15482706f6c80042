#include "layers/kv_cache.h"

#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

// (B, K, T, width), every number its own.
torch::Tensor block(int64_t batch, int64_t n, int64_t width, double offset) {
  return torch::arange(batch * 2 * n * width, torch::kFloat).view({batch, 2, n, width}) + offset;
}

TEST(KeyValues, AppendKeepsEverythingInOrderWhileStorageGrows) {
  KeyValues cache;
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(cache.bytes(), 0U);
  std::vector<torch::Tensor> keys, values;
  int64_t length = 0;
  for (const int64_t n : {5, 1, 1, 40, 1, 100}) {  // past several doublings
    keys.push_back(block(3, n, 4, 1000.0 * static_cast<double>(length)));
    values.push_back(block(3, n, 6, -1000.0 * static_cast<double>(length)));
    cache.append(keys.back(), values.back());
    length += n;
    EXPECT_EQ(cache.length(), length);
    EXPECT_TRUE(torch::equal(cache.keys(), torch::cat(keys, 2)));
    EXPECT_TRUE(torch::equal(cache.values(), torch::cat(values, 2)));
  }
  EXPECT_GE(cache.bytes(), static_cast<size_t>(3 * 2 * length * (4 + 6)) * sizeof(float));
}

TEST(KeyValues, StepCopiesOnlyWhatIsNew) {
  KeyValues cache;
  cache.append(block(1, 3, 4, 0), block(1, 3, 4, 0));
  const auto* storage = cache.keys().data_ptr();
  cache.append(block(1, 1, 4, 0), block(1, 1, 4, 0));
  EXPECT_EQ(cache.keys().data_ptr(), storage);
}

TEST(KeyValues, ReorderCopiesAndDropsRows) {
  KeyValues cache;
  const auto keys = block(3, 4, 4, 0), values = block(3, 4, 6, 7);
  cache.append(keys, values);
  const auto rows = torch::tensor({2, 0, 2, 2});  // beams multiply, one dies
  cache.reorder(rows);
  EXPECT_TRUE(torch::equal(cache.keys(), keys.index_select(0, rows)));
  EXPECT_TRUE(torch::equal(cache.values(), values.index_select(0, rows)));

  const auto more = block(4, 1, 4, 50), more_values = block(4, 1, 6, 60);
  cache.append(more, more_values);  // copies of a row go on apart
  EXPECT_TRUE(torch::equal(cache.keys(), torch::cat({keys.index_select(0, rows), more}, 2)));
  EXPECT_TRUE(torch::equal(cache.values(), torch::cat({values.index_select(0, rows), more_values}, 2)));
}

TEST(KeyValues, ReorderOfAnEmptyCacheIsHarmless) {
  KeyValues cache;
  cache.reorder(torch::tensor({0, 0}));
  EXPECT_TRUE(cache.empty());
}

TEST(KvCache, ReordersSelfAndCrossOfAllLayers) {
  KvCache cache;
  EXPECT_EQ(cache.length(), 0);
  cache.self.resize(2);
  cache.cross.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    cache.self[i].append(block(2, 3, 4, double(i)), block(2, 3, 4, double(i)));
    cache.cross[i].append(block(2, 5, 4, 10 + double(i)), block(2, 5, 4, 10 + double(i)));
  }
  EXPECT_EQ(cache.length(), 3);
  cache.reorder(torch::tensor({1, 1}));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(torch::equal(cache.self[i].keys()[0], block(2, 3, 4, double(i))[1]));
    EXPECT_TRUE(torch::equal(cache.cross[i].keys()[0], block(2, 5, 4, 10 + double(i))[1]));
  }
  EXPECT_EQ(cache.bytes(), cache.self[0].bytes() * 2 + cache.cross[0].bytes() * 2);
}

}  // namespace
}  // namespace zoo
