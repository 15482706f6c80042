#pragma once
// Options that several subcommands have, so that they read the same everywhere.

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace zoo {

inline CLI::Option* add_run(CLI::App& command, std::filesystem::path& run) {
  return command.add_option("RUN", run, "Directory of a run")->type_name("DIR")->required();
}

inline CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  return command
      .add_option("--set", overrides,
                  "A key in place of what CONFIG says, as --set training.steps=100; may be repeated")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
}

inline CLI::Option* add_device(CLI::App& command, std::string& device) {
  return command.add_option("--device", device, "auto (the first GPU if there is one), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str();
}

inline CLI::Option* add_json(CLI::App& command, bool& json,
                             const std::string& meaning = "One JSON document on standard output") {
  return command.add_flag("--json", json, meaning);
}

}  // namespace zoo
