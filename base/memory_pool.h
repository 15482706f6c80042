#pragma once
// Blocks of memory cut out of large regions, reused by best fit.

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zoo {

/// All functions may be called by several threads at the same time.
class MemoryPool {
 public:
  MemoryPool() = default;
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// A block of at least `bytes` (> 0) bytes at an address that is a multiple of 64. Throws
  /// c10::OutOfMemoryError.
  void* allocate(size_t bytes);
  /// Takes back a block from allocate(). For any other address, returns false and does nothing.
  bool release(void* address);

  /// Bytes that the pool holds, used or not.
  size_t reserved() const;
  /// Bytes in use, including rounding.
  size_t used() const;

 private:
  /// A used or free piece of a region. Its neighbours are known, so that free pieces can be joined.
  struct Block {
    size_t size = 0;
    std::byte* previous = nullptr;  // in the same region
    bool is_free = false;
  };
  using BySize = std::set<std::pair<size_t, std::byte*>>;

  void add_region(size_t bytes);
  void join_with_next(std::byte* address);

  mutable std::mutex mutex_;
  std::unordered_map<std::byte*, Block> blocks_;
  BySize free_;
  std::vector<std::pair<void*, size_t>> regions_;
  size_t reserved_ = 0, used_ = 0;
};

}  // namespace zoo
