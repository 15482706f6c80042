#pragma once
// How the loops of our own CPU kernels are compiled. Everything such a loop calls has to be inlined into it.

#include <cstdint>

// Once for each kind of vector unit; the best one that the processor has is taken at run time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ZOO_VECTOR_KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ZOO_VECTOR_KERNEL
#endif

// For 512-bit vectors alone; to be called only where has_avx512().
#if defined(__x86_64__) && defined(__GNUC__)
#define ZOO_AVX512 __attribute__((target("avx512f")))
#else
#define ZOO_AVX512
#endif

#define ZOO_INLINED __attribute__((always_inline))
#define ZOO_INLINE inline ZOO_INLINED

namespace zoo {

/// Fewer numbers than this are not worth a thread of their own.
inline constexpr int64_t kFewestNumbers = 16384;
/// The same in rows of `width` ≥ 1 numbers, at least one.
inline int64_t fewest_rows(int64_t width) { return width < kFewestNumbers ? kFewestNumbers / width : 1; }

/// Whether the processor has 512-bit vectors.
inline bool has_avx512() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool result = __builtin_cpu_supports("avx512f");
  return result;
#else
  return false;
#endif
}

}  // namespace zoo
