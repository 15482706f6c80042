#pragma once
// Memory of tensors on the CPU.
//
// Training allocates and frees the same tensors in every step. The C library returns large blocks to the
// operating system, which clears their pages before it hands them out again. Small pages also cause misses in
// the processor's address translation. Both together cost up to a tenth of a step. This allocator keeps its
// memory, on huge pages where the system has them.

namespace zoo {

/// After this call, LibTorch's CPU tensors of 64 KB and more use memory that the process keeps until it ends.
/// That memory is at most the peak use plus the gaps between blocks. Call it in main(), before the first
/// tensor; a second call does nothing.
void use_caching_cpu_allocator();

}  // namespace zoo
