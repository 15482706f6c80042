#include "apps/use/causes/train_lens.h"

#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/console/options.h"
#include "apps/console/texts.h"
#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

constexpr auto kExtension = ".safetensors";

const std::filesystem::path& place_of_lens(const std::optional<std::filesystem::path>& out) {
  if (!out || out->extension() != kExtension)
    throw UsageError("--train: needs a place for the lens: give --out FILE.safetensors");
  if (is_there(*out) && !is_lens(*out))
    throw UsageError(
        fmt::format("--out: {} is there, and no trained lens, which alone may be replaced: name "
                    "another file",
                    out->string()));
  return *out;
}

}  // namespace

void add_train_lens(CLI::App& command, TrainLensArguments& arguments) {
  const LensTrainingOptions usual;
  command
      .add_option(
          "--train", arguments.data,
          "In place of showing a text: train an affine map for each depth on these data, which are as "
          "in the run's data, and write them to --out FILE.safetensors")
      ->option_text("FILE ...");
  command
      .add_option("--steps", arguments.steps,
                  fmt::format("--train: steps, of a batch each; default: {}", usual.steps))
      ->type_name("N")
      ->check(whole_number(1));
  command
      .add_option("--lr", arguments.lr,
                  fmt::format("--train: the learning rate, which falls linearly to 0; default: {}", usual.lr))
      ->type_name("X")
      ->check(number(0));
  command
      .add_option("--seed", arguments.seed,
                  fmt::format("--train: of the order of the batches; default: {}", usual.seed))
      ->type_name("N")
      ->check(whole_number(0));
}

void require_training(const TrainLensArguments& arguments) {
  if (!arguments.data.empty()) return;
  const char* const unused = arguments.steps  ? "--steps"
                             : arguments.lr   ? "--lr"
                             : arguments.seed ? "--seed"
                                              : nullptr;
  if (unused) throw UsageError(fmt::format("{}: is for --train: add --train FILE", unused));
}

LensTraining make_lens(const CauseRun& arguments, const TrainLensArguments& training,
                       const std::optional<std::filesystem::path>& out) {
  const auto& file = place_of_lens(out);
  const auto run = open_for_causes(arguments);
  require_alternatives(run);
  LensTrainingOptions options;
  options.steps = training.steps.value_or(options.steps);
  options.lr = training.lr.value_or(options.lr);
  if (training.seed) options.seed = static_cast<uint64_t>(*training.seed);
  const auto batches = run.batches(Split::valid, training.data, batches_for_lens(options.steps));
  auto result = train_lens(run.model(), batches, options, progress_over("training the lens", "steps"));
  result.name = run.experiment().name;
  result.data = fmt::format("{}", fmt::join(training.data, ", "));
  save_lens(file, result.lens, run.model());
  std::cerr << "lens: " << file.string() << '\n';
  return result;
}

void print(const LensTraining& training) {
  std::cout << fmt::format("{}: divergence from the model's own answer over {} places of {} held-out {}\n",
                           training.data, training.held_out_places, training.held_out_batches,
                           training.held_out_batches == 1 ? "batch" : "batches");
  constexpr auto format = "{:>5} {:>9} {:>9}\n";
  std::cout << fmt::format(format, "depth", "plain", "trained");
  for (size_t depth = 0; depth < training.after.size(); ++depth)
    std::cout << fmt::format(format, depth, fmt::format("{:.4f}", training.before[depth]),
                             fmt::format("{:.4f}", training.after[depth]));
}

}  // namespace zoo
