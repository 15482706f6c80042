#include "layers/kv_cache.h"

#include <algorithm>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

torch::Tensor grown(const torch::Tensor& storage, const torch::Tensor& like, int64_t length,
                    int64_t capacity) {
  auto result = torch::empty({like.size(0), like.size(1), capacity, like.size(3)}, like.options());
  if (length > 0) result.narrow(2, 0, length).copy_(storage.narrow(2, 0, length));
  return result;
}

}  // namespace

void KeyValues::append(const torch::Tensor& keys, const torch::Tensor& values) {
  const torch::NoGradGuard no_grad;
  const int64_t needed = length_ + keys.size(2);
  const int64_t capacity = keys_.defined() ? keys_.size(2) : 0;
  if (needed > capacity) {
    const int64_t larger = std::max<int64_t>({needed, 2 * capacity, 32});
    keys_ = grown(keys_, keys, length_, larger);
    values_ = grown(values_, values, length_, larger);
  }
  keys_.narrow(2, length_, keys.size(2)).copy_(keys);
  values_.narrow(2, length_, values.size(2)).copy_(values);
  length_ = needed;
}

void KeyValues::reorder(const torch::Tensor& rows) {
  if (empty()) return;
  keys_ = keys_.index_select(0, rows);
  values_ = values_.index_select(0, rows);
}

size_t KeyValues::bytes() const { return keys_.defined() ? keys_.nbytes() + values_.nbytes() : 0; }

void KvCache::reorder(const torch::Tensor& rows) {
  for (auto& layer : self) layer.reorder(rows);
  for (auto& layer : cross) layer.reorder(rows);
}

size_t KvCache::bytes() const {
  size_t total = 0;
  for (const auto& layer : self) total += layer.bytes();
  for (const auto& layer : cross) total += layer.bytes();
  return total;
}

}  // namespace zoo
