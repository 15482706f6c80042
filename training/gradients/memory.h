#pragma once
// How much memory tensors take while a model is trained: a number that does not depend on what else the
// process holds.

#include <cstdint>
#include <memory>
#include <string_view>

#include <c10/core/Device.h>

namespace zoo {

/// While it lives, counts the bytes of tensors on a device: on the CPU those that this thread, and what it
/// runs in parallel, makes and frees; on a GPU those of the whole process (LibTorch's caching allocator).
/// Memory of libraries, buffers of matrix kernels and fragmentation are not in it, so the operating system
/// reports more. To be destroyed by the thread that made it, in reverse order of making; a LibTorch profiler
/// that runs on the same thread is blind to memory meanwhile.
class TensorMemory {
 public:
  explicit TensorMemory(c10::Device device);
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  /// Bytes alive now, of tensors made since the construction.
  int64_t current() const;
  /// The largest current() since the construction or the last reset_peak().
  int64_t peak() const;
  void reset_peak();

  class Meter;  // one kind a device

 private:
  std::unique_ptr<Meter> meter_;
};

/// Gives back what a GPU's allocator keeps for later, so that larger pieces can be had.
void free_cached_memory(c10::Device device);

/// Throws TrainingError: not even one sequence fits, and what to do; `details` end the line.
[[noreturn]] void fail_with_one_sequence(std::string_view details = {});

}  // namespace zoo
