// zoo probe: a card for a part of a model.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/long_work.h"
#include "apps/console/options.h"
#include "apps/console/page_output.h"
#include "apps/console/texts.h"
#include "base/device.h"
#include "base/error.h"
#include "checkpoints/run.h"
#include "comparison/planning/comparison_config.h"
#include "costs/part_card.h"
#include "experiments/load_experiment.h"
#include "io/config/config_file.h"
#include "io/json_document.h"
#include "io/temporary_directory.h"
#include "pages/probe/probe_page.h"
#include "tasks/problem.h"
#include "training/stop_signals.h"
#include "training/trainer.h"

namespace zoo {
namespace {

struct ProbeArguments {
  std::string part;  // "KEY=TYPE"
  std::vector<std::filesystem::path> tasks;
  std::vector<std::string> overrides;
  std::optional<std::filesystem::path> out;
  bool no_costs = false, json = false;
};

/// One type of each part.
struct PartKeys {
  std::array<Selection, config_names(ProbedPart()).size()> selections;
};
void describe(ConfigVisitor& v, PartKeys& keys) {
  for (size_t i = 0; i < keys.selections.size(); ++i) {
    const auto part = static_cast<ProbedPart>(i);
    v.selection(name_of(part), keys.selections[i], types_of(part), "What is probed.");
  }
}

struct NamedPart {
  ProbedPart part;
  Selection selection;
};

NamedPart named_part(const std::string& text) {
  const auto key = text.substr(0, text.find('='));
  const auto part = enumerator_named<ProbedPart>(key);
  if (!part || key.size() == text.size()) {
    throw UsageError(fmt::format("'{}' is not a part: write KEY=TYPE with one of the keys {}", text,
                                 fmt::join(config_names(ProbedPart{}), ", ")));
  }
  PartKeys keys;
  ConfigFile::parse_made("", "zoo probe", {text}).read(keys);
  return {.part = *part, .selection = keys.selections.at(static_cast<size_t>(*part))};
}

/// The trainings that --task names: a configuration, or each task of a comparison file with its first
/// variant, all with the part in the model.
std::vector<Experiment> experiments_of(const std::filesystem::path& task, const ProbeArguments& arguments) {
  auto overrides = arguments.overrides;
  overrides.push_back("model." + arguments.part);
  if (!is_task_comparison_file(task)) return {load_experiment(task, overrides)};
  const bool sets_steps = std::ranges::any_of(
      arguments.overrides, [](const std::string& text) { return text.starts_with("training.steps="); });
  std::vector<Experiment> experiments;
  for (const auto& [name, comparison] : load_task_comparison(task, overrides).tasks) {
    auto experiment = comparison.variants.front().experiment;
    experiment.name = name;
    const auto& steps = comparison.settings.budget.steps;
    if (steps && !sets_steps) experiment.training.steps = static_cast<int64_t>(*steps);
    experiments.push_back(std::move(experiment));
  }
  return experiments;
}

/// Trains a model with the part.
PartScore score_on(const Experiment& experiment, const std::filesystem::path& dir,
                   const StopSignals& signals) {
  const auto result = train(experiment, {.run_dir = dir,
                                         .device = parse_device("auto"),
                                         .on_progress = progress_on_stderr(experiment.name),
                                         .should_stop = [&] { return signals.received(); }});
  if (result.end == TrainEnd::interrupted) throw UsageError("stopped before all tasks were trained");
  const auto run = Run::open(dir);
  const auto metric = comparison_metric(run.experiment());
  const auto metrics = run.task().evaluate(run.model(), Split::valid, {.wanted = metric.key});
  return {.task = experiment.name,
          .metric = metric.label,
          .value = metrics.at(metric.key),
          .percent = metric.percent,
          .steps = result.step};
}

std::string_view mark(Holds holds) {
  switch (holds) {
    case Holds::yes:
      return "holds";
    case Holds::no:
      return "FAILS";
    case Holds::none:
      return "";
  }
  return "";
}

std::string exponent_text(const std::optional<Exponent>& exponent) {
  return exponent ? fmt::format("n^{:.2f}", exponent->value) : "-";
}

void print(const PartCard& card) {
  std::cout << fmt::format("{} {}: {}\n\n", name_of(card.part), card.name, card.doc);
  for (const auto& check : card.checks)
    std::cout << fmt::format("{:<8} {:<10} {:<6} {}\n", check.role, check.name, mark(check.holds),
                             check.says);
  for (const auto& [role, reason] : card.refused) std::cout << fmt::format("{:<8} not: {}\n", role, reason);
  if (!card.curves.empty()) std::cout << '\n';
  for (const auto& curve : card.curves) {
    std::cout << fmt::format("{:<13} {} to {} tokens: time {}, memory {}; {:.3g} ms at {}\n",
                             name_of(curve.part), curve.lengths.front(), curve.lengths.back(),
                             exponent_text(curve.seconds_exponent), exponent_text(curve.bytes_exponent),
                             1e3 * curve.seconds.back(), curve.lengths.back());
  }
  if (!card.scores.empty()) std::cout << '\n';
  for (const auto& score : card.scores) {
    std::cout << fmt::format(
        "{:<20} {} {}, {} steps\n", score.task, score.metric,
        score.percent ? fmt::format("{:.1f} %", 100 * score.value) : fmt::format("{:.4f}", score.value),
        score.steps);
  }
}

/// Throws UsageError for a key of the part itself, which would be overridden.
void refuse_part_in(const std::vector<std::string>& overrides, const std::string& part) {
  const auto key = "model." + part.substr(0, part.find('='));
  for (const auto& override : overrides) {
    if (override.starts_with(key + "=") || override.starts_with(key + "."))
      throw UsageError(fmt::format("--set {} contradicts {}, which is probed: leave it out", override, part));
  }
}

/// The exit code.
int probe_part(const ProbeArguments& arguments) {
  if (arguments.tasks.empty() && !arguments.overrides.empty())
    throw UsageError("--set changes the configurations of --task: name one");
  const auto [part, selection] = named_part(arguments.part);
  refuse_part_in(arguments.overrides, arguments.part);
  std::vector<Experiment> experiments;  // read before anything is measured
  for (const auto& task : arguments.tasks)
    std::ranges::move(experiments_of(task, arguments), std::back_inserter(experiments));
  ProbeOptions options;
  options.scaling = scaling_options(torch::kCPU);
  options.scaling->max_flops /= 4;
  options.scaling->on_message = [](const std::string& line) { say_on_terminal(line); };
  if (arguments.no_costs) options.scaling.reset();
  auto card = probe(part, selection, options);
  const StopSignals signals;
  for (const auto& experiment : experiments) {
    const TemporaryDirectory scratch("zoo-probe");
    card.scores.push_back(score_on(experiment, scratch.path() / "run", signals));
  }
  const auto json = to_json(card);
  if (arguments.out) write_page(*arguments.out, probe_page(json));
  if (arguments.json)
    std::cout << shown_json(json, 2) << '\n';
  else
    print(card);
  return card.all_hold() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

void add_probe(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<ProbeArguments>();
  auto* command = app.add_subcommand(
      "probe", "Check a mixer, a norm, an activation or positions in small models, and measure their cost");
  command
      ->add_option("PART", arguments->part,
                   "KEY=TYPE as in model: attention=delta, \"attention={type: window, size: 8}\", "
                   "norm=rms_norm, activation=swiglu, position=alibi")
      ->type_name("KEY=TYPE")
      ->required();
  command
      ->add_option(
          "--task", arguments->tasks,
          "A configuration that is trained with the part, such as configs/synthetic/recall.yaml, or a "
          "comparison of several tasks, such as configs/compare/mad.yaml, each of which is trained with its "
          "first variant; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_overrides(*command, arguments->overrides);
  command->add_flag("--no-costs", arguments->no_costs, "Do not measure time and memory");
  add_page(*command, arguments->out);
  add_json(*command, arguments->json);
  command->footer("The exit code is 1 if a check fails.");
  command->callback([arguments, &exit_code] { exit_code = probe_part(*arguments); });
}

}  // namespace zoo
