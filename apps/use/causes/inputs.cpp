#include "apps/use/causes/inputs.h"

#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "base/device.h"
#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {

void add_cause_run(CLI::App& command, CauseRun& run) {
  add_run(command, run.dir);
  add_base(command, run.base);
  add_checkpoint(command, run.checkpoint);
  add_device(command, run.device);
}

Run open_for_causes(const CauseRun& run) {
  const auto dir = with_checkpoint(run.dir, run.checkpoint);
  const auto device = parse_device(run.device);
  note_large_weights(dir);
  return Run::open(dir, device, WeightFormat::fp32, run.base);
}

void add_cause_input(CLI::App& command, CauseInput& input) {
  auto* const text = command.add_option("--text", input.text, "The text to read")->type_name("TEXT");
  command
      .add_option("--image", input.image,
                  "The picture to look at (PNG, JPEG, WebP), for a run that reads images")
      ->type_name("FILE")
      ->excludes(text);
  command
      .add_option("--target", input.target,
                  "The answer or translation to look at, for a model that answers; default: the model's own")
      ->type_name("TEXT");
}

QuestionRequest request_of(const CauseInput& input, const Run& run) {
  const bool reads_images = task_type(run.experiment()).predicts_from == PredictionInput::image_file;
  if (!input.text && !input.image)
    throw UsageError("--text is required, or --image for a run that reads images");
  if (input.image && !reads_images) require_input(run, PredictionInput::image_file, "--image");
  if (input.text && reads_images) require_input(run, PredictionInput::text, "--text");
  if (input.target && input.image)
    throw UsageError("--target contradicts --image: a picture has no answer that is written");
  return {.text = input.text, .image = input.image, .target = input.target};
}

std::string shown_label(std::string_view label) {
  constexpr size_t most_bytes = 14;
  return fmt::format("“{}”", excerpt(label, most_bytes));
}

void print_answer(const Question& question) {
  if (!question.target.empty()) std::cout << "“" << question.input << "” → “" << question.target << "”\n";
}

}  // namespace zoo
