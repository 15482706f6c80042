#include "layers/kernels/products/paths.h"

#include <ATen/Version.h>

#include "layers/kernels/vector_kernels.h"

namespace zoo {
namespace {

bool has_avx2_path() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool result = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("f16c") && at::get_cpu_capability() != "DEFAULT";
  return result;
#else
  return false;
#endif
}

bool has_avx512_path() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool result = has_avx512() && __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                             __builtin_cpu_supports("avx512vnni");
  return result;
#else
  return false;
#endif
}

}  // namespace

bool has_path(ProductPath path) {
  switch (path) {
    case ProductPath::portable:
      return true;
    case ProductPath::avx2:
      return has_avx2_path();
    case ProductPath::avx512:
      return has_avx512_path();
  }
  return false;
}

ProductPath best_path() {
  if (has_avx512_path()) return ProductPath::avx512;
  return has_avx2_path() ? ProductPath::avx2 : ProductPath::portable;
}

}  // namespace zoo
