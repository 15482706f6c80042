// zoo evaluate: how good a trained model is on data it has not seen.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/options.h"
#include "training/device.h"
#include "training/run.h"

namespace zoo {
namespace {

struct EvaluateArguments {
  std::filesystem::path run;
  std::vector<std::string> data;
  Split split = Split::valid;
  std::string device = "auto";
  bool json = false;
};

bool is_count(const std::string& name) { return name == "tokens"; }

std::string as_json(const Metrics& metrics) {
  nlohmann::json document;
  for (const auto& [name, value] : metrics) {
    if (is_count(name)) {
      document[name] = static_cast<int64_t>(value);
    } else {
      document[name] = value;
    }
  }
  return document.dump();
}

std::string as_text(const Metrics& metrics) {
  size_t width = 0;
  for (const auto& [name, value] : metrics) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : metrics) {
    text += is_count(name) ? fmt::format("{:<{}}  {:.0f}\n", name, width, value)
                           : fmt::format("{:<{}}  {:.4f}\n", name, width, value);
  }
  return text;
}

void run(const EvaluateArguments& arguments) {
  const auto trained = Run::open(arguments.run, parse_device(arguments.device));
  const auto metrics = trained.evaluate(arguments.split, arguments.data);
  std::cout << (arguments.json ? as_json(metrics) + "\n" : as_text(metrics));
}

}  // namespace

void add_evaluate(CLI::App& app) {
  const auto arguments = std::make_shared<EvaluateArguments>();
  auto* command = app.add_subcommand("evaluate", "Measure a trained model on validation, test or other data");
  add_run(*command, arguments->run);
  auto* data =
      command
          ->add_option("--data", arguments->data, "Files of the same kind as data.valid, instead of a split")
          ->type_name("FILE");
  const std::vector<std::pair<std::string, Split>> splits = {{"valid", Split::valid}, {"test", Split::test}};
  command
      ->add_option("--split", arguments->split,
                   "valid (default) or test, as the run's configuration names them; not with --data")
      ->transform(CLI::CheckedTransformer(splits))
      ->option_text("SPLIT")
      ->excludes(data);
  add_device(*command, arguments->device);
  add_json(*command, arguments->json);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zoo
