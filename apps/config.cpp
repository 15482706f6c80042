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
#include "training/recipes/own_text.h"
#include "training/runs/run.h"
#include "training/tasks/experiment.h"

namespace zoo {
namespace {

struct ConfigArguments {
  std::vector<std::filesystem::path> files;  // a configuration, a run, or texts
  std::vector<std::string> overrides;
};

void show_config(const ConfigArguments& arguments) {
  if (arguments.files.empty()) {
    if (!arguments.overrides.empty())
      throw UsageError("--set changes a configuration: give one, zoo config CONFIG --set KEY=VALUE");
    std::cout << config_reference<Experiment>();
    return;
  }
  const auto& path = arguments.files.front();
  if (are_own_texts(arguments.files)) {
    if (!arguments.overrides.empty())
      throw UsageError(
          "--set changes a configuration, not a text: write the text's configuration to a file first");
    std::cout << recipe_for(arguments.files).yaml;
    return;
  }
  if (!std::filesystem::is_directory(path)) {
    std::cout << dump_config(load_experiment(path, arguments.overrides));
    return;
  }
  if (!arguments.overrides.empty())
    throw UsageError("--set changes a configuration, not a run that is finished");
  std::cout << dump_config(read_run_experiment(path));
}

}  // namespace

void add_config(CLI::App& app) {
  const auto arguments = std::make_shared<ConfigArguments>();
  auto* command = app.add_subcommand(
      "config",
      "Show every key of a configuration with its default and meaning, all values of CONFIG, or the "
      "configuration that zoo train chooses for TEXT");
  command
      ->add_option("CONFIG|TEXT", arguments->files,
                   "A configuration (a file, or a name such as gpt2), the directory of a run, or text files")
      ->type_name("PATH");
  add_overrides(*command, arguments->overrides);
  command->callback([arguments] { show_config(*arguments); });
}

}  // namespace zoo
