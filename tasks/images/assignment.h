#pragma once
// The assignment problem: rows and columns are paired at the least total cost.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace zoo {

/// The pairs (row, column) with the least sum of costs, one for each row or each column, whichever are fewer,
/// in the order of the rows. `costs`: n_rows × n_columns finite numbers, row by row. Exact, in at most
/// min(n_rows, n_columns)² · max(n_rows, n_columns) steps: shortest augmenting paths (Crouse 2016), as in
/// scipy.optimize.linear_sum_assignment. Throws std::invalid_argument if a cost is not finite.
std::vector<std::pair<int64_t, int64_t>> cheapest_assignment(std::span<const double> costs, int64_t n_rows,
                                                             int64_t n_columns);

}  // namespace zoo
