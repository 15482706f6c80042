#include "comparison/findings/slices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "statistics/slice_test.h"

namespace zoo {
namespace {

/// The slices of a run without a comparison.
std::vector<SliceResult> own_slices(const ExampleValues& examples) {
  std::vector<SliceResult> results;
  const double all = std::accumulate(examples.weights.begin(), examples.weights.end(), 0.0);
  for (size_t i = 0; i < examples.slices.size(); ++i) {
    const auto& slice = examples.slices[i];
    const double bytes = slice.weight();
    if (bytes > 0 && all > 0) results.push_back({.slice = i, .share = bytes / all, .value = slice.mean()});
  }
  return results;
}

bool are_of_the_same_texts(const ExampleValues& examples, const ExampleValues& baseline) {
  return examples.inputs == baseline.inputs && examples.slices.size() == baseline.slices.size() &&
         examples.values.size() == baseline.values.size() && examples.documents == baseline.documents;
}

/// Compares the slices of a run with those of its baseline.
void compare_with(const RunResults& baseline, RunResults& run, double margin) {
  if (!run.examples || !baseline.examples || !are_of_the_same_texts(*run.examples, *baseline.examples))
    return;
  const auto tests = test_on_slices(run.examples->slices, baseline.examples->slices, run.examples->documents);
  for (auto& result : run.slices) {
    const auto twin = std::ranges::find(baseline.slices, result.slice, &SliceResult::slice);
    if (twin == baseline.slices.end()) continue;
    result.baseline_value = twin->value;
    result.margin = margin * std::abs(twin->value);
    result.test = tests[result.slice];
  }
}

}  // namespace

void compare_slices(std::vector<RunResults>& runs, const Metric& metric, double margin,
                    Correction correction) {
  if (metric.key != "bits_per_byte" && metric.key != "bits_per_decoded_byte") return;
  for (auto& run : runs)
    if (run.examples) run.slices = own_slices(*run.examples);
  std::vector<SliceResult*> tested;
  std::vector<MarginTest> tests;
  for (auto& run : runs) {
    const auto baseline =
        run.baseline ? std::ranges::find(runs, *run.baseline, &RunResults::name) : runs.end();
    if (baseline == runs.end()) continue;
    compare_with(*baseline, run, margin);
    for (auto& result : run.slices) {
      if (!result.test) continue;
      tested.push_back(&result);
      tests.push_back({*result.test, result.margin});
    }
  }
  const auto judgements = judged(tests, correction, metric.better);
  for (size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_corrected = judgements[i].p_corrected;
    tested[i]->p_same = judgements[i].p_same;
    tested[i]->verdict = judgements[i].verdict;
  }
}

}  // namespace zoo
