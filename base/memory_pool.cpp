#include "base/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include <c10/util/Exception.h>

namespace zoo {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRegion = size_t{64} << 20;
// Less than a page: arrays that begin at the same offset in a page evict each other from the cache.
constexpr size_t kGranule = 256;

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

MemoryPool::~MemoryPool() {
  for (const auto& [address, size] : regions_) munmap(address, size);
}

void* MemoryPool::allocate(size_t bytes) {
  const size_t size = rounded(bytes, kGranule);
  const std::lock_guard lock(mutex_);
  auto found = free_.lower_bound({size, nullptr});
  if (found == free_.end()) {
    add_region(size);
    found = free_.lower_bound({size, nullptr});
  }
  std::byte* const address = found->second;
  free_.erase(found);
  Block& block = blocks_.at(address);
  block.is_free = false;
  if (const size_t rest = block.size - size; rest > 0) {
    block.size = size;
    std::byte* const next = address + size;
    blocks_[next] = {.size = rest, .previous = address, .is_free = true};
    if (const auto after = blocks_.find(next + rest);
        after != blocks_.end() && after->second.previous == address)
      after->second.previous = next;
    free_.insert({rest, next});
  }
  used_ += size;
  return address;
}

bool MemoryPool::release(void* pointer) {
  auto* address = static_cast<std::byte*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.is_free) return false;
  found->second.is_free = true;
  used_ -= found->second.size;
  join_with_next(address);
  if (std::byte* const previous = blocks_.at(address).previous;
      previous != nullptr && blocks_.at(previous).is_free) {
    free_.erase({blocks_.at(previous).size, previous});
    address = previous;
    join_with_next(address);
  }
  free_.insert({blocks_.at(address).size, address});
  return true;
}

/// Joins a free block with the next one, if that is free and in the same region.
void MemoryPool::join_with_next(std::byte* address) {
  Block& block = blocks_.at(address);
  const auto next = blocks_.find(address + block.size);
  if (next == blocks_.end() || next->second.previous != address || !next->second.is_free) return;
  free_.erase({next->second.size, next->first});
  block.size += next->second.size;
  blocks_.erase(next);
  if (const auto after = blocks_.find(address + block.size);
      after != blocks_.end() && after->second.previous != nullptr)
    after->second.previous = address;
}

void MemoryPool::add_region(size_t bytes) {
  const size_t size = std::max(kRegion, rounded(bytes, kHugePage));
  // Huge pages begin at multiples of their size, so the excess at both ends is unmapped.
  const size_t mapped = size + kHugePage;
  void* const raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TORCH_CHECK_WITH(OutOfMemoryError, raw != MAP_FAILED, "tried to allocate ", bytes, " bytes");
  auto* const begin = static_cast<std::byte*>(raw);
  const size_t skipped =
      rounded(reinterpret_cast<size_t>(begin), kHugePage) - reinterpret_cast<size_t>(begin);
  std::byte* const address = begin + skipped;
  if (skipped > 0) munmap(begin, skipped);
  if (const size_t rest = mapped - skipped - size; rest > 0) munmap(address + size, rest);
#ifdef MADV_HUGEPAGE
  madvise(address, size, MADV_HUGEPAGE);  // without huge pages, small ones are used
#endif
  regions_.emplace_back(address, size);
  reserved_ += size;
  blocks_[address] = {.size = size, .previous = nullptr, .is_free = true};
  free_.insert({size, address});
}

size_t MemoryPool::reserved() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

size_t MemoryPool::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace zoo
