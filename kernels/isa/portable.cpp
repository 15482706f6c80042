// The loops in vectors of 128 bits, in the notation of GCC and Clang: for processors without AVX2, and for
// those of other makes.

#include "kernels/isa/all_loops.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

struct Portable : Vectors<4> {
  static constexpr int kFloatRows = 6, kIntRows = 4;
  static constexpr int32_t kInt8Offset = zoo::kInt8Offset;
  using Shorts = int16_t __attribute__((vector_size(16)));

  static inline float sum(Floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }
  static inline float largest(Floats v) { return std::max(std::max(v[0], v[2]), std::max(v[1], v[3])); }
  static inline Floats load_halves(const uint8_t* p) {
    uint16_t halves[4];
    std::memcpy(halves, p, sizeof halves);
    const auto bits = Ints{halves[0], halves[1], halves[2], halves[3]};
    // The exponent grows by 112 in the multiplication, which also makes denormal numbers normal. Infinities
    // and NaN have become 2^16 and more.
    const auto magnitude = std::bit_cast<Floats>((bits & 0x7FFF) << 13) * 0x1p112F;
    const auto infinite = (magnitude >= 65536.0F) & 0x7F800000;
    return std::bit_cast<Floats>(std::bit_cast<Ints>(magnitude) | infinite | (bits & 0x8000) << 16);
  }
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

const Kernels& portable_kernels() {
  static constexpr Kernels kernels = kernels_of<Portable>();
  return kernels;
}

}  // namespace zoo
