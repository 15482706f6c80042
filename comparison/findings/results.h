#pragma once
// The results of a comparison. results_json() writes them as results.json; docs/comparison.md explains
// each.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include "analysis/attention_maps.h"
#include "analysis/expert_loads.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/guess.h"
#include "comparison/planning/plan.h"
#include "costs/scaling.h"
#include "io/metrics_log.h"
#include "pages/structures/structure_page.h"
#include "pages/tables/confusion.h"
#include "statistics/example_test.h"
#include "statistics/paired_test.h"
#include "statistics/power_law.h"
#include "tasks/metric.h"
#include "tasks/metrics/text_metrics.h"
#include "tasks/task.h"
#include "tasks/text/translation.h"

namespace zoo {

/// What a comparison was made from.
struct Origin {
  std::string command;       // reproduces the comparison
  std::string yaml;          // the comparison file; empty without one
  std::string of_task = {};  // see Comparison
};

/// How a training ended. A run that ended `elsewhere` was trained outside the comparison, which knows nothing
/// of its training.
enum class SeedEnd { all_steps, out_of_time, out_of_patience, interrupted, failed, elsewhere };
constexpr auto config_names(SeedEnd) {
  return std::to_array<std::string_view>(
      {"all_steps", "out_of_time", "out_of_patience", "interrupted", "failed", "elsewhere"});
}

/// A row of metrics.jsonl; NaN where it lacks a number.
struct CurvePoint {
  double step, tokens, flops, seconds, loss;
  double metric;         // of an evaluation
  double grad_norm, lr;  // of training
  /// Of training with experts, in the layer where the work was least even: see ExpertLoad.
  double experts_busiest, experts_idle, experts_dropped, router_entropy;
};
struct Curves {
  std::vector<CurvePoint> valid, train;
};

/// One training of a run.
struct SeedResults {
  int64_t seed = 0;
  std::string run = {};  // its directory, relative to the comparison's
  SeedEnd end = SeedEnd::all_steps;
  std::optional<std::string> error = {};
  std::optional<TrainingState> state = {};  // of the newest checkpoint, if there is one
  Metrics scores = {};                      // of the best weights; empty where the training failed
  std::optional<double> metric = {};        // the one that ranks the runs
  std::optional<double> loss = {};          // on validation data
  std::optional<bool> learnt = {};          // more than the frequencies of the targets; absent where unknown
  Curves curves = {};
  std::vector<std::string> ablated = {};  // the parts that an ablation has replaced in this one
};

/// What a test compares: the metrics of several seeds, or what two models reached on each example, or on the
/// examples of each document.
enum class TestedOver { seeds, examples, documents };
constexpr auto config_names(TestedOver) {
  return std::to_array<std::string_view>({"seeds", "examples", "documents"});
}

/// A run against its baseline.
struct VersusBaseline {
  PairedTest test;    // without p where nothing was tested
  double margin = 0;  // see equivalence_p()
  std::optional<double> p_corrected = {}, p_same = {};
  std::optional<int64_t> seeds_needed = {};  // to decide an undecided test
  Verdict verdict = Verdict::untested;
  TestedOver over = TestedOver::seeds;
  /// Over seeds: how many of the pairs differ in the direction of the mean difference.
  std::optional<int64_t> agreeing = {};
};

/// BLEU or chrF of a translator's outputs, and against its baseline.
struct TranslationScore {
  TextMetric metric = TextMetric::bleu;
  double value = 0;
  std::optional<double> baseline_value = {};  // absent for the baseline itself, as what follows
  std::optional<PairedTest> test = {};
  std::optional<double> p_corrected = {};  // for all such tests of the comparison
  std::optional<Verdict> verdict = {};
};

/// Bits per byte on a slice of the texts, and against the baseline.
struct SliceResult {
  size_t slice = 0;  // in kTextSlices
  double share = 0;  // of all bytes
  double value = 0;
  std::optional<double> baseline_value = {};  // absent for the baseline itself, as what follows
  std::optional<PairedTest> test = {};
  double margin = 0;
  std::optional<double> p_corrected = {}, p_same = {};  // for all slices of the comparison
  std::optional<Verdict> verdict = {};
};

/// The metric on sequences of another length.
struct LengthResult {
  int64_t length = 0;
  Interval metric;
};

/// One number over the measurements of a run.
struct Measured {
  double median = 0, least = 0, largest = 0;
};
/// Absent: the model does not generate.
struct RunSpeed {
  std::optional<Measured> train_tokens_per_second = {}, prompt_tokens_per_second = {},
                          decode_tokens_per_second = {}, first_token_seconds = {};
};

/// One variant of the plan.
struct RunResults {
  std::string name;
  std::string variant = {};                  // see Variant
  std::optional<std::string> baseline = {};  // see PlannedVariant
  std::optional<AblationConfig> ablation = {};
  std::vector<SeedResults> seeds = {};
  std::optional<GuessLosses> guess = {};
  std::optional<Interval> metric = {};         // of the seeds that count; absent where all failed
  std::optional<ExampleValues> examples = {};  // of a finished run; absent where the metric is none of theirs
  std::optional<VersusBaseline> versus_baseline = {};
  std::optional<Translations> translations = {};  // of a finished translator, of the validation data
  std::vector<TranslationScore> translation_scores = {};
  std::vector<SliceResult> slices = {};  // of a finished language model
  DifferingExamples differing = {};      // from those of the baseline; empty where examples were not tested
  std::vector<LengthResult> lengths = {};
  std::optional<RunSpeed> speed = {};
  std::vector<ScalingCurve> scaling = {};
  std::vector<Sample> samples = {};
  std::optional<AttentionReport> attention = {};
  std::optional<ShownStructure> structure = {};   // of a model that folds: a chain of the validation data
  std::optional<ConfusionMatrix> confusion = {};  // summed over the seeds that did not fail
  std::vector<LayerLoad> expert_loads = {};       // of one seed; empty for a model without experts
};

/// What a key of a grid changes on average over the other keys, see main_effects().
struct MainEffect {
  std::string key, from, to;  // the values of the key
  PairedTest test;            // of `to` less `from`
  std::optional<double> p_corrected = {};
  Verdict verdict = Verdict::untested;
};

/// How likely the tests find a difference of `deviations` standard deviations of a run.
struct Power {
  double deviations = 0;
  int64_t seeds = 0, tests = 0;  // pairs of the smallest test, number of tests
  double probability = 0;
  std::optional<int64_t> seeds_needed = {};
};

/// A variant that has chosen one of its candidates.
struct TunedVariant {
  std::string name, chosen;
  std::vector<std::string> keys_at_edge = {};  // see keys_at_edge()
  double flops = 0, seconds = 0;               // of all short trainings
  /// By name, with the mean of the metric; absent where every seed failed.
  std::vector<std::pair<std::string, std::optional<double>>> candidates = {};
};
struct TuningResults {
  double share = 0;  // of the budget
  std::vector<int64_t> seeds = {};
  Budget budget = {};  // of a short training
  std::vector<TunedVariant> variants = {};
};

/// Loss against compute, see size_fit().
struct SizeFit {
  struct Point {
    std::string run, variant, size;
    int64_t seed = 0;
    double flops = 0, loss = 0;
  };
  std::vector<std::string> sizes = {};
  std::string loss = {};  // what is fitted, for people
  ScalingFit fit = {};
  std::vector<std::string> variants = {};
  std::vector<bool> overlaps = {};  // by variant: whether some of its losses are those of variant 0
  std::vector<Point> points = {};
};

/// Whether a comparison goes on.
enum class RunState { running, stopped };

/// How far a comparison is.
struct ComparisonProgress {
  int64_t finished = 0;  // runs
  int64_t finished_trainings = 0, trainings = 0;
  RunState state = RunState::running;
};

struct ComparisonResults {
  ComparisonPlan plan;
  Metric metric;  // that ranks the runs
  c10::Device device;
  Origin origin;
  std::vector<Notice> notices = {};
  std::optional<TuningResults> tuning = {};
  std::optional<Power> power = {};    // absent without tests
  std::vector<RunResults> runs = {};  // of plan.variants
  std::optional<SizeFit> sizes = {};
  std::vector<MainEffect> effects = {};
  std::string measured = {};                        // the findings
  std::optional<ComparisonProgress> progress = {};  // absent where all is done
};

}  // namespace zoo
