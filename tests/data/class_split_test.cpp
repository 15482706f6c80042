// Which rows of a table with classes are for training, and which for validation.

#include "data/class_split.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zoo {
namespace {

TEST(RowsOfSplit, LeaveEachClassARowForTraining) {
  DataConfig config;
  config.valid_fraction = 0.5;
  constexpr int n_classes = 50, n_rows = 2;
  std::vector<RowIdentity> rows;
  for (int i = 0; i < n_classes * n_rows; ++i)
    rows.push_back({.text = fmt::format("text {}", i), .label = fmt::format("class {}", i % n_classes)});
  const auto trained = rows_of_split(config, Split::train, rows),
             validated = rows_of_split(config, Split::valid, rows);
  std::set<std::string> classes;
  int n_trained = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NE(trained[i], validated[i]) << i;
    if (!trained[i]) continue;
    classes.insert(rows[i].label);
    ++n_trained;
  }
  EXPECT_EQ(classes.size(), n_classes);
  EXPECT_LT(n_trained, n_classes * n_rows);
}

}  // namespace
}  // namespace zoo
