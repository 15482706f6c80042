#pragma once
// The sets of instructions for which the loops of this folder are compiled.

#include <array>
#include <string_view>

namespace zoo {

///   portable  vectors of 128 bits in the compiler's own notation, for every processor
///   avx2      256 bits; also needs FMA and F16C (x86 since 2013)
///   avx512    512 bits; also needs VNNI, which sums products of four small integers (x86 since 2019)
enum class CpuPath { portable, avx2, avx512 };
constexpr auto config_names(CpuPath) {
  return std::to_array<std::string_view>({"portable", "avx2", "avx512"});
}

/// Whether the processor has the instructions of `path`, and LibTorch may use them: ATEN_CPU_CAPABILITY=avx2
/// (or default) keeps all our loops from wider vectors, too.
bool has_path(CpuPath path);
/// The last path that this processor has.
CpuPath best_path();

}  // namespace zoo
