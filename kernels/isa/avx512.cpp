// The loops in vectors of 512 bits.

#include "kernels/isa/kernels.h"
#include "kernels/isa/target.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

ZOO_BEGIN_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#include "kernels/isa/all_loops.h"

namespace zoo {
namespace {

struct Avx512 : Vectors<16> {
  static constexpr int kFloatRows = 12, kIntRows = 6;
  static constexpr int32_t kInt8Offset = zoo::kInt8Offset;

  static inline float sum(Floats v) { return _mm512_reduce_add_ps(v); }
  static inline float largest(Floats v) { return _mm512_reduce_max_ps(v); }
  static inline Floats load_halves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
  }
  static inline Ints dot_int8(Ints sum, Ints weights, Ints inputs) {
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)inputs);
  }
  static inline Ints dot_int4(Ints sum, Ints weights, Ints inputs) { return dot_int8(sum, weights, inputs); }
};

}  // namespace

const Kernels& avx512_kernels() {
  static constexpr Kernels kernels = kernels_of<Avx512>();
  return kernels;
}

}  // namespace zoo
ZOO_END_TARGET

#endif
