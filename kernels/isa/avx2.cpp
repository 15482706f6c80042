// The loops in vectors of 256 bits.

#include "kernels/isa/kernels.h"
#include "kernels/isa/target.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

ZOO_BEGIN_TARGET("avx2,fma,f16c")
#include "kernels/isa/all_loops.h"

namespace zoo {
namespace {

struct Avx2 : Vectors<8> {
  static constexpr int kFloatRows = 6, kIntRows = 4;
  static constexpr int32_t kInt8Offset = 0;

  static inline float sum(Floats v) {
    auto half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static inline float largest(Floats v) {
    auto half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }
  static inline Floats load_halves(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
  }
  /// maddubs adds two products in 16 bits: 2 · 127 · 127 fits, 2 · 255 · 127 would not. So the offset is
  /// removed here, and the sign of the weight goes to the input.
  static inline Ints dot_int8(Ints sum, Ints weights, Ints inputs) {
    const auto w = _mm256_xor_si256((__m256i)weights, _mm256_set1_epi8(-128));
    return dot_int4(sum, (Ints)_mm256_abs_epi8(w), (Ints)_mm256_sign_epi8((__m256i)inputs, w));
  }
  static inline Ints dot_int4(Ints sum, Ints weights, Ints inputs) {
    const auto pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)inputs);
    return sum + (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
};

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels kernels = kernels_of<Avx2>();
  return kernels;
}

}  // namespace zoo
ZOO_END_TARGET

#endif
