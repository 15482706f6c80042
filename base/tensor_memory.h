#pragma once
// How much memory tensors take while a model is trained, independently of what else the process holds.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>

namespace zoo {

/// While it lives, counts the bytes of tensors on a device. On the CPU it counts tensors that this thread and
/// its parallel regions make and free; on a GPU it counts all tensors of the process (LibTorch's caching
/// allocator). It does not count memory of libraries, buffers of matrix kernels and fragmentation, so the
/// operating system reports more. The thread that made an object must destroy it, in reverse order of
/// construction. Meanwhile a LibTorch profiler on the same thread sees no memory.
class TensorMemory {
 public:
  explicit TensorMemory(c10::Device device);
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  /// Bytes of the tensors that were made since the construction and are alive now.
  int64_t current() const;
  /// The largest current() since the construction or the last reset_peak().
  int64_t peak() const;
  void reset_peak();

  class Meter;  // one kind per kind of device

 private:
  std::unique_ptr<Meter> meter_;
};

/// Frees the memory that a GPU's allocator keeps for later use, so that larger pieces can be allocated.
void free_cached_memory(c10::Device device);

/// If `error` says that memory was missing, on a CPU or a GPU: " (20.00 MiB more were asked for)", or "" if
/// it does not say how much. Otherwise nothing.
std::optional<std::string> memory_shortage(const std::exception& error);

}  // namespace zoo
