// The page of a structure.

#include "pages/structures/structure_page.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/pages/page_support.h"
#include "tests/support/errors.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

/// A helix of n residues in each of the chains.
CaTrace helix(int64_t n, const std::vector<std::string>& chains = {"A"}) {
  CaTrace trace;
  trace.chains = chains;
  std::vector<double> places;
  for (size_t chain = 0; chain < chains.size(); ++chain) {
    for (int64_t i = 0; i < n; ++i) {
      constexpr double radius = 2.3, turn = 1.745, rise = 1.5;  // of an alpha helix: Å, radians, Å
      const auto x = static_cast<double>(i);
      places.insert(places.end(), {radius * std::cos(turn * x) + 12 * static_cast<double>(chain),
                                   radius * std::sin(turn * x), rise * x});
      trace.chain_of.push_back(static_cast<int64_t>(chain));
      trace.letters += "ACDEFGHIKLMNPQRSTVWY"[i % 20];
      trace.numbers.push_back(std::to_string(i + 1));
      trace.b_factors.push_back(std::fmod(40 + 7 * x, 100));
    }
  }
  trace.positions = torch::tensor(places, torch::kDouble).view({-1, 3});
  return trace;
}

/// A prediction of 30 residues with all that a page shows, whose truth lacks the first five.
ShownStructure prediction() {
  const auto trace = helix(30);
  auto truth = trace;
  truth.positions = truth.positions + torch::tensor({0.0, 1.0, 0.0}) * torch::arange(30).unsqueeze(1) / 10;
  truth.positions = truth.positions.slice(0, 5);
  truth.letters.erase(0, 5);
  truth.numbers.erase(truth.numbers.begin(), truth.numbers.begin() + 5);
  truth.chain_of.resize(25);
  truth.b_factors.resize(25);
  return {.title = "T1 </script>",
          .trace = trace,
          .origin = StructureOrigin::predicted,
          .predicted_tm_score = 0.75,
          .aligned_error = torch::arange(900).view({30, 30}) / 30,
          .truth = superposed(trace, "T1", truth, "truth"),
          .truth_title = "1abc.pdb"};
}

TEST(StructurePage, HasTheStructureAsJson) {
  const auto data = data_of(structure_page(prediction()));
  EXPECT_EQ(data["title"], "T1 </script>");
  EXPECT_EQ(data["predicted"], true);
  EXPECT_EQ(data["tm_score"], 0.75);
  EXPECT_EQ(data["trace"]["places"].size(), 90U);
  EXPECT_EQ(data["trace"]["places"][0], 2.3);
  EXPECT_EQ(data["aligned_error"]["size"], 30);
  EXPECT_EQ(data["truth"]["pairs"].size(), 25U);
  EXPECT_EQ(data["truth"]["pairs"][0], nlohmann::ordered_json({5, 0}));
  EXPECT_EQ(data["truth"]["length"], 25);
  const auto alone = data_of(structure_page({.title = "x", .trace = helix(3)}));
  EXPECT_TRUE(alone["truth"].is_null());
  EXPECT_TRUE(alone["aligned_error"].is_null());
}

TEST(StructurePage, ErrorsOfALongChainAreMeans) {
  const auto data = data_of(
      structure_page({.title = "x", .trace = helix(1024), .aligned_error = torch::full({1024, 1024}, 2.5)}));
  EXPECT_EQ(data["aligned_error"]["size"], 512);
  EXPECT_THAT(data["aligned_error"]["rows"].get<std::string>(), ::testing::StartsWith("CgoK"))
      << "10, 10, 10";
}

TEST(StructurePage, RefusesWhatIsTooLarge) {
  EXPECT_THAT(
      message_of<DataError>([] { structure_page({.title = "x", .trace = helix(kMostShownResidues + 1)}); }),
      HasSubstr("x: has 20001 residues, and a page shows at most 20000"));
}

// The browser test opens these pages.
TEST(StructurePage, WritesPagesForABrowser) {
  write_pages(
      {{"structure.html", structure_page(prediction())},
       {"structure-alone.html", structure_page({.title = "two chains", .trace = helix(24, {"A", "B"})})},
       {"structure-point.html", structure_page({.title = "one residue", .trace = helix(1)})}});
}

}  // namespace
}  // namespace zoo::testing
