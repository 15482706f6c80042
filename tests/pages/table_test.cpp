// The table in the terminal.

#include "pages/tables/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pages/tables/report_markdown.h"
#include "tests/pages/made_up_results.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Three runs. The first has failed with every seed; otherwise it would be the smallest and fastest.
Json with_a_failed_run() {
  auto results = three_families();
  auto& runs = results["runs"];
  results["match"] = nullptr;
  runs[0]["metric"] = nullptr;
  runs[0]["peak_memory_bytes"] = nullptr;
  for (auto& seed : runs[0]["seeds"]) {
    seed["end"] = "failed";
    seed["seconds"] = 0;
    seed["valid"] = Json::object();
  }
  for (const size_t i : {1, 2}) {
    for (auto& seed : runs[i]["seeds"]) seed["seconds"] = seed["end"] == "failed" ? 0 : 100 * i;
    runs[i]["peak_memory_bytes"] = i * 1'000'000;
  }
  runs[0]["parameters"] = 1000;
  runs[1]["parameters"] = 2000;
  runs[2]["parameters"] = 3000;
  mark_best_values(results);
  return results;
}

TEST(Table, AFailedRunIsTheBestInNothing) {
  const auto table = results_table(with_a_failed_run(), TableStyle::terminal);
  EXPECT_THAT(table, HasSubstr("\033[1m2 k\033[0m"));
  EXPECT_THAT(table, Not(HasSubstr("\033[1m1 k")));
  EXPECT_THAT(table, HasSubstr("\033[1m1 MB\033[0m"));
  EXPECT_THAT(table, HasSubstr("\033[1m100 s\033[0m"));
  EXPECT_THAT(table, HasSubstr("200 s"));  // the mean of the seeds that did not fail
  const auto page = report_markdown(with_a_failed_run());
  EXPECT_THAT(page, HasSubstr("| **2 k** |"));
  EXPECT_THAT(page, HasSubstr("| 1 k |"));
}

TEST(Table, NamesDoNotControlTheTerminal) {
  auto results = three_families();
  results["runs"][0]["name"] = "evil \x1b[2J";
  EXPECT_THAT(results_table(results, TableStyle::plain), HasSubstr("evil \\x1b[2J"));
}

}  // namespace
}  // namespace zoo::testing
