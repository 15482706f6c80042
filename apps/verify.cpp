// zoo verify: a training of a study is made again.

#include "comparison/verify.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/comparison_arguments.h"
#include "apps/console/options.h"
#include "base/device.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "io/config/find_config.h"
#include "io/json_document.h"
#include "io/temporary_directory.h"
#include "pages/tables/report_document.h"
#include "pages/tables/task_document.h"
#include "training/stop_signals.h"

namespace zoo {
namespace {

struct VerifyArguments {
  std::filesystem::path study;
  std::string run;
  std::optional<int64_t> seed;
  bool all = false, json = false;
  std::string device = "auto";
};

/// One task of a comparison of several.
Comparison comparison_of_task(const ComparisonArguments& arguments, const std::string& task) {
  auto comparison = read_task_comparison(arguments);
  if (comparison) {
    for (auto& [name, of_task] : comparison->tasks) {
      if (name == task) return std::move(of_task);
    }
  }
  throw UsageError(fmt::format("the comparison file has no task {} any more", excerpt(task)));
}

/// What a study says of itself, and those of its trainings that can be made again.
struct Study {
  nlohmann::ordered_json results;
  std::vector<StudyTraining> trainings = {};
};

Study read_study(const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "results.json" : path;
  const auto text = read_json_text(file);
  try {
    Study study{.results = parse_ordered_json(text)};
    if (!has_several_tasks(study.results)) study.trainings = trainings_of(study.results);
    return study;
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// The comparison that a study was made from. Throws UsageError if its file has changed since.
Comparison comparison_of_study(const nlohmann::ordered_json& results) {
  const auto command = results.at("command").get<std::string>();
  const auto arguments = read_command(command);
  const auto task = text_at(results, "of_task");
  auto comparison = task.empty() ? read_comparison(arguments) : comparison_of_task(arguments, task);
  const auto& yaml = results.at("yaml");
  if (yaml != (comparison.yaml.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(comparison.yaml)))
    throw UsageError(
        fmt::format("the comparison file of '{}' has changed since the study was made", command));
  return comparison;
}

/// A stranger's study may have any names.
std::string name_for_people(const StudyTraining& training) {
  return fmt::format("{}, seed {}", excerpt(training.run), training.seed);
}

/// Those that are asked for: one, unless there are to be all.
std::vector<StudyTraining> wanted_trainings(const std::vector<StudyTraining>& all,
                                            const VerifyArguments& arguments) {
  std::vector<StudyTraining> trainings;
  std::string known;
  for (const auto& training : all) {
    known += (known.empty() ? "" : "; ") + name_for_people(training);
    const bool is_wanted = (arguments.run.empty() || training.run == arguments.run) &&
                           (!arguments.seed || training.seed == *arguments.seed);
    if (is_wanted && (arguments.all || trainings.empty())) trainings.push_back(training);
  }
  if (trainings.empty())
    throw UsageError(
        fmt::format("the study has no such training that was trained to its end by number of steps; {}",
                    known.empty() ? "it has none at all" : "it has " + excerpt(known, 1000)));
  return trainings;
}

/// Why the files that a study was made from may not be the same, though its comparison file is.
std::vector<std::string> changed_files(const Verification& verification, const Comparison& comparison,
                                       const std::string& command) {
  constexpr std::string_view config = "config.";
  const auto targets = read_command(command).targets;
  std::vector<std::string> lines;
  for (const auto& difference : verification.differences) {
    if (difference.place == "data") {
      const auto& data = comparison.variants.front().experiment.data;
      std::vector<std::string> names;
      for (const auto& files : {data.train, data.valid})
        for (const auto& file : files) names.push_back(file.text);
      lines.push_back(fmt::format("data: other than in the study: {}", fmt::join(names, ", ")));
    }
    if (!difference.place.starts_with(config) || comparison.yaml.empty()) continue;
    const auto place =
        place_in_base(find_config(targets.front().string()), difference.place.substr(config.size()));
    lines.push_back(place ? fmt::format("configuration: {} is set at {}", difference.place, *place)
                          : fmt::format("configuration: {} is set nowhere any more", difference.place));
  }
  return lines;
}

void show_verification(const Verification& verification) {
  const auto& [training, n_values, differences, circumstances] = verification;
  const auto name = name_for_people(training);
  if (differences.empty()) {
    std::cout << fmt::format("same       {}: {} numbers have the same bits\n", name, n_values);
    return;
  }
  const auto& first = differences.front();
  std::cout << fmt::format("different  {}: {} of {} numbers, the first is {}: {} in the study, {} here\n",
                           name, differences.size(), n_values, excerpt(first.place), first.was.dump(),
                           first.is.dump());
  for (const auto& line : circumstances) std::cout << "           " << line << '\n';
}

nlohmann::ordered_json verification_json(const Verification& verification) {
  auto differences = nlohmann::ordered_json::array();
  for (const auto& [place, was, is] : verification.differences)
    differences.push_back({{"place", place}, {"was", was}, {"is", is}});
  return {{"run", verification.training.run},         {"seed", verification.training.seed},
          {"same", verification.differences.empty()}, {"values", verification.n_values},
          {"differences", std::move(differences)},    {"circumstances", verification.circumstances}};
}

/// The exit code.
int verify_study(const VerifyArguments& arguments) {
  parse_device(arguments.device);  // throws before anything is read
  const auto [results, all_trainings] = read_study(arguments.study);
  if (has_several_tasks(results)) {
    throw UsageError(
        fmt::format("{}: has several tasks: name the directory of one of them", arguments.study.string()));
  }
  const auto trainings = wanted_trainings(all_trainings, arguments);
  const auto comparison = comparison_of_study(results);
  const StopSignals signals;
  const TemporaryDirectory scratch("zoo-verify");
  bool is_same = true;
  auto all = nlohmann::ordered_json::array();
  for (const auto& training : trainings) {
    std::cerr << fmt::format("training {}, again\n", name_for_people(training));
    auto verification = verify(
        results, comparison, training,
        {.dir = scratch.path(), .program = this_program(), .device = arguments.device, .should_stop = [&] {
           return signals.received();
         }});
    if (!verification) return signals.exit_code();
    for (auto& line : changed_files(*verification, comparison, results.at("command")))
      verification->circumstances.push_back(std::move(line));
    is_same = is_same && verification->differences.empty();
    all.push_back(verification_json(*verification));
    if (!arguments.json) show_verification(*verification);
  }
  if (arguments.json)
    std::cout << shown_json(nlohmann::ordered_json{{"same", is_same}, {"trainings", std::move(all)}}) << '\n';
  return is_same ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_verify(const VerifyArguments& arguments) try {
  return verify_study(arguments);
} catch (const nlohmann::json::exception& error) {
  throw DataError(fmt::format("{}: no results of a comparison: {}", arguments.study.string(), error.what()));
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<VerifyArguments>();
  auto* command = app.add_subcommand(
      "verify",
      "Train one run of a comparison again, and say whether its numbers are the same to the last bit");
  command->add_option("STUDY", arguments->study, "A results.json, or the directory of a comparison")
      ->type_name("PATH")
      ->required();
  command->add_option("--run", arguments->run, "The name of its row; default: the first")->type_name("NAME");
  command->add_option("--seed", arguments->seed, "Default: its first seed")
      ->type_name("N")
      ->check(whole_number());
  command->add_flag("--all", arguments->all, "Every training of the study, or of --run, or with --seed");
  add_device(*command, arguments->device);
  add_json(*command, arguments->json,
           "One JSON document: {\"same\", \"trainings\": [{\"run\", \"seed\", \"same\", \"values\", "
           "\"differences\": "
           "[{\"place\", \"was\", \"is\"}], \"circumstances\"}]}");
  command->footer(
      "The study must name the comparison file that it was made from, which must be there and be the same. "
      "Configuration and size, curves and "
      "scores are compared, and whether the mean of the row is that of its seeds; times are not, nor "
      "is memory that other sources need. Exit code 0: all are the same; 1: some are not. Another processor, "
      "number of cores, compiler or version of LibTorch rounds "
      "otherwise: "
      "these are listed.");
  command->callback([arguments, &exit_code] { exit_code = run_verify(*arguments); });
}

}  // namespace zoo
