#include "pages/playground/playground_page.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pages/page_support.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(PlaygroundPage, NeedsNothingButItsServer) {
  const auto& page = playground_page().html;
  for (const auto* reference : {"http:", "https:", "@import", "url(", "<img", "{{style}}", "{{script}}"})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  EXPECT_EQ(testing::count(page, "<script"), 2U);  // the data, which is empty, and the program
  EXPECT_EQ(testing::count(page, "<style"), 1U);
  EXPECT_EQ(testing::data_of(page), nlohmann::ordered_json::object());
}

// The browser test proves that the hashes are those of the script and the style: without them nothing runs.
TEST(PlaygroundPage, LetsOnlyItsOwnScriptAndStyleRun) {
  const auto& policy = playground_page().content_security_policy;
  EXPECT_THAT(
      policy,
      MatchesRegex(
          "default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]*='; "
          "style-src 'sha256-[A-Za-z0-9+/]*='; img-src data: blob:; media-src blob:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

// For the browser test, in $ZOO_REPORT_PAGES, or in a temporary directory.
TEST(PlaygroundPage, IsWrittenForABrowser) {
  const testing::TempDir temporary;
  const char* chosen = std::getenv("ZOO_REPORT_PAGES");
  const std::filesystem::path folder = chosen ? std::filesystem::path(chosen) : temporary / "pages";
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "playground.html", playground_page().html);
  write_file_atomically(folder / "playground.html.policy", playground_page().content_security_policy);
  EXPECT_EQ(read_file(folder / "playground.html"), playground_page().html);
}

}  // namespace
}  // namespace zoo
