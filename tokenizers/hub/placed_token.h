#pragma once
// A token with its place.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zoo {

/// A token, and the code points of the text that it stands for: begin … end - 1.
struct PlacedToken {
  int64_t id;
  size_t begin, end;
  bool operator==(const PlacedToken&) const = default;
};

/// Turns places in bytes of `text`, UTF-8, into places in code points.
void in_code_points(std::string_view text, std::vector<PlacedToken>& tokens);

}  // namespace zoo
