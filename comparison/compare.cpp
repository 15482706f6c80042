#include "comparison/compare.h"

#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/device.h"
#include "base/error.h"
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

bool is_taken(const fs::path& dir) {
  std::error_code ignored;
  return fs::exists(dir, ignored) && !(fs::is_directory(dir, ignored) && fs::is_empty(dir, ignored));
}

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
  if (is_taken(options.dir) && options.existing == ExistingRun::refuse) {
    throw UsageError(
        fmt::format("{} exists: ExistingRun::resume goes on with it, ExistingRun::replace replaces it, "
                    "CompareOptions::dir chooses another",
                    options.dir.string()));
  }
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
  const auto page = report_page(results), markdown = report_markdown(results);
  if (!dir.empty()) make_directory(dir);
  write_file_atomically(dir / "report.html", page);
  write_file_atomically(dir / "report.md", markdown);
}

}  // namespace zoo
