#pragma once
// What the commands that look for causes read, and how they show it.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/causes/question.h"
#include "apps/console/page_output.h"
#include "checkpoints/run.h"

namespace CLI {
class App;
}

namespace zoo {

struct CauseRun {
  std::filesystem::path dir, base;
  std::string checkpoint;
  std::string device = "auto";
};
/// Declares RUN, --base, --checkpoint and --device.
void add_cause_run(CLI::App& command, CauseRun& run);
/// Opens it. Activations of a model with rounded weights would be rounded, too, so the weights are in fp32.
Run open_for_causes(const CauseRun& run);

/// A text or a picture.
struct CauseInput {
  std::optional<std::string> text, image, target;
};
/// Declares --text, --image and --target.
void add_cause_input(CLI::App& command, CauseInput& input);
/// Throws UsageError for an input that the run does not read.
QuestionRequest request_of(const CauseInput& input, const Run& run);

/// The label of a token or a class between quotes, in one line and not longer than a column.
std::string shown_label(std::string_view label);
/// Prints what a model that answers has answered.
void print_answer(const Question& question);

}  // namespace zoo
