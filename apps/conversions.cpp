// zoo average, merge, import and export: runs, directories in Hugging Face's form and GGUF files, made from
// others.

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/long_work.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "base/device.h"
#include "checkpoints/average_run.h"
#include "checkpoints/import_run.h"
#include "checkpoints/merge_run.h"
#include "interop/gguf_export.h"
#include "io/json_document.h"

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
  return shown_json(document) + "\n";
}

std::string as_text(const std::filesystem::path& run, const AveragedRun& averaged) {
  return fmt::format("{}: validation loss {:.4f}\n{}: validation loss {:.4f}, the mean of steps {}\n",
                     run.string(), averaged.loss_before, averaged.run_dir.string(), averaged.loss,
                     fmt::join(averaged.steps, ", "));
}

void run(AverageArguments arguments) {
  arguments.options.device = parse_device(arguments.device);
  arguments.options.on_message = [](const std::string& line) { say_on_terminal(line); };
  note_large_weights(arguments.run);
  const auto averaged = average_run(arguments.run, arguments.options);
  std::cout << (arguments.json ? as_json(averaged) : as_text(arguments.run, averaged));
}

struct MergeArguments {
  std::filesystem::path run, out, base;
  bool json = false;
};

void merge(const MergeArguments& arguments) {
  note_large_weights(arguments.run);
  const auto merged = merge_run(arguments.run, arguments.out, arguments.base);
  const nlohmann::json document = {{"run", merged.run_dir.string()}, {"adapters", merged.n_adapters}};
  std::cout << (arguments.json
                    ? shown_json(document) + "\n"
                    : fmt::format("{}: {} adapters merged\n", merged.run_dir.string(), merged.n_adapters));
}

struct ConversionArguments {
  std::filesystem::path from, to, base;
  std::optional<ExportedType> type;
  bool only_adapter = false, json = false;
  std::string checkpoint = {};
};

void import_directory(const ConversionArguments& arguments) {
  note_large_weights(arguments.from);
  const auto imported = import_run(arguments.from, arguments.to, arguments.base);
  if (arguments.json) {
    const nlohmann::ordered_json document = {{"run", arguments.to.string()},
                                             {"model_type", imported.model_type},
                                             {"task", imported.task},
                                             {"tensors", imported.n_tensors},
                                             {"parameters", imported.n_parameters}};
    std::cout << shown_json(document) << '\n';
    return;
  }
  std::cout << fmt::format("{}: {} for {}, {} parameters in {} tensors\n", arguments.to.string(),
                           imported.model_type, imported.task, imported.n_parameters, imported.n_tensors);
}

void export_model(const ConversionArguments& arguments) {
  const auto from = with_checkpoint(arguments.from, arguments.checkpoint);
  note_large_weights(from);
  const bool is_adapter = arguments.only_adapter;
  const auto kind = export_run(from, arguments.to,
                               {.type = arguments.type,
                                .part = is_adapter ? ExportedPart::adapter : ExportedPart::model,
                                .base = arguments.base});
  const bool is_file = is_gguf_name(arguments.to);
  if (arguments.json) {
    const nlohmann::ordered_json document = {{is_file ? "file" : "directory", arguments.to.string()},
                                             {is_file ? "architecture" : "model_type", kind}};
    std::cout << shown_json(document) << '\n';
    return;
  }
  std::cout << fmt::format("{}: {}, for {}\n", arguments.to.string(), kind,
                           is_file      ? "llama.cpp"
                           : is_adapter ? "PeftModel.from_pretrained()"
                                        : "AutoModel.from_pretrained()");
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
  auto* command = app.add_subcommand(
      "merge", "Add the adapters of a run (training.lora), or those of PEFT, to the weights of their base");
  add_run(*command, arguments->run);
  command->add_option("OUT", arguments->out, "Directory of the new run")->required()->option_text(" ");
  add_base(*command, arguments->base);
  add_json(*command, arguments->json);
  command->callback([arguments] { merge(*arguments); });
}

void add_import(CLI::App& app) {
  const auto arguments = std::make_shared<ConversionArguments>();
  auto* command = app.add_subcommand(
      "import",
      "Make a run from a directory that was downloaded from Hugging Face, or from a file of weights");
  command
      ->add_option("DIRECTORY", arguments->from,
                   "A directory with config.json and weights, an adapter of PEFT, a GGUF file, or NAME.pt")
      ->type_name("DIR")
      ->required();
  command->add_option("RUN", arguments->to, "The directory of the new run")->type_name("DIR")->required();
  add_base(*command, arguments->base);
  add_json(*command, arguments->json);
  command->callback([arguments] { import_directory(*arguments); });
}

void add_export(CLI::App& app) {
  const auto arguments = std::make_shared<ConversionArguments>();
  auto* command = app.add_subcommand(
      "export", "Write a run for Hugging Face transformers, or as a GGUF file for llama.cpp");
  add_run(*command, arguments->from);
  command
      ->add_option("DIRECTORY", arguments->to, "The new directory, or the new file if its name ends in .gguf")
      ->type_name("DIR|FILE.gguf")
      ->required();
  command
      ->add_option("--weights", arguments->type,
                   "The type of the weights: fp32, fp16, bf16, or in a GGUF file q8_0 or q4_0; default: the "
                   "one in which "
                   "the run has them")
      ->transform(one_of<ExportedType>())
      ->option_text("FORMAT");
  command->add_flag("--adapter", arguments->only_adapter,
                    "Only the adapters of training.lora and what else was trained, for the library PEFT: "
                    "PeftModel.from_pretrained(BASE, DIRECTORY)");
  add_checkpoint(*command, arguments->checkpoint);
  add_base(*command, arguments->base);
  add_json(*command, arguments->json);
  command->callback([arguments] { export_model(*arguments); });
}

}  // namespace zoo
