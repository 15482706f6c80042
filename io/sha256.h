#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// Hex digest of a SHA-256 over `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace zoo
