#pragma once
// How the loops of our own CPU kernels are compiled: once for each kind of vector unit, and the best one that
// the processor has is taken at run time. Everything such a loop calls has to be inlined into it.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ZOO_VECTOR_KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ZOO_VECTOR_KERNEL
#endif

#define ZOO_INLINE inline __attribute__((always_inline))
