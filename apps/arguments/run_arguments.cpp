#include "apps/arguments/run_arguments.h"

#include <fmt/format.h>

#include "base/device.h"
#include "base/error.h"

namespace zoo {

Run open_run(const RunArguments& arguments) {
  auto run = Run::open(arguments.dir, parse_device(arguments.device));
  store_weights(run.model(), arguments.weights.value_or(run.experiment().generation.weights));
  return run;
}

void require_input(const Run& run, PredictionInput input, std::string_view option) {
  const bool reads_images = task_type(run.experiment()).predicts_from == PredictionInput::image_file;
  if (reads_images == (input == PredictionInput::image_file)) return;
  throw UsageError(fmt::format("{}: {} reads {}", option, run.dir().string(),
                               reads_images ? "images: use --image" : "texts: use --text"));
}

}  // namespace zoo
