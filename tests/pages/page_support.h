#pragma once
// Parts of a page, as a browser finds them.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/files.h"
#include "pages/attention/attention_page.h"
#include "tests/support/temp_dir.h"

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

/// Writes pages for the browser tests into the directory $ZOO_ATTENTION_PAGES, or into a temporary one.
inline void write_pages(const std::vector<std::pair<std::string, std::string>>& pages) {
  const TempDir temporary;
  const char* chosen = std::getenv("ZOO_ATTENTION_PAGES");
  const std::filesystem::path folder = chosen ? std::filesystem::path(chosen) : temporary / "pages";
  std::filesystem::create_directories(folder);
  for (const auto& [name, page] : pages) {
    write_file_atomically(folder / name, page);
    EXPECT_EQ(read_file(folder / name), page);
  }
}

inline void write_attention_pages(const std::vector<std::pair<std::string, AttentionReport>>& reports) {
  std::vector<std::pair<std::string, std::string>> pages;
  for (const auto& [name, report] : reports) pages.emplace_back(name, attention_page(report));
  write_pages(pages);
}

}  // namespace zoo::testing
