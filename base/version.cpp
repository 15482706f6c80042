#include "base/version.h"

namespace zoo {

std::string_view version() { return ZOO_VERSION; }

}  // namespace zoo
