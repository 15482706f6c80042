// zoo train: a configuration in, a run directory out.

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/options.h"
#include "base/device.h"
#include "base/error.h"
#include "base/process.h"
#include "io/progress.h"
#include "training/parallel/launcher.h"
#include "training/runs/checkpoint.h"
#include "training/runs/run_directory.h"
#include "training/stop_signals.h"
#include "training/trainer.h"

namespace zoo {
namespace {

struct TrainArguments {
  std::filesystem::path config, out;
  std::vector<std::string> overrides;
  bool resume = false, overwrite = false;
  std::string device = "auto";
  int64_t n_processes = 1;
};

std::string summary(const TrainResult& result, const std::string& best_by) {
  const auto run = result.run_dir.string();
  std::string text;
  switch (result.end) {
    case TrainEnd::all_steps:
      text = fmt::format("{}: {} steps in {}", run, result.step, duration_text(result.seconds));
      break;
    case TrainEnd::out_of_time:
      text = fmt::format("{}: out of time after {} steps in {}", run, result.step,
                         duration_text(result.seconds));
      break;
    case TrainEnd::interrupted:
      if (result.step == 0)
        return fmt::format("{}: stopped before the first step; there was nothing to save", run);
      return fmt::format("{}: stopped and saved after step {}; the same command with --resume goes on", run,
                         result.step);
  }
  if (result.best_score) {
    text +=
        fmt::format("; best validation {} {:.4f} at step {}", best_by, *result.best_score, result.best_step);
  }
  return text;
}

/// The same command for one of several processes.
std::vector<std::string> command_of(const TrainArguments& arguments) {
  std::vector<std::string> command = {this_program().string(), "train", arguments.config.string(), "--device",
                                      arguments.device};
  for (const auto& override : arguments.overrides) command.insert(command.end(), {"--set", override});
  if (!arguments.out.empty()) command.insert(command.end(), {"--out", arguments.out.string()});
  if (arguments.resume) command.push_back("--resume");
  if (arguments.overwrite) command.push_back("--overwrite");
  return command;
}

void run_processes(const TrainArguments& arguments) {
  if (place_from_environment())
    throw UsageError("--nproc and torchrun both start processes: use one of them");
  if (arguments.device.starts_with("cuda:"))
    throw UsageError("--nproc gives each process its own GPU: use --device cuda");
  // Errors are found here, so that they are not reported by each process.
  parse_device(arguments.device, arguments.n_processes - 1);  // throws if there are too few GPUs
  const auto experiment = load_experiment(arguments.config, arguments.overrides);
  const StopSignals signals;
  const auto result =
      launch({.command = command_of(arguments), .n_processes = arguments.n_processes, .should_stop = [&] {
                return signals.received();
              }});
  if (result.exit_code == 0) return;
  if (result.reason.empty())
    throw AlreadyReported{result.exit_code};  // NOLINT(bugprone-std-exception-baseclass): an exit, no error
  const auto checkpoint = newest_checkpoint(run_path(experiment, arguments.out));
  throw SystemError(fmt::format(
      "{}; {}", result.reason,
      checkpoint ? fmt::format("the same command with --resume goes on from {}", checkpoint->string())
                 : "there is no checkpoint to go on from yet"));
}

void run(const TrainArguments& arguments) {
  if (arguments.n_processes > 1) return run_processes(arguments);
  const auto experiment = load_experiment(arguments.config, arguments.overrides);
  const StopSignals signals;
  TrainOptions options;
  options.run_dir = arguments.out;
  options.existing = arguments.resume      ? ExistingRun::resume
                     : arguments.overwrite ? ExistingRun::replace
                                           : ExistingRun::refuse;
  options.place = place_from_environment();
  options.device = parse_device(arguments.device, options.place ? options.place->local_rank : 0);
  options.on_progress = progress_on_stderr(experiment.name);
  options.should_stop = [&] { return signals.received(); };
  const auto result = train(experiment, options);
  options.on_progress = nullptr;  // ends the line of the progress bar
  if (!options.place || options.place->rank == 0)
    std::cerr << summary(result, experiment.training.best_by) << '\n';
}

}  // namespace

void add_train(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  auto* command = app.add_subcommand("train", "Train the model that a configuration describes");
  command->add_option("CONFIG", arguments->config, "A configuration")->type_name("FILE")->required();
  add_overrides(*command, arguments->overrides);
  command->add_option("--out", arguments->out, "Directory of the run; default: runs/NAME")->type_name("DIR");
  auto* resume =
      command->add_flag("--resume", arguments->resume, "Continue the run if it exists, otherwise start it");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run if it exists")->excludes(resume);
  add_device(*command, arguments->device);
  command
      ->add_option("--nproc", arguments->n_processes,
                   "Train with N processes on this machine, each with its part of the cores or its own GPU")
      ->type_name("N")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zoo
