#include "kernels/isa/paths.h"

#include <string>

#include <ATen/Version.h>
#include <c10/util/Exception.h>

#include "base/named_enum.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

CpuPath find_best_path() {
#if defined(__x86_64__) && defined(__GNUC__)
  const std::string allowed = at::get_cpu_capability();
  const bool avx2 = allowed != "DEFAULT" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && allowed == "AVX512" && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  if (avx2) return avx512 ? CpuPath::avx512 : CpuPath::avx2;
#endif
  return CpuPath::portable;
}

}  // namespace

CpuPath best_path() {
  static const CpuPath path = find_best_path();
  return path;
}

bool has_path(CpuPath path) { return path <= best_path(); }

const Kernels& kernels(CpuPath path) {
  TORCH_CHECK(has_path(path), "this processor has no path ", name_of(path));
#if defined(__x86_64__) && defined(__GNUC__)
  if (path == CpuPath::avx512) return avx512_kernels();
  if (path == CpuPath::avx2) return avx2_kernels();
#endif
  return portable_kernels();
}

}  // namespace zoo
