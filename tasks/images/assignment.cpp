#include "tasks/images/assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace zoo {
namespace {

/// Assigns rows one after the other. Each takes the shortest path, in reduced costs, to a free column, and
/// the rows on this path change their columns.
class Assignment {
 public:
  /// n_rows ≤ n_columns; `cost(row, column)` gives the costs.
  template <class Cost>
  Assignment(int64_t n_rows, int64_t n_columns, const Cost& cost)
      : row_price_(size(n_rows)),
        column_price_(size(n_columns)),
        column_of_(size(n_rows), -1),
        row_of_(size(n_columns), -1) {
    for (int64_t row = 0; row < n_rows; ++row) add(row, n_columns, cost);
  }

  const std::vector<int64_t>& column_of() const { return column_of_; }

 private:
  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  template <class Cost>
  void add(int64_t new_row, int64_t n_columns, const Cost& cost) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    std::vector<double> length(size(n_columns), infinite);  // of the shortest path to each column
    std::vector<int64_t> row_before(size(n_columns), -1);   // on this path
    std::vector<char> done(size(n_columns), 0);
    double reached = 0;
    int64_t row = new_row, free_column = -1;
    while (free_column < 0) {
      int64_t nearest = -1;
      for (int64_t column = 0; column < n_columns; ++column) {
        if (done[size(column)]) continue;
        const double through =
            reached + cost(row, column) - row_price_[size(row)] - column_price_[size(column)];
        if (through < length[size(column)]) length[size(column)] = through, row_before[size(column)] = row;
        // Among equally near columns, a free one ends the search.
        const bool nearer = nearest < 0 || length[size(column)] < length[size(nearest)] ||
                            (length[size(column)] == length[size(nearest)] && row_of_[size(column)] < 0);
        if (nearer) nearest = column;
      }
      reached = length[size(nearest)];
      done[size(nearest)] = 1;
      if (row_of_[size(nearest)] < 0) {
        free_column = nearest;
      } else {
        row = row_of_[size(nearest)];
      }
    }
    row_price_[size(new_row)] += reached;
    for (int64_t column = 0; column < n_columns; ++column) {
      if (!done[size(column)] || column == free_column) continue;
      row_price_[size(row_of_[size(column)])] += reached - length[size(column)];
      column_price_[size(column)] -= reached - length[size(column)];
    }
    for (int64_t column = free_column;;) {
      const int64_t owner = row_before[size(column)];
      row_of_[size(column)] = owner;
      std::swap(column_of_[size(owner)], column);
      if (owner == new_row) return;
    }
  }

  std::vector<double> row_price_, column_price_;
  std::vector<int64_t> column_of_, row_of_;  // -1 = none
};

}  // namespace

std::vector<std::pair<int64_t, int64_t>> cheapest_assignment(std::span<const double> costs, int64_t n_rows,
                                                             int64_t n_columns) {
  if (!std::ranges::all_of(costs, [](double cost) { return std::isfinite(cost); }))
    throw std::invalid_argument("the costs of an assignment must be finite");
  const auto cost = [&](int64_t row, int64_t column) {
    return costs[static_cast<size_t>(row * n_columns + column)];
  };
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (n_rows <= n_columns) {
    const Assignment assignment(n_rows, n_columns, cost);
    for (int64_t row = 0; row < n_rows; ++row)
      pairs.emplace_back(row, assignment.column_of()[static_cast<size_t>(row)]);
    return pairs;
  }
  const Assignment assignment(n_columns, n_rows,
                              [&](int64_t column, int64_t row) { return cost(row, column); });
  for (int64_t column = 0; column < n_columns; ++column)
    pairs.emplace_back(assignment.column_of()[static_cast<size_t>(column)], column);
  std::ranges::sort(pairs);
  return pairs;
}

}  // namespace zoo
