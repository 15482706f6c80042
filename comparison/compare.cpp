#include "comparison/compare.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/device.h"
#include "comparison/collect_results.h"
#include "comparison/planning/comparison_directory.h"
#include "comparison/planning/copied_models.h"
#include "comparison/results_json.h"
#include "comparison/runner.h"
#include "comparison/running_results.h"
#include "comparison/tuning.h"
#include "io/files.h"
#include "io/json_document.h"
#include "pages/report/report_page.h"
#include "pages/tables/report_markdown.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> finished_runs(const Comparison& comparison) {
  std::vector<fs::path> runs;
  for (const auto& variant : comparison.variants) {
    for (const auto& finished : variant.finished) runs.push_back(finished.dir);
  }
  return runs;
}

}  // namespace

nlohmann::ordered_json compare(const Comparison& given, const CompareOptions& options) {
  const auto device = parse_device(options.device);
  check_is_free(options.dir, options.existing);
  auto comparison = given;
  copy_models(comparison, options.dir, options.on_message);
  auto plan = make_plan(comparison, options.on_message);
  if (options.on_plan) options.on_plan(plan);
  if (options.existing == ExistingRun::replace) remove_comparison(options.dir, finished_runs(comparison));

  const Origin origin{.command = options.command, .yaml = comparison.yaml, .of_task = comparison.of_task};
  RunnerOptions runner{.dir = options.dir,
                       .program = options.program,
                       .device = options.device,
                       .jobs = options.jobs,
                       .should_stop = options.should_stop,
                       .on_message = options.on_message};
  std::optional<TuningResults> tuning;
  if (is_tuned(comparison)) {
    auto tuned = tune(comparison, plan, runner, device);
    if (!tuned) return nullptr;
    plan = make_plan(tuned->comparison);
    tuning = std::move(tuned->results);
  }
  const auto write_page = [&](RunState state) {
    write_file_atomically(
        options.dir / "report.html",
        report_page(results_json(running_results(plan, options.dir, device, origin, state))));
  };
  runner.on_advance = [&] { write_page(RunState::running); };
  if (train_all(plan, runner) == RunnerEnd::interrupted) {
    write_page(RunState::stopped);
    return nullptr;
  }
  const auto collected = collect_results(plan, {.dir = options.dir,
                                                .device = device,
                                                .origin = origin,
                                                .tuning = std::move(tuning),
                                                .should_stop = options.should_stop,
                                                .on_message = options.on_message});
  if (!collected) return nullptr;
  auto results = results_json(*collected);
  write_file_atomically(options.dir / "results.json", json_text(results, 1) + "\n");
  write_reports(results, options.dir);
  return results;
}

void write_reports(const nlohmann::ordered_json& results, const std::filesystem::path& dir) {
  write_report_files(dir, report_page(results), report_markdown(results));
}

}  // namespace zoo
