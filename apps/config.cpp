// zoo config: shows the keys of configurations, or the values of one configuration.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "experiments/load_experiment.h"
#include "experiments/own_text.h"
#include "io/config/config_file.h"
#include "io/config/config_reference.h"
#include "io/config/find_config.h"
#include "io/config/usual_names.h"
#include "io/files.h"
#include "tasks/experiment.h"

namespace zoo {
namespace {

struct ConfigArguments {
  std::vector<std::filesystem::path> files;  // a configuration, a run, or texts
  std::vector<std::string> overrides;
  bool lists = false;
};

/// The first sentence of a configuration's first comment, or the title of a comparison.
std::string purpose_of(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view before : {"# ", "title: "}) {
      if (!line.starts_with(before)) continue;
      const auto text = line.substr(before.size());
      return text.substr(0, std::min(text.find(": "), text.find(". ")));
    }
  }
  return "";
}

void list_configs() {
  const auto files = list_shipped_configs();
  size_t width = 0;
  for (const auto& file : files) width = std::max(width, file.stem().string().size());
  std::string folder;
  for (const auto& file : files) {
    const auto name = file.parent_path().filename().string();
    if (name != folder) std::cout << fmt::format("{}{}\n", folder.empty() ? "" : "\n", name);
    folder = name;
    std::cout << fmt::format("  {:<{}}  {}\n", file.stem().string(), width, purpose_of(file));
  }
}

/// The key that somebody means who writes `word`, if one is near.
std::optional<std::string> key_near(const std::string& word) {
  if (const auto usual = key_called(word)) return std::string(*usual);
  // Keys, and their ends: optimizer.lr and lr of training.optimizer.lr.
  std::vector<std::string> keys, ends;
  for (const auto& value : flatten(Experiment())) {
    size_t begin = 0;
    do {
      keys.push_back(value.key);
      ends.push_back(value.key.substr(begin));
      begin = value.key.find('.', begin) + 1;
    } while (begin != 0);
  }
  const auto end = nearest(word, ends);
  return end ? std::optional(keys[static_cast<size_t>(std::ranges::find(ends, *end) - ends.begin())])
             : std::nullopt;
}

/// The part of the reference about `word`, if that is a key and no configuration. Throws UsageError if it is
/// neither, but near to a key.
std::optional<std::string> reference_of(const std::string& word) {
  try {
    find_config(word);
    return std::nullopt;
  } catch (const ConfigError& error) {
    auto text = reference_of_key<Experiment>(word);
    if (!text.empty()) return text;
    const bool is_path = word.find('/') != word.npos || word.ends_with(".yaml") || word.ends_with(".yml");
    const bool has_advice = std::string_view(error.what()).find("did you mean") != std::string_view::npos;
    const auto key = is_path || has_advice ? std::nullopt : key_near(word);
    if (!key) return std::nullopt;
    throw UsageError(fmt::format(
        "there is neither a key nor a configuration '{}'; did you mean the key '{}'?", excerpt(word), *key));
  }
}

void show_config(const ConfigArguments& arguments) {
  if (arguments.lists) return list_configs();
  if (arguments.files.empty()) {
    if (!arguments.overrides.empty())
      throw UsageError("--set changes a configuration: give one, zoo config CONFIG --set KEY=VALUE");
    std::cout << config_reference<Experiment>();
    return;
  }
  const auto& path = arguments.files.front();
  std::error_code ignored;
  if (arguments.files.size() == 1 && arguments.overrides.empty() && !std::filesystem::exists(path, ignored)) {
    if (const auto text = reference_of(path.string())) {
      std::cout << *text;
      return;
    }
  }
  if (are_own_texts(arguments.files)) {
    for (const auto& override : arguments.overrides) {
      if (!override.starts_with("init_from="))
        throw UsageError(
            "--set changes a configuration, not a text (except init_from): write the text's configuration to "
            "a file first");
    }
    std::cout << recipe_for(arguments.files, arguments.overrides).yaml;
    return;
  }
  if (!names_stored_model(path)) {
    std::cout << dump_config(load_experiment(path, arguments.overrides));
    return;
  }
  if (!arguments.overrides.empty())
    throw UsageError("--set changes a configuration, not a run that is finished");
  std::cout << dump_config(read_stored_experiment(path));
}

}  // namespace

void add_config(CLI::App& app) {
  const auto arguments = std::make_shared<ConfigArguments>();
  auto* command =
      app.add_subcommand("config",
                         "Show every key of a configuration with its default and meaning, or those of KEY; "
                         "all values of CONFIG; or the configuration that zoo train chooses for TEXT");
  command
      ->add_option("CONFIG|TEXT|KEY", arguments->files,
                   "A configuration (a file, or a name such as gpt2), the directory of a run, text files, or "
                   "a key such as training.optimizer or lr")
      ->type_name("PATH");
  command->add_flag("--list", arguments->lists, "List the configurations that come with the program");
  add_overrides(*command, arguments->overrides);
  command->callback([arguments] { show_config(*arguments); });
}

}  // namespace zoo
