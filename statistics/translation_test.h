#pragma once
// A test of whether two translators differ on the same lines, by a metric of a corpus that is no mean over
// lines.

#include <cstdint>
#include <span>
#include <vector>

#include "statistics/paired_test.h"
#include "tasks/metrics/text_metrics.h"

namespace zoo {

/// The counts of two translators' outputs for the same lines (text_counts()).
class PairedTranslations {
 public:
  PairedTranslations(TextMetric metric, std::vector<TextCounts> counts, std::vector<TextCounts> baseline);

  int64_t n_lines() const { return std::ssize(counts_); }
  double score() const;
  double baseline_score() const;
  /// score - baseline_score over some lines, which may occur several times.
  double difference_on(std::span<const int64_t> lines) const;
  /// The same over all lines if the translators exchange these ones; exchanged: one for each line.
  double difference_with(const std::vector<bool>& exchanged) const;

 private:
  double difference_of(const TextCounts& sums, const TextCounts& baseline) const;

  TextMetric metric_;
  std::vector<TextCounts> counts_, baseline_;
};

/// The difference of the scores: its interval by a paired bootstrap (Koehn 2004), and p by approximate
/// randomisation (Riezler & Maxwell 2005), as sacreBLEU's `--paired-ar` computes it. Its `--paired-bs` finds
/// twice as many differences between equal translators as it should. The same outputs give the same result;
/// where all lines are equal, p is 1. There must be at least two lines.
PairedTest test_on_translations(const PairedTranslations& pair);

}  // namespace zoo
