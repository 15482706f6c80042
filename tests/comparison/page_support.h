#pragma once
// Parts of a page, as a browser finds them.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace zoo::testing {

inline size_t count(const std::string& page, std::string_view part) {
  size_t n = 0;
  for (size_t at = page.find(part); at != page.npos; at = page.find(part, at + 1)) ++n;
  return n;
}

/// The text between `open` and the next `close`.
inline std::string between(const std::string& page, std::string_view open, std::string_view close) {
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find(close, begin) - begin);
}

/// The page's data: its script element up to the first `</script`.
inline nlohmann::ordered_json data_of(const std::string& page) {
  return nlohmann::ordered_json::parse(
      between(page, R"(<script type="application/json" id="data">)", "</script"));
}

}  // namespace zoo::testing
