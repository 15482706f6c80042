#include "base/cpu_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include "base/memory_pool.h"

namespace zoo {
namespace {

/// Never destroyed: tensors of static storage may be freed after main().
MemoryPool& pool() {
  static auto* const instance = new MemoryPool;
  return *instance;
}

class CachingCpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    constexpr size_t smallest = size_t{64} << 10;  // the C library keeps smaller blocks itself
    void* const data = bytes >= smallest ? pool().allocate(bytes) : c10::alloc_cpu(bytes);
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, size_t count) const override {
    default_copy_data(destination, source, count);
  }

 private:
  static void release(void* data) {
    if (data == nullptr) return;
    c10::profiledCPUMemoryReporter().Delete(data);
    if (!pool().release(data)) c10::free_cpu(data);
  }
};

}  // namespace

void use_caching_cpu_allocator() {
  static CachingCpuAllocator allocator;
  constexpr uint8_t priority = 1;  // the default allocator's is 0
  c10::SetCPUAllocator(&allocator, priority);
}

}  // namespace zoo
