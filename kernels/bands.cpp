#include "kernels/bands.h"

#include <algorithm>

namespace zoo {
namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// The causal part of a band whose queries and keys have the same step s: key number j is not after query
/// number i if j ≤ i + ⌊(first query - first key)/s⌋.
Band causal_of_equal_steps(Band band) {
  band.high = std::min(band.high, floor_divide(band.queries.first - band.keys.first, band.queries.step) + 1);
  return band;
}

}  // namespace

Band Band::before(int64_t n_keys) const {
  Band band = *this;
  const int64_t left = n_keys <= keys.first ? 0 : (n_keys - keys.first - 1) / keys.step + 1;
  band.keys.count = std::min(keys.count, left);
  return band;
}

int64_t Band::n_pairs() const {
  int64_t total = 0;
  for (int64_t i = 0; i < queries.count; ++i) total += std::max<int64_t>(end_key(i) - first_key(i), 0);
  return total;
}

Bands causal(const Bands& bands) {
  Bands result;
  for (const auto& band : bands) {
    if (band.queries.count == 0 || band.keys.count == 0) continue;
    if (band.keys[band.keys.count - 1] <= band.queries.first) {
      result.push_back(band);
    } else if (band.queries.step == band.keys.step) {
      result.push_back(causal_of_equal_steps(band));
    } else {
      TORCH_CHECK(band.keys.first > band.queries[band.queries.count - 1], "a band of queries with step ",
                  band.queries.step, " and keys with step ", band.keys.step, " cannot be made causal");
    }
  }
  return result;
}

int64_t n_pairs(const Bands& bands) {
  int64_t total = 0;
  for (const auto& band : bands) total += band.n_pairs();
  return total;
}

torch::Tensor visible_pairs(const Bands& bands, int64_t n_queries, int64_t n_keys) {
  const auto result = torch::zeros({n_queries, n_keys}, torch::kBool);
  auto visible = result.accessor<bool, 2>();
  for (const auto& band : bands) {
    for (int64_t i = 0; i < band.queries.count; ++i)
      for (int64_t j = band.first_key(i); j < band.end_key(i); ++j) {
        const int64_t query = band.queries[i], key = band.keys[j];
        if (query < n_queries && key < n_keys) visible[query][key] = true;
      }
  }
  return result;
}

}  // namespace zoo
