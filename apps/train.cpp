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
#include "io/error.h"
#include "training/device.h"
#include "training/stop_signals.h"
#include "training/trainer.h"

namespace zoo {
namespace {

struct TrainArguments {
  std::filesystem::path config, out;
  std::vector<std::string> overrides;
  bool resume = false, overwrite = false;
  std::string device = "auto";
};

std::string duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(seconds);
  return whole < 3600 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                      : fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string summary(const TrainResult& result) {
  const auto run = result.run_dir.string();
  std::string text;
  switch (result.end) {
    case TrainEnd::all_steps:
      text = fmt::format("{}: {} steps in {}", run, result.step, duration(result.seconds));
      break;
    case TrainEnd::out_of_time:
      text = fmt::format("{}: out of time after {} steps in {}", run, result.step, duration(result.seconds));
      break;
    case TrainEnd::interrupted:
      return fmt::format("{}: stopped and saved after step {}; the same command with --resume goes on", run,
                         result.step);
  }
  if (result.best_loss)
    text += fmt::format("; best validation loss {:.4f} at step {}", *result.best_loss, result.best_step);
  return text;
}

void run(const TrainArguments& arguments) {
  const auto experiment = load_experiment(arguments.config, arguments.overrides);
  const StopSignals signals;
  TrainOptions options;
  options.run_dir = arguments.out;
  options.existing = arguments.resume      ? ExistingRun::resume
                     : arguments.overwrite ? ExistingRun::replace
                                           : ExistingRun::refuse;
  options.device = parse_device(arguments.device);
  options.on_progress = progress_on_stderr(experiment.name);
  options.should_stop = [&] { return signals.received(); };
  const auto result = train(experiment, options);
  options.on_progress = nullptr;  // ends the line of the progress bar
  std::cerr << summary(result) << '\n';
}

}  // namespace

void add_train(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  auto* command = app.add_subcommand("train", "Train the model that a configuration describes");
  command->add_option("CONFIG", arguments->config, "A configuration")->type_name("FILE")->required();
  add_overrides(*command, arguments->overrides);
  command->add_option("--out", arguments->out, "Directory of the run; default: runs/NAME")->type_name("DIR");
  auto* resume =
      command->add_flag("--resume", arguments->resume, "Go on with the run if it exists, or else start it");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run if it exists")->excludes(resume);
  add_device(*command, arguments->device);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zoo
