#pragma once
// Our kernels for GPUs on the strict device.

namespace zoo::testing {

/// While it lives, the strict device has our kernels: their texts, compiled for the processor
/// (tests/support/texts_here.h).
class StrictKernels {
 public:
  StrictKernels();
  ~StrictKernels();
  StrictKernels(const StrictKernels&) = delete;
  StrictKernels& operator=(const StrictKernels&) = delete;
};

}  // namespace zoo::testing
