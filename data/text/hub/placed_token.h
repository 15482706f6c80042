#pragma once
// A token with its place.

#include <cstddef>
#include <cstdint>

namespace zoo {

/// A token, and the code points of the text that it stands for: begin … end - 1.
struct PlacedToken {
  int64_t id;
  size_t begin, end;
  bool operator==(const PlacedToken&) const = default;
};

}  // namespace zoo
