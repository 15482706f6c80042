#include "apps/console/run_arguments.h"

#include <algorithm>
#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/device.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "models/stack.h"

namespace zoo {

void add_checkpoint(CLI::App& command, std::string& checkpoint) {
  command
      .add_option(
          "--checkpoint", checkpoint,
          "Which weights of the run: best (those that training.best_by has chosen; the default), last, or "
          "step-N, a checkpoint that the run has kept")
      ->option_text("best|last|step-N");
}

std::filesystem::path with_checkpoint(const std::filesystem::path& run, const std::string& checkpoint) {
  if (checkpoint.empty() || checkpoint == "best") return run;
  if (!is_run(run)) throw UsageError(fmt::format("--checkpoint: {} is not a run", run.string()));
  std::vector<std::string> names{"best"};
  const auto all = checkpoints_of(run);
  if (!all.empty()) names.emplace_back("last");
  for (const auto& one : all) names.push_back(one.filename().string());
  if (std::ranges::find(names, checkpoint) == names.end())
    throw UsageError(fmt::format("--checkpoint: {} has no checkpoint '{}'; there are: {}", run.string(),
                                 excerpt(checkpoint), fmt::join(names, ", ")));
  return run / "checkpoints" / checkpoint;
}

void note_chosen_weights(std::string_view beginning, WeightFormat chosen, WeightFormat own) {
  if (chosen == own) return;
  std::cerr << fmt::format(
      "note: {} in {} on this GPU; --weights {} computes with them as the model has them\n", beginning,
      name_of(chosen), name_of(own));
}

Run open_run(const RunArguments& arguments) {
  const auto device = parse_device(arguments.device);
  const auto dir = with_checkpoint(arguments.dir, arguments.checkpoint);
  note_large_weights(dir);
  auto run = Run::open(dir, device, WeightChoice(arguments.weights, arguments.automatic), arguments.base);
  const auto wanted = arguments.weights.value_or(run.experiment().generation.weights);
  if (const auto format = fast_format(wanted, device); format != wanted) {
    std::cerr << fmt::format("note: {} is not fast on this machine, so the weights are stored in {}\n",
                             name_of(wanted), name_of(format));
  }
  if (!arguments.weights)
    note_chosen_weights("the weights are stored", run.weight_format(), run.experiment().generation.weights);
  store_cache(run.model(), arguments.cache.value_or(run.experiment().generation.cache));
  return run;
}

void note_large_weights(const std::filesystem::path& model) {
  if (const auto note = weights_note(model)) std::cerr << *note << '\n';
}

void require_no_base(const std::filesystem::path& base) {
  if (!base.empty()) throw UsageError("--base is for an adapter of PEFT, and this is a configuration");
}

void require_input(const Run& run, PredictionInput input, std::string_view option) {
  const auto kind_of = [](PredictionInput read) {
    return read == PredictionInput::nothing ? PredictionInput::text : read;  // tasks on texts that write
  };
  const auto reads = kind_of(task_type(run.experiment()).predicts_from);
  if (reads == kind_of(input)) return;
  const char* const advice = reads == PredictionInput::image_file   ? "images: use --image"
                             : reads == PredictionInput::audio_file ? "recordings: use --audio"
                                                                    : "texts: use --text";
  throw UsageError(fmt::format("{}: {} reads {}", option, run.dir().string(), advice));
}

}  // namespace zoo
