#include "apps/console/comparison_arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/options.h"
#include "apps/console/shell_word.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "io/config/find_config.h"

namespace zoo {
namespace {

/// Throws UsageError if an option for trainings is given, but all variants are finished runs.
void check_something_is_trained(const Comparison& comparison, const ComparisonArguments& arguments) {
  const char* const option = !arguments.budget.empty()      ? "--budget"
                             : arguments.seeds              ? "--seeds"
                             : !arguments.overrides.empty() ? "--set"
                                                            : nullptr;
  const auto is_run = [](const Variant& variant) { return !variant.finished.empty(); };
  if (option == nullptr || !std::ranges::all_of(comparison.variants, is_run)) return;
  throw UsageError(
      fmt::format("{}: finished runs are only evaluated: leave it out, or give configurations", option));
}

/// The paths that the targets stand for.
std::vector<std::filesystem::path> found_targets(const ComparisonArguments& arguments) {
  auto targets = arguments.targets;
  for (auto& target : targets)
    if (!names_stored_model(target)) target = find_config(target.string());
  return targets;
}

/// Sets what options say.
void apply(const ComparisonArguments& arguments, ComparisonSettings& settings) {
  if (!arguments.budget.empty()) settings.budget = config_of(parse_budget(arguments.budget));
  if (arguments.seeds) settings.seeds = *arguments.seeds;
  if (arguments.match) settings.match = *arguments.match;
  if (arguments.no_speed) settings.speed_seconds = 0, settings.scaling = false;
}

/// Throws UsageError if options name data that a comparison file has, or a column of no data.
void check_given_data(const GivenData& data, bool is_file) {
  if (data.is_empty() && !data.document_column.empty())
    throw UsageError("--documents names a column of the files of --data or --choices: give one of them");
  if (is_file && !data.is_empty())
    throw UsageError("--data, --choices: a comparison file names its data: write data.valid in it");
}

}  // namespace

void add_comparison_options(CLI::App& command, ComparisonArguments& arguments) {
  command
      .add_option("CONFIG|RUN|DIRECTORY", arguments.targets,
                  "Configurations (trained now), finished runs (only evaluated), directories in Hugging "
                  "Face's form (with --data), one comparison file, or a results.json whose reports are made "
                  "again")
      ->type_name("PATH")
      ->required();
  add_overrides(command, arguments.overrides);
  command
      .add_option("--budget", arguments.budget,
                  "Budget of each training: steps=N, tokens=N, flops=N or seconds=N; default: as configured")
      ->option_text("KIND=N");
  command.add_option("--seeds", arguments.seeds, "Train each configuration with the seeds 1 … N; default 3")
      ->option_text("N")
      ->check(whole_number(1, 1000));
  command
      .add_option("--match", arguments.match,
                  "Scale widths until parameters or FLOPs per token agree within 2 %")
      ->transform(one_of<MatchQuantity>())
      ->option_text("parameters|flops");
  auto* const data =
      command
          .add_option("--data", arguments.data.files,
                      "Evaluate finished runs and directories in Hugging Face's form on these files")
          ->type_name("FILE");
  auto* const choices =
      command
          .add_option(
              "--choices", arguments.data.choices,
              "Ask finished models that write these questions (NAME.jsonl: context, choices, answer), "
              "which they answer by the likelihood of each choice")
          ->type_name("FILE")
          ->excludes(data);
  command
      .add_option("--documents", arguments.data.document_column,
                  "--data, --choices: the column of a table whose equal entries belong together, such as the "
                  "article of a sentence")
      ->option_text("COLUMN");
  auto* const shots =
      command
          .add_option("--shots", arguments.data.shots,
                      "--choices: questions with their answers that stand before each question: the first N "
                      "of --shots-from; default 0")
          ->option_text("N")
          ->check(whole_number(0, 1000))
          ->needs(choices);
  auto* const shots_from =
      command.add_option("--shots-from", arguments.data.shots_from, "--shots: files of those questions")
          ->type_name("FILE")
          ->needs(shots);
  shots->needs(shots_from);
  command.add_flag("--no-speed", arguments.no_speed,
                   "Measure neither speeds nor costs by the length of the input, which takes half a minute a "
                   "variant");
}

std::string command_of(const ComparisonArguments& arguments) {
  std::string command = "zoo compare";
  for (const auto& target : arguments.targets) command += " " + shell_word(target.string());
  for (const auto& text : arguments.overrides) command += " --set " + shell_word(text);
  for (const auto& file : arguments.data.files) command += " --data " + shell_word(file);
  for (const auto& file : arguments.data.choices) command += " --choices " + shell_word(file);
  if (!arguments.data.document_column.empty())
    command += " --documents " + shell_word(arguments.data.document_column);
  if (arguments.data.shots > 0) command += fmt::format(" --shots {}", arguments.data.shots);
  for (const auto& file : arguments.data.shots_from) command += " --shots-from " + shell_word(file);
  if (!arguments.budget.empty()) command += " --budget " + shell_word(arguments.budget);
  if (arguments.seeds) command += fmt::format(" --seeds {}", *arguments.seeds);
  if (arguments.match) command += fmt::format(" --match {}", name_of(*arguments.match));
  if (arguments.no_speed) command += " --no-speed";
  return command;
}

ComparisonArguments read_command(const std::string& command) {
  ComparisonArguments arguments;
  CLI::App app;
  add_comparison_options(app, arguments);
  constexpr std::string_view beginning = "zoo compare ";
  try {
    if (!command.starts_with(beginning)) throw CLI::ParseError("", CLI::ExitCodes::BaseClass);
    app.parse(command.substr(beginning.size()));
  } catch (const CLI::ParseError&) {
    throw DataError(fmt::format("'{}' is no command of zoo compare", excerpt(command)));
  }
  return arguments;
}

Comparison read_comparison(const ComparisonArguments& arguments) {
  const auto targets = found_targets(arguments);
  const bool is_file = targets.size() == 1 && is_comparison_file(targets.front());
  check_given_data(arguments.data, is_file);
  auto comparison = is_file ? load_comparison(targets.front(), arguments.overrides)
                            : comparison_of(targets, arguments.overrides, arguments.data);
  check_something_is_trained(comparison, arguments);
  apply(arguments, comparison.settings);
  return comparison;
}

std::optional<TaskComparison> read_task_comparison(const ComparisonArguments& arguments) {
  const auto targets = found_targets(arguments);
  if (targets.size() != 1 || !is_task_comparison_file(targets.front())) return std::nullopt;
  check_given_data(arguments.data, true);
  auto comparison = load_task_comparison(targets.front(), arguments.overrides);
  apply(arguments, comparison.settings);
  for (auto& task : comparison.tasks) apply(arguments, task.comparison.settings);
  return comparison;
}

}  // namespace zoo
