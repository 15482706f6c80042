#pragma once
// Memory of tensors on the CPU.
//
// A training makes and frees the same tensors in every step. The C library gives large ones back to the
// operating system, which clears their pages before it hands them out again, and on small pages the processor
// misses its address translations: together up to a tenth of a step. This allocator keeps what it once got,
// on huge pages where the system has them.

namespace zoo {

/// From now on LibTorch's tensors on the CPU, of 64 KB and more, live in memory that the process keeps until
/// it ends: at most as much as was in use at its peak, and what lies idle between. For main(), before the
/// first tensor; calling it again does nothing.
void use_caching_cpu_allocator();

}  // namespace zoo
