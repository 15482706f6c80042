#pragma once
// Tests the differences of a comparison and puts its results into words.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comparison/findings/results.h"

namespace zoo {

struct TestRules {
  /// Smaller differences do not matter: a share of the baseline's value, or for a metric in percent a
  /// difference, such as 0.01 for one point.
  double margin = 0.01;
  /// Whether the runs differ in nothing but their subject.
  bool fair = true;
  Correction correction = Correction::holm;
};

/// "a, b and c"; in quotes where a name has a comma.
std::string list_of_names(const std::vector<std::string>& names);

/// The digits after the point of a number with `significant` digits, at most 6; 2 for 0 and what is not
/// finite.
int digits_after_point(double value, int significant);

/// Whether some seed of a run has learnt more than the frequencies of the targets.
bool ever_learnt(const RunResults& run);
/// The number of seeds that have not; seeds of which it is unknown are not counted.
int64_t n_not_learnt(const RunResults& run);

/// The metric of one seed of a run. Nothing where the seed failed, and where it learnt nothing although
/// another seed of the run did: a mean of both describes neither.
std::optional<double> counted_value(const RunResults& run, const SeedResults& seed);

/// The mean of the values that count; nothing where there are none.
std::optional<Interval> mean_of_seeds(const RunResults& run);

/// Fills in `versus_baseline` of all runs that have a `baseline`: a paired t-test and a test of equivalence
/// over the seeds that count for both runs. Differences and equivalences are two families of tests, and
/// each is corrected for its number of tests. Where one of the two runs learnt with some seeds
/// only, nothing is tested: the seeds that count would flatter it. Runs that have `examples` are compared on
/// those (test_on_examples()), and such a verdict does not ask whether their trainings were fair.
void compare_with_baselines(std::vector<RunResults>& runs, const Metric& metric, const TestRules& rules);

/// Fills in `translation_scores` of runs that have `translations`: BLEU and chrF, and tests against those of
/// the baseline on the same lines (test_on_translations()). p is corrected for all of these tests.
void compare_translations(std::vector<RunResults>& runs, Correction correction = Correction::holm);

/// How likely these tests find a difference of two standard deviations of a run; nothing without tests.
std::optional<Power> power_of(const std::vector<RunResults>& runs);

/// A sentence that counts the verdicts against the baselines, and the runs that did not learn. Empty without
/// any.
std::string verdict_finding(const std::vector<RunResults>& runs, bool fair);

/// What the trainings saw under a budget of tokens, seconds or FLOPs, as a sentence that names every run, or
/// of many the ones with the least and the most: "In 60 s gpt saw 4.11 M tokens and llama 3.29 M." Means over
/// the seeds. Empty for a budget of steps, of which every run sees the same batches, and where nothing is
/// known. `unit` is TaskType::unit.
std::string consumption_finding(const Budget& budget, const std::vector<RunResults>& runs,
                                std::string_view unit);

/// A sentence for each ablation of the comparison: "without-1.0: accuracy 41.0 points lower than full (38.2
/// to 43.8), in 3 of 3 seeds." Empty without any, and where the comparison is not fair. The other sentences
/// are about the runs that were trained.
std::string ablation_finding(const std::vector<RunResults>& runs, const Metric& metric, bool fair);

/// At most two sentences, which the table shows in detail: the verdicts and, if the comparison is fair, the
/// run with the best mean.
std::string findings(const std::vector<RunResults>& runs, const Metric& metric, bool fair);

}  // namespace zoo
