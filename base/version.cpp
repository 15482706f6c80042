#include "base/version.h"

namespace zoo {

std::string_view version() { return ZOO_VERSION; }

std::string_view compiler() { return ZOO_COMPILER; }

std::string_view build_type() { return ZOO_BUILD_TYPE; }

}  // namespace zoo
