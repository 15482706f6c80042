#include "statistics/translation_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <c10/util/Exception.h>

#include "base/random.h"

namespace zoo {
namespace {

constexpr int64_t kDrawsOfLines = 2000;  // each sums the counts of all lines
constexpr uint64_t kLinesPurpose = 3, kExchangedLinesPurpose = 4;

void add(TextCounts& sums, const TextCounts& line) {
  std::ranges::transform(sums, line, sums.begin(), std::plus<>());
}

}  // namespace

PairedTranslations::PairedTranslations(TextMetric metric, std::vector<TextCounts> counts,
                                       std::vector<TextCounts> baseline)
    : metric_(metric), counts_(std::move(counts)), baseline_(std::move(baseline)) {
  TORCH_CHECK(counts_.size() == baseline_.size() && counts_.size() >= 2,
              "two translators of at least two lines");
}

double PairedTranslations::score() const { return score_of_lines(metric_, counts_); }
double PairedTranslations::baseline_score() const { return score_of_lines(metric_, baseline_); }

double PairedTranslations::difference_of(const TextCounts& sums, const TextCounts& baseline) const {
  return score_of_counts(metric_, sums) - score_of_counts(metric_, baseline);
}

double PairedTranslations::difference_on(std::span<const int64_t> lines) const {
  TextCounts sums(counts_.front().size()), baseline(sums.size());
  for (const int64_t line : lines) {
    add(sums, counts_[static_cast<size_t>(line)]);
    add(baseline, baseline_[static_cast<size_t>(line)]);
  }
  return difference_of(sums, baseline);
}

double PairedTranslations::difference_with(const std::vector<bool>& exchanged) const {
  TextCounts sums(counts_.front().size()), baseline(sums.size());
  for (size_t i = 0; i < counts_.size(); ++i) {
    add(exchanged[i] ? baseline : sums, counts_[i]);
    add(exchanged[i] ? sums : baseline, baseline_[i]);
  }
  return difference_of(sums, baseline);
}

PairedTest test_on_translations(const PairedTranslations& pair) {
  const int64_t n = pair.n_lines();
  std::vector<bool> exchanged(static_cast<size_t>(n));
  const double difference = pair.difference_with(exchanged);

  std::vector<double> drawn;
  CounterRandom samples({kLinesPurpose, static_cast<uint64_t>(n)});
  for (int64_t draw = 0; draw < kDrawsOfLines; ++draw) {
    std::vector<int64_t> lines;
    for (int64_t i = 0; i < n; ++i) lines.push_back(samples.below(n));
    drawn.push_back(pair.difference_on(lines));
  }
  std::ranges::sort(drawn);
  // Sums of the same numbers in another order may differ by rounding.
  const double as_large = std::abs(difference) - 1e-9;
  CounterRandom exchanges({kExchangedLinesPurpose, static_cast<uint64_t>(n)});
  int64_t n_as_large = 0;
  for (int64_t draw = 0; draw < kDrawsOfLines; ++draw) {
    for (int64_t i = 0; i < n; ++i) exchanged[static_cast<size_t>(i)] = exchanges.below(2) == 1;
    n_as_large += std::abs(pair.difference_with(exchanged)) >= as_large ? 1 : 0;
  }
  return {.n = n,
          .difference = difference,
          .error = *mean_interval(drawn).deviation,
          .low = nearest_quantile(drawn, (1 - kConfidence) / 2),
          .high = nearest_quantile(drawn, (1 + kConfidence) / 2),
          .p = static_cast<double>(n_as_large + 1) / static_cast<double>(kDrawsOfLines + 1)};
}

}  // namespace zoo
