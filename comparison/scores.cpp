#include "comparison/scores.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "comparison/files/kept_json.h"
#include "comparison/results_json.h"
#include "comparison/runner.h"
#include "io/files.h"
#include "io/sha256.h"
#include "models/families/model_cost.h"
#include "tasks/evaluation.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScores = "evaluation.json";
constexpr const char* kConfusion = "confusion.json";

/// The key of kept scores. If weights, configuration or device change, scores are computed again.
Json score_key(const fs::path& run_dir, c10::Device device) {
  const auto weights = run_weights(run_dir);
  std::error_code ignored;
  return {{"weights", weights.filename().string()},
          {"bytes", fs::file_size(weights, ignored)},
          {"written", fs::last_write_time(weights, ignored).time_since_epoch().count()},
          {"config", sha256(read_file(run_dir / "config.yaml", Follow::nothing))},
          {"device", device.str()}};
}

/// Whether an evaluation of the run may have a confusion matrix.
bool has_classes(const fs::path& run_dir) { return task_type(read_run_experiment(run_dir)).needs_labels(); }

struct Evaluated {
  Json scores;
  Json confusion;  // {"labels", "counts"}, or {} if there is none
};

/// Evaluates a run, and keeps what it gives.
Evaluated evaluate_and_keep(const fs::path& run_dir, c10::Device device, const Json& key) {
  const auto run = Run::open(run_dir, device);
  torch::Tensor counts;
  Evaluated evaluated{.scores = zoo::to_json(run.evaluate(Split::valid, {}, {.confusion = &counts})),
                      .confusion = Json::object()};
  keep(run_dir / kScores, key, evaluated.scores);
  if (!has_classes(run_dir)) return evaluated;
  if (counts.defined()) evaluated.confusion = confusion_json(counts, run.labels());
  keep(run_dir / kConfusion, key, evaluated.confusion);
  return evaluated;
}

}  // namespace

Json scores_of(const fs::path& run_dir, c10::Device device) {
  const auto key = score_key(run_dir, device);
  auto scores = read_kept(run_dir / kScores, key, KeptKind::numbers);
  return scores.is_null() ? evaluate_and_keep(run_dir, device, key).scores : scores;
}

Json confusion_of_run(const fs::path& run_dir, c10::Device device) {
  if (!has_classes(run_dir)) return nullptr;
  const auto key = score_key(run_dir, device);
  auto confusion = read_kept(run_dir / kConfusion, key, KeptKind::object);
  if (confusion.is_null()) confusion = evaluate_and_keep(run_dir, device, key).confusion;
  return confusion.empty() ? Json() : confusion;
}

Metric metric_of_runs(const ComparisonPlan& plan, const fs::path& dir) {
  const auto& type = task_type(plan.variants.front().experiment);
  if (!type.lossy_comparison) return type.comparison;
  const auto changes_text = [&](const fs::path& run_dir) {
    return is_there(run_dir / "tokenizer.json") && !failure_of(run_dir) &&
           !read_run_vocabulary(run_dir, type).tokenizer->keeps_text();
  };
  for (const auto& variant : plan.variants) {
    const auto changed = [&](int64_t seed) { return changes_text(run_dir_of(dir, variant, seed)); };
    if (std::ranges::any_of(variant.seeds, changed)) return *type.lossy_comparison;
  }
  return type.comparison;
}

Json value_of(const Metric& metric, const Json& scores, const std::string& prefix) {
  return scores.value(prefix + metric.key, scores.value(prefix + metric.other_key, Json()));
}

Json scores_at(int64_t length, const fs::path& run_dir, c10::Device device) {
  return kept(run_dir / fmt::format("evaluation-{}.json", length), score_key(run_dir, device),
              KeptKind::numbers, [&] {
                const auto run = Run::open(run_dir, device);
                Experiment other = run.experiment();
                other.data.sequence_length = length;
                const auto task = open_task(other, run.task().vocabulary());
                const auto shape = pass_shape(task->batches(Split::valid).batch(0, 0));
                if (shape.length + shape.decoder_length < length) return Json();
                return to_json(task->evaluate(run.model(), Split::valid));
              });
}

}  // namespace zoo
