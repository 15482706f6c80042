#pragma once
// Which outputs grow in a step, when requests of one output and of many share the places.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zoo {

/// An output that has been begun.
struct BegunRow {
  size_t request;
  bool grows;  // in the last step; otherwise it has paused
};

/// Returns for each row whether it grows in the next step. Each request has one row that grows, as long as
/// there are at most `most_rows` requests; earlier ones come first. Further rows grow as long as there are
/// fewer than `shared_rows`, by turns of the requests. Of one request, rows that have grown go on before
/// those that have paused. `rows`: those of a request with a lower number need not come first.
std::vector<bool> rows_that_grow(std::span<const BegunRow> rows, int64_t most_rows, int64_t shared_rows);

}  // namespace zoo
