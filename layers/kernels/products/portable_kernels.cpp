// The products in vectors of 128 bits, in the notation of GCC and Clang: for processors without AVX2, and for
// those of other makes.

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "layers/kernels/products/panel_loops.h"
#include "layers/kernels/products/panels.h"
#include "layers/kernels/products/product_kernels.h"

namespace zoo {
namespace {

struct Portable {
  static constexpr int kLanes = 4, kFloatRows = 6, kIntRows = 4;
  static constexpr int32_t kInt8Offset = zoo::kInt8Offset;
  using Floats = float __attribute__((vector_size(16)));
  using Ints = int32_t __attribute__((vector_size(16)));
  using Shorts = int16_t __attribute__((vector_size(16)));

  template <class Vector>
  static inline Vector load_any(const void* p) {
    Vector result;
    std::memcpy(&result, p, sizeof result);
    return result;
  }

  static inline Floats zero() { return Floats{}; }
  static inline Floats load(const float* p) { return load_any<Floats>(p); }
  static inline void store(float* p, Floats v) { std::memcpy(p, &v, sizeof v); }
  static inline Floats broadcast(float x) { return Floats{x, x, x, x}; }
  static inline Ints broadcast(int32_t x) { return Ints{x, x, x, x}; }
  static inline Floats mul(Floats a, Floats b) { return a * b; }
  static inline Floats fma(Floats a, Floats b, Floats c) { return a * b + c; }
  static inline float sum(Floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }
  static inline Floats to_floats(Ints v) { return __builtin_convertvector(v, Floats); }

  static inline Ints load_bytes(const uint8_t* p) { return load_any<Ints>(p); }
  static inline Floats load_halves(const uint8_t* p) {
    uint16_t halves[4];
    std::memcpy(halves, p, sizeof halves);
    const auto bits = Ints{halves[0], halves[1], halves[2], halves[3]};
    // The exponent grows by 112 in the multiplication, which also makes denormal numbers normal. Infinities
    // and NaN have become 2^16 and more.
    const auto magnitude = std::bit_cast<Floats>((bits & 0x7FFF) << 13) * broadcast(0x1p112F);
    const auto infinite = (magnitude >= broadcast(65536.0F)) & 0x7F800000;
    return std::bit_cast<Floats>(std::bit_cast<Ints>(magnitude) | infinite | (bits & 0x8000) << 16);
  }
  static inline Floats low_bf16(Ints words) { return std::bit_cast<Floats>(words << 16); }
  static inline Floats high_bf16(Ints words) { return std::bit_cast<Floats>(words & ~0xFFFF); }
  static inline Ints low_nibbles(Ints bytes) { return bytes & 0x0F0F0F0F; }
  static inline Ints high_nibbles(Ints bytes) { return (bytes >> 4) & 0x0F0F0F0F; }
  /// The products of two inputs of each lane, which fit into 16 bits, and then of the two others.
  static inline Ints dot_int8(Ints sum, Ints weights, Ints inputs) {
    const auto even = std::bit_cast<Ints>(std::bit_cast<Shorts>(weights & 0x00FF00FF) *
                                          (std::bit_cast<Shorts>(inputs) << 8 >> 8));
    const auto odd = std::bit_cast<Ints>(std::bit_cast<Shorts>((weights >> 8) & 0x00FF00FF) *
                                         (std::bit_cast<Shorts>(inputs) >> 8));
    return sum + (even << 16 >> 16) + (even >> 16) + (odd << 16 >> 16) + (odd >> 16);
  }
  static inline Ints dot_int4(Ints sum, Ints weights, Ints inputs) { return dot_int8(sum, weights, inputs); }
};

}  // namespace

const ProductKernels& portable_kernels() {
  static constexpr ProductKernels kernels = kernels_of<Portable>();
  return kernels;
}

}  // namespace zoo
