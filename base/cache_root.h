#pragma once
// Where files are kept that only save time.

#include <filesystem>

namespace zoo {

/// $ZOO_CACHE, else $XDG_CACHE_HOME/transformer-zoo, else ~/.cache/transformer-zoo; empty if none is set.
std::filesystem::path cache_root();

}  // namespace zoo
