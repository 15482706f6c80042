// The products in vectors of 512 bits.

#include <cstdint>
#include <cstring>
#include <utility>

#include "layers/kernels/products/panels.h"
#include "layers/kernels/products/product_kernels.h"
#include "layers/kernels/products/target.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

ZOO_BEGIN_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#include "layers/kernels/products/panel_loops.h"

namespace zoo {
namespace {

struct Avx512 {
  static constexpr int kLanes = 16, kFloatRows = 12, kIntRows = 6;
  static constexpr int32_t kInt8Offset = zoo::kInt8Offset;
  using Floats = __m512;
  using Ints = __m512i;

  static inline Floats zero() { return _mm512_setzero_ps(); }
  static inline Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static inline void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static inline Floats broadcast(float x) { return _mm512_set1_ps(x); }
  static inline Ints broadcast(int32_t x) { return _mm512_set1_epi32(x); }
  static inline Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static inline float sum(Floats v) { return _mm512_reduce_add_ps(v); }
  static inline Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }

  static inline Ints load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static inline Floats load_halves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static inline Floats low_bf16(Ints words) { return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)); }
  static inline Floats high_bf16(Ints words) {
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(~0xFFFF)));
  }
  static inline Ints low_nibbles(Ints bytes) { return _mm512_and_si512(bytes, _mm512_set1_epi8(15)); }
  static inline Ints high_nibbles(Ints bytes) {
    return _mm512_and_si512(_mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(15));
  }
  static inline Ints dot_int8(Ints sum, Ints weights, Ints inputs) {
    return _mm512_dpbusd_epi32(sum, weights, inputs);
  }
  static inline Ints dot_int4(Ints sum, Ints weights, Ints inputs) {
    return _mm512_dpbusd_epi32(sum, weights, inputs);
  }
};

}  // namespace

const ProductKernels& avx512_kernels() {
  static constexpr ProductKernels kernels = kernels_of<Avx512>();
  return kernels;
}

}  // namespace zoo
ZOO_END_TARGET

#else

namespace zoo {
const ProductKernels& avx512_kernels() { return portable_kernels(); }
}  // namespace zoo

#endif
