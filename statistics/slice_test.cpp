#include "statistics/slice_test.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/random.h"

namespace zoo {
namespace {

constexpr int64_t kDrawsOfSlices = 2000;  // each sums all slices of all examples
constexpr uint64_t kSlicesPurpose = 5, kExchangedSlicesPurpose = 6;

/// The sums of one slice over some examples, for both models.
struct PairSums {
  double value = 0, weight = 0, baseline_value = 0, baseline_weight = 0;

  bool can_be_compared() const { return weight > 0 && baseline_weight > 0; }
  double difference() const { return value / weight - baseline_value / baseline_weight; }
};

/// One slice of both models.
struct Pair {
  const SliceValues &own, &baseline;

  size_t n() const { return own.values.size(); }
  void add(size_t i, PairSums& to) const {
    to.value += own.values[i], to.weight += own.weights[i];
    to.baseline_value += baseline.values[i], to.baseline_weight += baseline.weights[i];
  }
  void add_exchanged(size_t i, PairSums& to) const {
    to.value += baseline.values[i], to.weight += baseline.weights[i];
    to.baseline_value += own.values[i], to.baseline_weight += own.weights[i];
  }
  PairSums all() const {
    PairSums sums;
    for (size_t i = 0; i < n(); ++i) add(i, sums);
    return sums;
  }
  int64_t n_examples() const {
    int64_t count = 0;
    for (size_t i = 0; i < n(); ++i) count += own.weights[i] > 0 && baseline.weights[i] > 0 ? 1 : 0;
    return count;
  }
  bool are_equal() const { return own.values == baseline.values && own.weights == baseline.weights; }
};

std::vector<Pair> pairs_of(const std::vector<SliceValues>& slices, const std::vector<SliceValues>& baseline) {
  if (slices.size() != baseline.size()) throw std::invalid_argument("unequal numbers of slices");
  std::vector<Pair> pairs;
  for (size_t s = 0; s < slices.size(); ++s) {
    pairs.push_back({slices[s], baseline[s]});
    if (slices[s].values.size() != slices.front().values.size() ||
        baseline[s].values.size() != slices.front().values.size())
      throw std::invalid_argument("unequal numbers of examples");
  }
  return pairs;
}

std::vector<SliceValues> by_document(std::vector<SliceValues> slices, const std::vector<int64_t>& documents) {
  for (auto& slice : slices) {
    slice.values = sums_by_document(slice.values, documents);
    slice.weights = sums_by_document(slice.weights, documents);
  }
  return slices;
}

/// The differences of each slice in samples of the examples with replacement, sorted.
std::vector<std::vector<double>> bootstrap_of(const std::vector<Pair>& pairs) {
  const auto n = static_cast<int64_t>(pairs.front().n());
  std::vector<std::vector<double>> drawn(pairs.size());
  CounterRandom random({kSlicesPurpose, static_cast<uint64_t>(n)});
  std::vector<size_t> chosen(static_cast<size_t>(n));
  for (int64_t draw = 0; draw < kDrawsOfSlices; ++draw) {
    for (auto& example : chosen) example = static_cast<size_t>(random.below(n));
    for (size_t s = 0; s < pairs.size(); ++s) {
      PairSums sums;
      for (const size_t example : chosen) pairs[s].add(example, sums);
      if (sums.can_be_compared()) drawn[s].push_back(sums.difference());
    }
  }
  for (auto& differences : drawn) std::ranges::sort(differences);
  return drawn;
}

/// The probability of differences as far from 0 if each example belongs to either model by chance.
std::vector<double> exchange_p_of(const std::vector<Pair>& pairs) {
  const size_t n = pairs.front().n();
  CounterRandom random({kExchangedSlicesPurpose, static_cast<uint64_t>(n)});
  std::vector<int64_t> n_as_large(pairs.size());
  std::vector<PairSums> all;
  for (const auto& pair : pairs) all.push_back(pair.all());
  std::vector<bool> exchanged(n);
  for (int64_t draw = 0; draw < kDrawsOfSlices; ++draw) {
    for (size_t i = 0; i < n; ++i) exchanged[i] = random.below(2) == 1;
    for (size_t s = 0; s < pairs.size(); ++s) {
      if (!all[s].can_be_compared()) continue;
      PairSums sums;
      for (size_t i = 0; i < n; ++i) exchanged[i] ? pairs[s].add_exchanged(i, sums) : pairs[s].add(i, sums);
      // Sums of the same numbers in another order may differ by rounding.
      const double as_large = std::abs(all[s].difference()) - 1e-9;
      if (!sums.can_be_compared() || std::abs(sums.difference()) >= as_large) ++n_as_large[s];
    }
  }
  std::vector<double> p;
  for (const int64_t count : n_as_large)
    p.push_back(static_cast<double>(count + 1) / static_cast<double>(kDrawsOfSlices + 1));
  return p;
}

}  // namespace

std::vector<std::optional<PairedTest>> test_on_slices(const std::vector<SliceValues>& slices,
                                                      const std::vector<SliceValues>& baseline,
                                                      const std::vector<int64_t>& documents) {
  pairs_of(slices, baseline);  // throws
  const auto own_sums = by_document(slices, documents), baseline_sums = by_document(baseline, documents);
  const auto pairs = pairs_of(own_sums, baseline_sums);
  std::vector<std::optional<PairedTest>> tests(pairs.size());
  if (pairs.empty() || pairs.front().n() < 2) return tests;
  const auto drawn = bootstrap_of(pairs);
  const auto p = exchange_p_of(pairs);
  for (size_t s = 0; s < pairs.size(); ++s) {
    const auto n = pairs[s].n_examples();
    if (n < 2 || drawn[s].size() < 2) continue;
    if (pairs[s].are_equal()) {
      tests[s] = {.n = n, .difference = 0, .error = 0, .low = 0, .high = 0, .p = 1};
      continue;
    }
    tests[s] = {.n = n,
                .difference = pairs[s].all().difference(),
                .error = *mean_interval(drawn[s]).deviation,
                .low = nearest_quantile(drawn[s], (1 - kConfidence) / 2),
                .high = nearest_quantile(drawn[s], (1 + kConfidence) / 2),
                .p = p[s]};
  }
  return tests;
}

}  // namespace zoo
