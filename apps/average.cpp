// New runs from a run. zoo average: the mean of its last checkpoints; zoo merge: its adapters added to its
// weights.

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/options.h"
#include "apps/commands.h"
#include "base/device.h"
#include "checkpoints/average_run.h"
#include "checkpoints/merge_run.h"

namespace zoo {
namespace {

struct AverageArguments {
  std::filesystem::path run;
  AverageOptions options;
  std::string device = "auto";
  bool json = false;
};

std::string as_json(const AveragedRun& averaged) {
  const nlohmann::json document = {{"run", averaged.run_dir.string()},
                                   {"steps", averaged.steps},
                                   {"loss_before", averaged.loss_before},
                                   {"loss", averaged.loss}};
  return document.dump() + "\n";
}

std::string as_text(const std::filesystem::path& run, const AveragedRun& averaged) {
  return fmt::format("{}: validation loss {:.4f}\n{}: validation loss {:.4f}, the mean of steps {}\n",
                     run.string(), averaged.loss_before, averaged.run_dir.string(), averaged.loss,
                     fmt::join(averaged.steps, ", "));
}

void run(AverageArguments arguments) {
  arguments.options.device = parse_device(arguments.device);
  const auto averaged = average_run(arguments.run, arguments.options);
  std::cout << (arguments.json ? as_json(averaged) : as_text(arguments.run, averaged));
}

struct MergeArguments {
  std::filesystem::path run, out;
  bool json = false;
};

void merge(const MergeArguments& arguments) {
  const auto merged = merge_run(arguments.run, arguments.out);
  const nlohmann::json document = {{"run", merged.run_dir.string()}, {"adapters", merged.n_adapters}};
  std::cout << (arguments.json
                    ? document.dump() + "\n"
                    : fmt::format("{}: {} adapters merged\n", merged.run_dir.string(), merged.n_adapters));
}

}  // namespace

void add_average(CLI::App& app) {
  const auto arguments = std::make_shared<AverageArguments>();
  auto* command = app.add_subcommand("average", "Make a new run from the mean of a run's last checkpoints");
  add_run(*command, arguments->run);
  command
      ->add_option("--last", arguments->options.last,
                   "Number of newest checkpoints to average; default: all that the run has kept")
      ->type_name("K")
      ->check(whole_number(1));
  command->add_option("--out", arguments->options.out, "Directory of the new run; default: RUN-average")
      ->type_name("DIR");
  add_device(*command, arguments->device);
  add_json(*command, arguments->json);
  command->callback([arguments] { run(*arguments); });
}

void add_merge(CLI::App& app) {
  const auto arguments = std::make_shared<MergeArguments>();
  auto* command = app.add_subcommand("merge", "Add the adapters of a run (training.lora) to its weights");
  add_run(*command, arguments->run);
  command->add_option("OUT", arguments->out, "Directory of the new run")->required()->option_text(" ");
  add_json(*command, arguments->json);
  command->callback([arguments] { merge(*arguments); });
}

}  // namespace zoo
