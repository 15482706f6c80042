#pragma once
// How the loops of our CPU kernels are compiled. Every function that such a loop calls must be inlined into
// it.

#include <cstdint>

#include <ATen/Version.h>

// Compiles a function once for each vector instruction set; the best one that the processor has is chosen at
// run time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ZOO_VECTOR_KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ZOO_VECTOR_KERNEL
#endif

// Compiles a function for 512-bit vectors only; call it only if has_avx512().
#if defined(__x86_64__) && defined(__GNUC__)
#define ZOO_AVX512 __attribute__((target("avx512f")))
#else
#define ZOO_AVX512
#endif

#define ZOO_INLINED __attribute__((always_inline))
#define ZOO_INLINE inline ZOO_INLINED

namespace zoo {

/// The grain size of parallel loops: fewer numbers are not worth another thread.
inline constexpr int64_t kGrainSize = 16384;
/// The grain size in rows of `width` ≥ 1 numbers, at least one row.
inline int64_t grain_rows(int64_t width) { return width < kGrainSize ? kGrainSize / width : 1; }

/// Added to a float below 2^22 in magnitude, it rounds the float to a whole number: 1.5·2^23.
inline constexpr float kToInteger = 12582912.0F;

/// Whether the processor has 512-bit vectors, and LibTorch may use them: ATEN_CPU_CAPABILITY=avx2 keeps our
/// kernels from them, too.
inline bool has_avx512() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool result = __builtin_cpu_supports("avx512f") && at::get_cpu_capability() == "AVX512";
  return result;
#else
  return false;
#endif
}

}  // namespace zoo
