#include "generation/rows/row_shares.h"

#include <algorithm>
#include <map>

namespace zoo {

std::vector<bool> rows_that_grow(std::span<const BegunRow> rows, int64_t most_rows, int64_t shared_rows) {
  std::map<size_t, std::vector<size_t>> of_request;
  for (const bool grows : {true, false}) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].grows == grows) of_request[rows[i].request].push_back(i);
    }
  }
  std::vector<bool> result(rows.size());
  int64_t n = 0;
  for (size_t turn = 0; n < std::ssize(rows); ++turn) {
    const int64_t most = turn == 0 ? most_rows : std::min(most_rows, shared_rows);
    const int64_t before = n;
    for (const auto& [request, own] : of_request) {
      if (turn >= own.size() || n >= most) continue;
      result[own[turn]] = true;
      ++n;
    }
    if (n == before) break;
  }
  return result;
}

}  // namespace zoo
