// The products in vectors of 256 bits.

#include <cstdint>
#include <cstring>
#include <utility>

#include "layers/kernels/products/panels.h"
#include "layers/kernels/products/product_kernels.h"
#include "layers/kernels/products/target.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

ZOO_BEGIN_TARGET("avx2,fma,f16c")
#include "layers/kernels/products/panel_loops.h"

namespace zoo {
namespace {

struct Avx2 {
  static constexpr int kLanes = 8, kFloatRows = 6, kIntRows = 4;
  static constexpr int32_t kInt8Offset = 0;
  using Floats = __m256;
  using Ints = __m256i;

  static inline Floats zero() { return _mm256_setzero_ps(); }
  static inline Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static inline void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
  static inline Floats broadcast(float x) { return _mm256_set1_ps(x); }
  static inline Ints broadcast(int32_t x) { return _mm256_set1_epi32(x); }
  static inline Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static inline float sum(Floats v) {
    auto half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static inline Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }

  static inline Ints load_bytes(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static inline Floats load_halves(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static inline Floats low_bf16(Ints words) { return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)); }
  static inline Floats high_bf16(Ints words) {
    return _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(~0xFFFF)));
  }
  static inline Ints low_nibbles(Ints bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(15)); }
  static inline Ints high_nibbles(Ints bytes) {
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
  }
  /// maddubs adds two products in 16 bits: 2 · 127 · 127 fits, 2 · 255 · 127 would not. So the offset is
  /// removed here, and the sign of the weight goes to the input.
  static inline Ints dot_int8(Ints sum, Ints weights, Ints inputs) {
    const auto w = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
    const auto pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(inputs, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static inline Ints dot_int4(Ints sum, Ints weights, Ints inputs) {
    const auto pairs = _mm256_maddubs_epi16(weights, inputs);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

}  // namespace

const ProductKernels& avx2_kernels() {
  static constexpr ProductKernels kernels = kernels_of<Avx2>();
  return kernels;
}

}  // namespace zoo
ZOO_END_TARGET

#else

namespace zoo {
const ProductKernels& avx2_kernels() { return portable_kernels(); }
}  // namespace zoo

#endif
