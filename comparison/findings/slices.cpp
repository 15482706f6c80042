#include "comparison/findings/slices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "statistics/slice_test.h"

namespace zoo {
namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The slices of a run without a comparison.
std::vector<SliceResult> own_slices(const ExampleValues& examples) {
  std::vector<SliceResult> results;
  const double all = sum_of(examples.weights);
  for (size_t i = 0; i < examples.slices.size(); ++i) {
    const double bytes = sum_of(examples.slices[i].weights);
    if (bytes > 0 && all > 0)
      results.push_back(
          {.slice = i, .share = bytes / all, .value = sum_of(examples.slices[i].values) / bytes});
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
  std::vector<std::optional<double>> p, p_same;
  for (auto& run : runs) {
    const auto baseline =
        run.baseline ? std::ranges::find(runs, *run.baseline, &RunResults::name) : runs.end();
    if (baseline == runs.end()) continue;
    compare_with(*baseline, run, margin);
    for (auto& result : run.slices) {
      if (!result.test) continue;
      tested.push_back(&result);
      p.push_back(result.test->p);
      p_same.push_back(equivalence_p(*result.test, result.margin));
    }
  }
  p = corrected_known(correction, p);
  p_same = corrected_known(correction, p_same);
  for (size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_corrected = p[i];
    tested[i]->p_same = p_same[i];
    tested[i]->verdict = verdict(*tested[i]->test, p[i], p_same[i], metric.better);
  }
}

}  // namespace zoo
