#include "tasks/images/assignment.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/random.h"

namespace zoo {
namespace {

double total(const std::vector<double>& costs, int64_t n_columns,
             const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  double sum = 0;
  for (const auto& [row, column] : pairs) sum += costs[static_cast<size_t>(row * n_columns + column)];
  return sum;
}

/// The least cost over all ways to choose a column for each row; n_rows ≤ n_columns.
double least_by_trying(const std::vector<double>& costs, int64_t n_rows, int64_t n_columns) {
  std::vector<int64_t> order(static_cast<size_t>(n_columns));
  std::iota(order.begin(), order.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    double sum = 0;
    for (int64_t row = 0; row < n_rows; ++row)
      sum += costs[static_cast<size_t>(row * n_columns + order[static_cast<size_t>(row)])];
    least = std::min(least, sum);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

TEST(CheapestAssignment, IsTheBestOfAll) {
  CounterRandom random({1});
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t n_rows = 1 + random.below(6), n_columns = 1 + random.below(6);
    std::vector<double> costs, turned(static_cast<size_t>(n_rows * n_columns));
    // Also costs with many ties, and negative ones.
    for (int64_t i = 0; i < n_rows * n_columns; ++i)
      costs.push_back(trial % 2 == 0 ? random.uniform() - 0.5 : static_cast<double>(random.below(3)));
    for (int64_t row = 0; row < n_rows; ++row)
      for (int64_t column = 0; column < n_columns; ++column)
        turned[static_cast<size_t>(column * n_rows + row)] =
            costs[static_cast<size_t>(row * n_columns + column)];
    const auto pairs = cheapest_assignment(costs, n_rows, n_columns);
    ASSERT_EQ(std::ssize(pairs), std::min(n_rows, n_columns));
    std::vector<int64_t> rows, columns;
    for (const auto& [row, column] : pairs) rows.push_back(row), columns.push_back(column);
    EXPECT_TRUE(std::ranges::is_sorted(rows));
    std::ranges::sort(columns);
    EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
    EXPECT_EQ(std::ranges::adjacent_find(columns), columns.end());
    const double least = n_rows <= n_columns ? least_by_trying(costs, n_rows, n_columns)
                                             : least_by_trying(turned, n_columns, n_rows);
    EXPECT_NEAR(total(costs, n_columns, pairs), least, 1e-12);
  }
}

TEST(CheapestAssignment, WithoutRowsThereAreNoPairs) {
  EXPECT_TRUE(cheapest_assignment({}, 0, 5).empty());
  EXPECT_TRUE(cheapest_assignment({}, 5, 0).empty());
}

TEST(CheapestAssignment, RefusesWhatIsNotFinite) {
  const std::vector<double> costs = {1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THROW(cheapest_assignment(costs, 1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace zoo
