#include "parallel/backends.h"

namespace zoo {

bool has_nccl() {
#ifdef USE_C10D_NCCL
  return true;
#else
  return false;
#endif
}

}  // namespace zoo
