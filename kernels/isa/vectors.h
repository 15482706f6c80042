#pragma once
// Vectors in the notation of GCC and Clang, which translate it into any instructions.

#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

/// What the classes of instructions share. Operators, also between a vector and a float, do the rest: the
/// compiler makes fused instructions of a · b + c.
template <int lanes>
struct Vectors {
  static constexpr int kLanes = lanes;
  // As typedef, because g++ 12 forgets the attribute of an alias that depends on a parameter.
  typedef float Floats __attribute__((vector_size(4 * lanes)));
  typedef int32_t Ints __attribute__((vector_size(4 * lanes)));
  typedef uint32_t Bits __attribute__((vector_size(4 * lanes)));
  // In memory, at any place.
  typedef float AnyFloats __attribute__((vector_size(4 * lanes), aligned(1), may_alias));
  typedef int32_t AnyInts __attribute__((vector_size(4 * lanes), aligned(1), may_alias));

  static inline Floats load(const float* p) { return *reinterpret_cast<const AnyFloats*>(p); }
  static inline void store(float* p, Floats v) { *reinterpret_cast<AnyFloats*>(p) = v; }
  static inline Ints load_bytes(const uint8_t* p) { return *reinterpret_cast<const AnyInts*>(p); }
  static inline Floats low_bf16(Ints words) { return __builtin_bit_cast(Floats, words << 16); }
  static inline Floats high_bf16(Ints words) { return __builtin_bit_cast(Floats, words & ~0xFFFF); }
  static inline Ints low_nibbles(Ints bytes) { return bytes & 0x0F0F0F0F; }
  static inline Ints high_nibbles(Ints bytes) { return (bytes >> 4) & 0x0F0F0F0F; }
};

}  // namespace
}  // namespace zoo
