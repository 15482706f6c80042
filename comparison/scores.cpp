#include "comparison/scores.h"

#include <system_error>

#include <fmt/format.h>

#include "comparison/files/kept_json.h"
#include "comparison/results_json.h"
#include "io/files.h"
#include "io/sha256.h"
#include "models/families/model_cost.h"
#include "training/runs/run.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

Json scores_of(const fs::path& run_dir, c10::Device device) {
  return kept(run_dir / "evaluation.json", score_key(run_dir, device), KeptKind::numbers,
              [&] { return to_json(Run::open(run_dir, device).evaluate(Split::valid)); });
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
