#pragma once
// Fused operations of the strict device (tests/support/strict_device.h) that only GPUs have, by the
// processor.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace zoo::testing {

/// Computes fused attention, whose arguments are tensors of the processor: scaled_dot_product_attention's, or
/// flash attention of rows of different lengths and of windows. Returns false for any other operation.
bool compute_fused(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace zoo::testing
