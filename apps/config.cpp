// zoo config: shows the keys of configurations, or the values of one configuration.

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/arguments/options.h"
#include "apps/commands.h"
#include "io/config/config_file.h"
#include "training/runs/run.h"
#include "training/tasks/experiment.h"

namespace zoo {
namespace {

struct ConfigArguments {
  std::filesystem::path config;
  std::vector<std::string> overrides;
};

void show_config(const ConfigArguments& arguments) {
  if (arguments.config.empty()) {
    if (!arguments.overrides.empty())
      throw UsageError("--set changes a configuration: give one, zoo config CONFIG --set KEY=VALUE");
    std::cout << config_reference<Experiment>();
    return;
  }
  if (!std::filesystem::is_directory(arguments.config)) {
    std::cout << dump_config(load_experiment(arguments.config, arguments.overrides));
    return;
  }
  if (!arguments.overrides.empty())
    throw UsageError("--set changes a configuration, not a run that is finished");
  std::cout << dump_config(read_run_experiment(arguments.config));
}

}  // namespace

void add_config(CLI::App& app) {
  const auto arguments = std::make_shared<ConfigArguments>();
  auto* command = app.add_subcommand(
      "config", "Show every key of a configuration with its default and meaning, or all values of CONFIG");
  command
      ->add_option("CONFIG", arguments->config,
                   "A configuration (a file, or a name such as gpt2) or the directory of a run")
      ->type_name("PATH");
  add_overrides(*command, arguments->overrides);
  command->callback([arguments] { show_config(*arguments); });
}

}  // namespace zoo
