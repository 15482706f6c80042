#include "statistics/example_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/student_t.h"

namespace zoo {
namespace {

constexpr int64_t kDraws = 10'000;
constexpr uint64_t kBootstrapPurpose = 1, kExchangePurpose = 2;

/// The metric's differences in samples of the examples with replacement, sorted.
std::vector<double> bootstrap(const std::vector<double>& differences, const std::vector<double>& weights) {
  const auto n = std::ssize(differences);
  CounterRandom random({kBootstrapPurpose, static_cast<uint64_t>(n)});
  std::vector<double> drawn;
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    double difference = 0, weight = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto chosen = static_cast<size_t>(random.below(n));
      difference += differences[chosen];
      weight += weights[chosen];
    }
    if (weight > 0) drawn.push_back(difference / weight);
  }
  std::ranges::sort(drawn);
  return drawn;
}

/// The probability of sums as far from 0 if each difference has either sign by chance.
double exchange_p(const std::vector<double>& differences) {
  const double sum = std::abs(std::accumulate(differences.begin(), differences.end(), 0.0));
  // Sums of the same differences in another order may differ by rounding.
  const double size = std::accumulate(differences.begin(), differences.end(), 0.0,
                                      [](double all, double one) { return all + std::abs(one); });
  const double as_large = sum - 1e-12 * size;
  CounterRandom random({kExchangePurpose, static_cast<uint64_t>(differences.size())});
  int64_t n_as_large = 0;
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    double exchanged = 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < differences.size(); ++i) {
      if (i % 64 == 0) bits = random.next();
      exchanged += (bits >> (i % 64) & 1U) != 0 ? differences[i] : -differences[i];
    }
    n_as_large += std::abs(exchanged) >= as_large ? 1 : 0;
  }
  return static_cast<double>(n_as_large + 1) / static_cast<double>(kDraws + 1);
}

double deviation_of(const std::vector<double>& values) { return *mean_interval(values).deviation; }

bool can_be_compared(const ExampleValues& values, const ExampleValues& baseline) {
  return values.values.size() >= 2 && values.inputs == baseline.inputs &&
         values.weights == baseline.weights && values.documents == baseline.documents;
}

/// Whether each example is one answer, right or wrong.
bool are_answers(const ExampleValues& values) {
  return values.documents.empty() &&
         std::ranges::all_of(values.weights, [](double weight) { return weight == 1; }) &&
         std::ranges::all_of(values.values, [](double value) { return value == 0 || value == 1; });
}

/// The score test of whether two shares of right answers differ by the margin, 0 < margin < 1.
double equivalence_of_answers(const ExampleValues& values, const ExampleValues& baseline, double margin) {
  double more = 0, less = 0;  // answers that only one of the models has right
  for (size_t i = 0; i < values.values.size(); ++i) {
    more += values.values[i] > baseline.values[i] ? 1 : 0;
    less += values.values[i] < baseline.values[i] ? 1 : 0;
  }
  if (more < less) std::swap(more, less);
  const auto n = static_cast<double>(values.values.size());
  // The most likely share of `less` where the shares differ by the margin.
  const double slope = more + less + (more - less) * margin - 2 * n * margin;
  const double share = (slope + std::sqrt(slope * slope + 8 * n * less * margin * (1 - margin))) / (4 * n);
  const double deviation = std::sqrt(n * (2 * share + margin * (1 - margin)));
  return 1 - student_t_cdf((n * margin - (more - less)) / deviation, n - 1);
}

}  // namespace

double SliceValues::weight() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }

double SliceValues::mean() const { return std::accumulate(values.begin(), values.end(), 0.0) / weight(); }

std::vector<double> sums_by_document(const std::vector<double>& values,
                                     const std::vector<int64_t>& documents) {
  if (documents.empty()) return values;
  std::vector<double> sums(static_cast<size_t>(std::ranges::max(documents) + 1));
  for (size_t i = 0; i < values.size(); ++i) sums.at(static_cast<size_t>(documents.at(i))) += values[i];
  return sums;
}

std::optional<PairedTest> test_on_examples(const ExampleValues& values, const ExampleValues& baseline) {
  if (!can_be_compared(values, baseline)) return std::nullopt;
  const auto weights = sums_by_document(values.weights, values.documents);
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(weight > 0) || weights.size() < 2) return std::nullopt;
  std::vector<double> differences(values.values.size());
  std::ranges::transform(values.values, baseline.values, differences.begin(), std::minus<>());
  differences = sums_by_document(differences, values.documents);
  if (std::ranges::all_of(differences, [](double one) { return one == 0; }))
    return PairedTest{.n = std::ssize(differences), .difference = 0, .error = 0, .low = 0, .high = 0, .p = 1};
  const auto drawn = bootstrap(differences, weights);
  return PairedTest{.n = std::ssize(differences),
                    .difference = std::accumulate(differences.begin(), differences.end(), 0.0) / weight,
                    .error = deviation_of(drawn),
                    .low = nearest_quantile(drawn, (1 - kConfidence) / 2),
                    .high = nearest_quantile(drawn, (1 + kConfidence) / 2),
                    .p = exchange_p(differences)};
}

std::optional<double> equivalence_on_examples(const ExampleValues& values, const ExampleValues& baseline,
                                              const PairedTest& test, double margin) {
  const auto p = equivalence_p(test, margin);
  if (!p || margin <= 0) return p;
  if (!values.outputs.empty() && values.outputs == baseline.outputs) return 0;
  const bool of_answers = are_answers(values) && are_answers(baseline);
  if (margin >= 1 || !(of_answers || *test.error == 0)) return p;
  const double without_difference = std::pow(1 - margin, static_cast<double>(test.n));
  return std::max(without_difference, of_answers ? equivalence_of_answers(values, baseline, margin) : *p);
}

DifferingExamples differing_examples(const ExampleValues& values, const ExampleValues& baseline,
                                     size_t most) {
  DifferingExamples result;
  if (!can_be_compared(values, baseline) || values.texts.size() != values.values.size() ||
      baseline.texts.size() != baseline.values.size())
    return result;
  const auto take = [&](double sign, std::vector<DifferingExample>& to) {
    const auto difference = [&](size_t i) {
      return sign * (values.values[i] - baseline.values[i]) / values.weights[i];
    };
    std::vector<size_t> order;
    for (size_t i = 0; i < values.values.size(); ++i) {
      if (values.weights[i] > 0 && difference(i) > 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::greater<>(), difference);
    order.resize(std::min(order.size(), most));
    for (const size_t i : order) {
      to.push_back({.text = values.texts[i],
                    .baseline_prediction = baseline.texts[i].prediction,
                    .value = values.values[i] / values.weights[i],
                    .baseline_value = baseline.values[i] / values.weights[i]});
    }
  };
  take(-1, result.lower);
  take(1, result.higher);
  return result;
}

}  // namespace zoo
