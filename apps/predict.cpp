// zoo predict: what a trained model says about new inputs: the class of a text or of an image.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/arguments/images.h"
#include "apps/arguments/options.h"
#include "apps/arguments/run_arguments.h"
#include "apps/arguments/texts.h"
#include "apps/commands.h"
#include "base/error.h"

namespace zoo {
namespace {

struct PredictArguments {
  RunArguments run;
  TextArguments texts;
  std::vector<std::filesystem::path> images;
  std::optional<int64_t> top;
  bool json = false;
};

// The labels of each text in plain output. All labels of a task with many would hide the likely ones.
constexpr int64_t kShownLabels = 5;

/// Throws UsageError if the run's task makes no predictions.
void require_predictions(const Run& run, const std::filesystem::path& dir) {
  const auto& type = task_type(run.experiment());
  if (type.predicts_from != PredictionInput::nothing) return;
  const auto head = run.task().purpose().head;
  const char* const advice = head == HeadKind::language_modeling ? ": zoo generate writes text with it"
                             : head == HeadKind::masked_language_modeling
                                 ? ": zoo generate fills masks with it"
                                 : "";
  throw UsageError(
      fmt::format("{}: the task {} has no labels to predict{}", dir.string(), type.name, advice));
}

/// The inputs that the arguments name. Throws UsageError for texts where the run reads images, and the other
/// way round.
std::vector<std::string> inputs_of(const PredictArguments& arguments, const Run& run) {
  const auto& type = task_type(run.experiment());
  if (type.predicts_from == PredictionInput::image_file) {
    if (!arguments.texts.texts.empty())
      throw UsageError(fmt::format("--text: {} classifies images: use --image", arguments.run.dir.string()));
    return image_files(arguments.images, arguments.texts.files);
  }
  if (!arguments.images.empty())
    throw UsageError(fmt::format("--image: {} classifies texts: use --text", arguments.run.dir.string()));
  return read_texts(arguments.texts, run.experiment().data);
}

void predict(const PredictArguments& arguments) {
  const auto run = open_run(arguments.run);
  require_predictions(run, arguments.run.dir);
  const auto& data = run.experiment().data;
  const auto inputs = inputs_of(arguments, run);
  const auto predictions =
      run.task().predict(run.model(), inputs, {.on_progress = progress_over_texts("predicting")});
  note_cut_texts(std::ranges::count(predictions, true, &Prediction::cut), std::ssize(inputs), data);
  std::cout << (arguments.json ? to_json(predictions, arguments.top.value_or(kEveryLabel)) + "\n"
                               : to_text(predictions, arguments.top.value_or(kShownLabels)));
}

}  // namespace

void add_predict(CLI::App& app) {
  const auto arguments = std::make_shared<PredictArguments>();
  auto* command = app.add_subcommand("predict", "Classify texts or images: labels with probabilities");
  add_run(*command, arguments->run.dir);
  add_texts(*command, arguments->texts);
  add_images(*command, arguments->images);
  command
      ->add_option(
          "--top", arguments->top,
          fmt::format("The N likeliest labels of each input; default: {}, with --json all", kShownLabels))
      ->type_name("N")
      ->check(whole_number(1));
  add_json(*command, arguments->json,
           "One JSON document: {\"results\": [{\"input\", \"labels\": [{\"label\", \"probability\"}]}]}");
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line for each input: label, probability, label, probability, ..., the likeliest first, "
      "separated by tabs. The probabilities of all labels sum to 1. A text without tokens, such as an empty "
      "line, has no labels. Texts that are too long are cut as in training. If the model "
      "classifies images, --input and standard input list their paths, one a line.");
  command->callback([arguments] { predict(*arguments); });
}

}  // namespace zoo
