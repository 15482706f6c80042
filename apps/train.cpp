// zoo train: a configuration in, a run directory out.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/shell_word.h"
#include "base/device.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "checkpoints/run_directory.h"
#include "checkpoints/stored_model.h"
#include "experiments/load_experiment.h"
#include "experiments/own_text.h"
#include "io/progress.h"
#include "parallel/launcher.h"
#include "training/stop_signals.h"
#include "training/trainer.h"

namespace zoo {
namespace {

struct TrainArguments {
  std::vector<std::filesystem::path> files;  // one configuration, or texts
  std::filesystem::path out;
  std::vector<std::string> overrides;
  std::optional<int64_t> from_step;  // of the run that is given
  bool resume = false, overwrite = false;
  std::string device = "auto";
  int64_t n_processes = 1;
};

std::string summary(const TrainResult& result, const TrainingConfig& training,
                    std::string_view how_to_go_on) {
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
    case TrainEnd::out_of_patience:
      text = fmt::format("{}: no better evaluation any more, so it ends after step {} in {}", run,
                         result.step, duration_text(result.seconds));
      break;
    case TrainEnd::interrupted:
      if (result.step == 0)
        return fmt::format("{}: stopped before the first step; there was nothing to save", run);
      return fmt::format("{}: stopped and saved after step {}; {}", run, result.step, how_to_go_on);
  }
  if (result.best_score) {
    text += fmt::format("; {}validation {} {:.4f} at step {}", training.keeps_last() ? "" : "best ",
                        training.kept_metric(), *result.best_score, result.best_step);
  }
  return text;
}

/// The same command for one of several processes.
std::vector<std::string> command_of(const TrainArguments& arguments) {
  std::vector<std::string> command = {this_program().string(), "train"};
  for (const auto& file : arguments.files) command.push_back(file.string());
  command.insert(command.end(), {"--device", arguments.device});
  for (const auto& override : arguments.overrides) command.insert(command.end(), {"--set", override});
  if (!arguments.out.empty()) command.insert(command.end(), {"--out", arguments.out.string()});
  if (arguments.from_step)
    command.insert(command.end(), {"--from-step", std::to_string(*arguments.from_step)});
  if (arguments.resume) command.push_back("--resume");
  if (arguments.overwrite) command.push_back("--overwrite");
  return command;
}

bool is_given_run(const TrainArguments& arguments) {
  return arguments.files.size() == 1 && is_run(arguments.files.front());
}

/// The run that --from-step leaves, without a slash at its end.
std::filesystem::path parent_of(const TrainArguments& arguments) {
  if (arguments.files.size() != 1) throw UsageError("--from-step leaves one run: give its directory");
  return (arguments.files.front() / "").parent_path();
}

/// The run to make or to go on with; empty: runs/NAME.
std::filesystem::path out_of(const TrainArguments& arguments) {
  if (arguments.out.empty() && arguments.from_step)
    return parent_of(arguments).string() + fmt::format("-from-{}", *arguments.from_step);
  return arguments.out.empty() && is_given_run(arguments) ? arguments.files.front() : arguments.out;
}

/// Shows what is chosen for a text, unless an error of one line follows or another process shows it.
void show_recipe(const TrainArguments& arguments, const TextRecipe& recipe) {
  const auto place = place_from_environment();
  if (is_launched() || (place && place->rank != 0)) return;
  const bool goes_on = arguments.resume || arguments.overwrite;
  if (!goes_on && is_run(run_path(recipe.experiment, arguments.out))) return;
  std::string names, source, options;
  for (const auto& file : arguments.files)
    names += (names.empty() ? "" : " ") + shell_word(excerpt(file.string(), 200));
  for (const auto& override : arguments.overrides)
    (override.starts_with("init_from=") ? source : options) += " --set " + shell_word(override);
  const auto config = shell_word(recipe.name + ".yaml");
  std::cerr << names << ": " << summary_of(recipe)
            << fmt::format("The same as a configuration (zoo config {}{} > {}; zoo train {}{}):\n\n", names,
                           source, config, config, options)
            << recipe.yaml << '\n';
}

/// How to go on with a training that has stopped.
std::string how_to_go_on(const TrainArguments& arguments) {
  if (!arguments.from_step) return "the same command with --resume goes on";
  return fmt::format("zoo train {} --resume goes on", shell_word(out_of(arguments).string()));
}

/// The configuration of a run that is given in place of one.
Experiment experiment_of_run(const TrainArguments& arguments) {
  const auto& dir = arguments.files.front();
  if (!arguments.resume) {
    throw UsageError(
        fmt::format("{} is a run: --resume goes on with it, --from-step N leaves it there; a configuration "
                    "with `init_from: {}` starts from its weights",
                    dir.string(), dir.string()));
  }
  const auto file = dir / "config.yaml";
  auto experiment = load_complete_experiment(file);  // refuses what a run may not have
  if (!arguments.overrides.empty()) experiment = load_experiment(file, arguments.overrides);
  return experiment;
}

Experiment experiment_of(const TrainArguments& arguments) {
  if (arguments.from_step) {
    const auto run = parent_of(arguments);
    read_run_experiment(run);  // refuses what is no run
    return load_experiment(run / "config.yaml", arguments.overrides);
  }
  if (is_given_run(arguments)) return experiment_of_run(arguments);
  if (arguments.files.size() == 1 && is_stored_model(arguments.files.front())) {
    const auto dir = arguments.files.front().string();
    throw UsageError(fmt::format(
        "{} is a model from Hugging Face: a configuration with `init_from: {}` starts from its weights", dir,
        dir));
  }
  if (!are_own_texts(arguments.files)) return load_experiment(arguments.files.front(), arguments.overrides);
  const auto recipe = recipe_for(arguments.files, arguments.overrides);
  show_recipe(arguments, recipe);
  return recipe.experiment;
}

/// The exit code. Processes that failed have said why.
int run_processes(const TrainArguments& arguments) {
  if (place_from_environment())
    throw UsageError("--nproc and torchrun both start processes: use one of them");
  if (arguments.device.starts_with("cuda:"))
    throw UsageError("--nproc gives each process its own GPU: use --device cuda");
  // Errors are found here, so that they are not reported by each process.
  parse_device(arguments.device, arguments.n_processes - 1);  // throws if there are too few GPUs
  const auto experiment = experiment_of(arguments);
  const StopSignals signals;
  const auto result =
      launch({.command = command_of(arguments), .n_processes = arguments.n_processes, .should_stop = [&] {
                return signals.received();
              }});
  if (result.exit_code == 0) return signals.received() ? signals.exit_code() : EXIT_SUCCESS;
  if (result.reason.empty()) return result.exit_code;
  const auto checkpoint = newest_checkpoint(run_path(experiment, out_of(arguments)));
  throw SystemError(fmt::format("{}; {}", result.reason,
                                checkpoint
                                    ? fmt::format("{} from {}", how_to_go_on(arguments), checkpoint->string())
                                    : "there is no checkpoint to go on from yet"));
}

int run(const TrainArguments& arguments) {
  if (arguments.n_processes > 1) return run_processes(arguments);
  EndWithLauncher end_with_launcher;
  TrainOptions options;
  options.place = place_from_environment();
  options.device = parse_device(arguments.device, options.place ? options.place->local_rank : 0);
  const auto experiment = experiment_of(arguments);
  const StopSignals signals;
  options.run_dir = out_of(arguments);
  if (arguments.from_step) options.from = ForkPoint{parent_of(arguments), *arguments.from_step};
  options.existing = arguments.resume      ? ExistingRun::resume
                     : arguments.overwrite ? ExistingRun::replace
                                           : ExistingRun::refuse;
  options.on_progress = progress_on_stderr(experiment.name);
  options.should_stop = [&] {
    end_with_launcher.allow_saving();
    return signals.received();
  };
  const auto result = train(experiment, options);
  options.on_progress = nullptr;  // ends the line of the progress bar
  if (!options.place || options.place->rank == 0)
    std::cerr << summary(result, experiment.training, how_to_go_on(arguments)) << '\n';
  // Where there are several processes, the one that starts them has the last word.
  return result.end == TrainEnd::interrupted && !options.place ? signals.exit_code() : EXIT_SUCCESS;
}

/// Declares `flag`, a short form of --set KEY=VALUE.
void add_short_form(CLI::App& command, const char* flag, const std::string& key, const char* value,
                    std::vector<std::string>& overrides) {
  command
      .add_option_function<std::string>(
          flag, [key, &overrides](const std::string& text) { overrides.push_back(key + "=" + text); },
          fmt::format("The same as --set {}={}", key, value))
      ->type_name(value);
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<TrainArguments>();
  auto* command =
      app.add_subcommand("train", "Train the model that a configuration describes, or one that suits a text");
  command
      ->add_option("CONFIG|TEXT", arguments->files,
                   "A configuration (a file, or a name such as gpt2), text files (UTF-8), for which a GPT is "
                   "chosen: the program says what it chooses, or with --resume a run")
      ->type_name("FILE")
      ->required();
  add_overrides(*command, arguments->overrides);
  auto& overrides = arguments->overrides;
  add_short_form(*command, "--steps", "training.steps", "N", overrides);
  add_short_form(*command, "--lr", "training.optimizer.lr", "X", overrides);
  add_short_form(*command, "--batch-size", "training.batch_size", "N", overrides);
  add_short_form(*command, "--init-from", "init_from", "MODEL", overrides);
  command->add_option("--out", arguments->out, "Directory of the run; default: runs/NAME")->type_name("DIR");
  auto* resume =
      command->add_flag("--resume", arguments->resume, "Continue the run if it exists, otherwise start it");
  command
      ->add_option(
          "--from-step", arguments->from_step,
          "Go on from a checkpoint of the run that is given, in a copy (--out; default: RUN-from-N): with "
          "--set, every later difference comes from these keys")
      ->type_name("N")
      ->check(whole_number(1))
      ->excludes(resume);
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run if it exists")->excludes(resume);
  add_device(*command, arguments->device);
  command
      ->add_option("--nproc", arguments->n_processes,
                   "Train with N processes on this machine, each with its part of the cores or its own GPU")
      ->type_name("N")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace zoo
