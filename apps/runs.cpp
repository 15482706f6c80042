// zoo runs: a table of all runs in a directory.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/terminal_width.h"
#include "base/named_enum.h"
#include "base/text.h"
#include "checkpoints/run_list.h"
#include "io/json_document.h"
#include "io/metrics_log.h"
#include "io/progress.h"
#include "io/text_width.h"
#include "pages/tables/table.h"

namespace zoo {
namespace {

struct RunsArguments {
  std::filesystem::path dir = "runs";
  bool json = false;
};

constexpr size_t kMostCell = 4096;  // bytes

using Cells = std::vector<std::string>;

const Cells kHeadings = {"run",   "task", "architecture", "parameters",  "state",
                         "steps", "best", "time",         "what differs"};

/// The last part of a dotted key, or all of it where several keys of the run end alike.
std::string short_key(const std::string& key, const RunSummary& run) {
  const auto last = [](const std::string& text) { return text.substr(text.rfind('.') + 1); };
  const auto n =
      std::ranges::count_if(run.differs, [&](const auto& other) { return last(other.first) == last(key); });
  return n == 1 ? last(key) : key;
}

std::string what_differs(const RunSummary& run) {
  constexpr size_t most_columns = 40;  // of a value
  if (!run.problem.empty()) return run.problem;
  std::string text;
  for (const auto& [key, value] : run.differs) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", short_key(key, run),
                        first_columns(value, most_columns));
  }
  return text;
}

Cells cells_of(const RunSummary& run) {
  const std::string none = "-";
  const bool is_known = run.activity != RunActivity::damaged,
             is_trained = is_known && run.activity != RunActivity::made;
  return {run.dir.string(),
          is_known ? run.task : none,
          is_known ? run.architecture : none,
          run.parameters ? with_prefix(static_cast<double>(*run.parameters)) : none,
          std::string(name_of(run.activity)),
          is_trained ? fmt::format("{}/{}", run.step, run.steps) : none,
          run.best ? fmt::format("{} {}", run.metric, metric_text(*run.best)) : none,
          is_trained ? duration_text(run.seconds) : none,
          what_differs(run)};
}

void print_runs(const std::vector<RunSummary>& runs) {
  std::vector<Cells> rows = {kHeadings};
  for (const auto& run : runs) {
    rows.push_back(cells_of(run));
    for (auto& cell : rows.back()) cell = excerpt(cell, kMostCell);  // a stranger's run may have any names
  }
  std::vector<size_t> widths(kHeadings.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  const auto columns = columns_of_output();
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i)
      line += row[i] + std::string(widths[i] - width_of(row[i]) + 2, ' ');
    line += row.back();
    std::cout << (columns ? first_columns(line, *columns) : line) << '\n';
  }
}

void print_runs_as_json(const std::vector<RunSummary>& runs) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& run : runs) {
    const bool is_known = run.activity != RunActivity::damaged;
    auto differs = nlohmann::ordered_json::object();
    for (const auto& [key, value] : run.differs) differs[key] = value;
    nlohmann::ordered_json entry{{"run", run.dir.string()}, {"state", name_of(run.activity)}};
    if (is_known) {
      entry["name"] = run.name;
      entry["task"] = run.task;
      entry["architecture"] = run.architecture;
      entry["parameters"] =
          run.parameters ? nlohmann::ordered_json(*run.parameters) : nlohmann::ordered_json(nullptr);
      entry["step"] = run.step;
      entry["steps"] = run.steps;
      entry["seconds"] = run.seconds;
      entry["metric"] = run.metric;
      entry["best"] = run.best ? nlohmann::ordered_json(*run.best) : nlohmann::ordered_json(nullptr);
      entry["best_step"] = run.best_step;
      entry["differs"] = std::move(differs);
    }
    if (!run.problem.empty()) entry["problem"] = run.problem;
    list.push_back(std::move(entry));
  }
  std::cout << shown_json(nlohmann::ordered_json{{"runs", std::move(list)}}) << '\n';
}

void show_runs(const RunsArguments& arguments) {
  const auto runs = list_runs(arguments.dir);
  if (arguments.json) return print_runs_as_json(runs);
  if (runs.empty()) {
    std::cerr << fmt::format("{}: there are no runs in it\n", arguments.dir.string());
    return;
  }
  print_runs(runs);
}

}  // namespace

void add_runs(CLI::App& app) {
  const auto arguments = std::make_shared<RunsArguments>();
  auto* command = app.add_subcommand("runs", "List runs: what they are, how far, and how good");
  command->add_option("DIR", arguments->dir, "Where the runs are")->type_name("DIR")->capture_default_str();
  add_json(
      *command, arguments->json,
      "One JSON document: {\"runs\": [{\"run\", \"state\", \"name\", \"task\", \"architecture\", "
      "\"parameters\", "
      "\"step\", \"steps\", \"seconds\", \"metric\", \"best\", \"best_step\", \"differs\": {key: value}, "
      "\"problem\"}]}");
  command->footer(
      "A line for each run, also those in directories of comparisons; what was written last comes first. "
      "`state` is "
      "running, finished, stopped (zoo train --resume goes on), failed, made (imported, merged or averaged) "
      "or damaged. "
      "`best` is the validation metric that chose the weights. `what differs` has the keys of which the runs "
      "of a task "
      "have different values. In a terminal, lines end at its edge.");
  command->callback([arguments] { show_runs(*arguments); });
}

}  // namespace zoo
