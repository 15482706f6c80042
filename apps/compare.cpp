// zoo compare: architectures side by side under one budget, and the reports of results that are there.

#include "comparison/compare.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/comparison_arguments.h"
#include "apps/console/options.h"
#include "apps/console/show_error.h"
#include "base/device.h"
#include "base/error.h"
#include "base/process.h"
#include "comparison/planning/comparison_directory.h"
#include "comparison/tasks/compare_tasks.h"
#include "comparison/tuning.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/json_document.h"
#include "pages/tables/report_document.h"
#include "pages/tables/table.h"
#include "pages/tables/task_document.h"
#include "pages/tables/task_markdown.h"
#include "training/stop_signals.h"

namespace zoo {
namespace {

struct CompareArguments {
  ComparisonArguments comparison;
  std::filesystem::path out;
  bool resume = false, overwrite = false, json = false;
  int64_t jobs = 1;
  std::string device = "auto";
};

void show_plan(const ComparisonPlan& plan, int64_t n_tuning) {
  size_t n_runs = 0;
  for (const auto& variant : plan.variants)
    n_runs += variant.runs.empty() && !variant.ablation ? variant.seeds.size() : 0;
  std::cerr << fmt::format("{}: {} variants, {} trainings{}, budget {} {:.6g}\n", plan.settings.name,
                           plan.variants.size(), n_runs,
                           n_tuning > 0 ? fmt::format(" after {} short ones", n_tuning) : "",
                           name_of(plan.budget.kind), plan.budget.amount);
  for (const auto& notice : plan.notices) std::cerr << "note: " << notice.text << '\n';
}

/// Whether the target is the results.json of a comparison, whose reports are made again.
bool is_results_file(const std::filesystem::path& path) {
  return has_extension(path, {".json"}) && std::filesystem::is_regular_file(path);
}

void make_reports(const CompareArguments& arguments) {
  const auto& path = arguments.comparison.targets.front();
  const auto dir = arguments.out.empty() ? path.parent_path() : arguments.out;
  check_reports(dir);
  const auto text = read_file(path, Follow::everything, JsonLimits::bytes);
  try {
    const auto results = parse_ordered_json(text);
    has_several_tasks(results) ? write_task_reports(results, dir) : write_reports(results, dir);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: no results of a comparison: {}", path.string(), error.what()));
  }
  std::cout << "report   " << (dir / "report.html").string() << '\n';
}

CompareOptions options_of(const CompareArguments& arguments, const std::string& name) {
  CompareOptions options;
  options.dir = arguments.out.empty() ? std::filesystem::path("runs") / name : arguments.out;
  options.existing = arguments.resume      ? ExistingRun::resume
                     : arguments.overwrite ? ExistingRun::replace
                                           : ExistingRun::refuse;
  options.program = this_program();
  options.device = arguments.device;
  options.jobs = arguments.jobs;
  options.command = command_of(arguments.comparison);
  options.word_error = in_words_of_the_program;
  options.on_message = [](const std::string& line) { std::cerr << in_words_of_the_program(line) << '\n'; };
  return options;
}

/// Shows a table past std::cout, which would escape the bold type on a terminal.
void put(const std::string& table) {
  std::cout.flush();
  if (std::fputs(table.c_str(), stdout) < 0) throw SystemError("cannot write to standard output");
}

void show_files(const std::filesystem::path& dir, const nlohmann::ordered_json& results) {
  std::cout << '\n' << results["measured"].get<std::string>() << "\n\n";
  std::cout << "report   " << (dir / "report.html").string() << '\n'
            << "results  " << (dir / "results.json").string() << '\n';
}

/// The exit code of a comparison that the user has stopped.
int stopped(const CompareOptions& options, const std::optional<StopSignals>& signals) {
  std::cerr << options.dir.string() << ": stopped and saved; the same command with --resume goes on\n";
  return signals->exit_code();
}

/// The exit code: not 0 if the user has stopped it, or if a task failed.
int run_tasks(const CompareArguments& arguments, const TaskComparison& comparison) {
  auto options = options_of(arguments, comparison.settings.name);
  std::optional<StopSignals> signals;
  options.on_plan = [&](const ComparisonPlan& plan) {
    show_plan(plan, n_tuning_runs(comparison.tasks.front().comparison));
    if (!signals) signals.emplace();
  };
  options.should_stop = [&] { return signals && signals->received(); };
  const auto results = compare_tasks(comparison, options);
  if (results.is_null()) return stopped(options, signals);
  const bool has_failed =
      std::ranges::any_of(results["tasks"], [](const auto& task) { return task["error"].is_string(); });
  if (arguments.json) {
    std::cout << shown_json(results) << '\n';
  } else {
    put(task_table(results));
    show_files(options.dir, results);
  }
  return has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/// The exit code: not 0 if the user has stopped it, or if no run has a result.
int run(const CompareArguments& arguments) {
  if (arguments.comparison.targets.size() == 1 && is_results_file(arguments.comparison.targets.front())) {
    make_reports(arguments);
    return EXIT_SUCCESS;
  }
  parse_device(arguments.device);  // throws before anything is read
  if (const auto tasks = read_task_comparison(arguments.comparison)) return run_tasks(arguments, *tasks);
  const auto comparison = read_comparison(arguments.comparison);
  std::optional<StopSignals> signals;  // set once there is a plan: before, there is nothing to save
  auto options = options_of(arguments, comparison.settings.name);
  options.on_plan = [&](const ComparisonPlan& plan) {
    show_plan(plan, n_tuning_runs(comparison));
    signals.emplace();
  };
  options.should_stop = [&] { return signals && signals->received(); };
  const auto results = compare(comparison, options);
  if (results.is_null()) return stopped(options, signals);
  const int exit_code = has_a_result(results) ? EXIT_SUCCESS : EXIT_FAILURE;
  if (arguments.json) {
    std::cout << shown_json(results) << '\n';
    return exit_code;
  }
  for (const auto& notice : results["notices"])
    std::cout << "note: " << notice["text"].get<std::string>() << '\n';
  put(results_table(results, isatty(STDOUT_FILENO) ? TableStyle::terminal : TableStyle::plain));
  show_files(options.dir, results);
  return exit_code;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<CompareArguments>();
  auto* command =
      app.add_subcommand("compare", "Train architectures under one budget and show them side by side");
  add_comparison_options(*command, arguments->comparison);
  command->add_option("--out", arguments->out, "Directory of the comparison; default: runs/NAME")
      ->type_name("DIR");
  auto* resume =
      command->add_flag("--resume", arguments->resume, "Continue an interrupted comparison, or start it");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the comparison if it exists")
      ->excludes(resume);
  command->add_option("--jobs", arguments->jobs, "Trainings at a time; they share the cores; default 1")
      ->option_text("N")
      ->check(whole_number(1, 256));
  add_device(*command, arguments->device);
  add_json(*command, arguments->json, "results.json on standard output instead of the table");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace zoo
