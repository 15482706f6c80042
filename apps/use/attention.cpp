// zoo attention: where a trained model looks, as a page or as numbers.

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/attention_maps.h"
#include "analysis/attention_statistics.h"
#include "analysis/image_attention.h"
#include "analysis/recording_attention.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/page_output.h"
#include "apps/console/run_arguments.h"
#include "base/device.h"
#include "base/error.h"
#include "checkpoints/run.h"
#include "io/files.h"
#include "pages/attention/attention_page.h"

namespace zoo {
namespace {

struct AttentionArguments {
  std::filesystem::path run, base;
  std::optional<std::string> text, target, image, audio;
  std::optional<std::filesystem::path> out;
  bool heads = false, json = false;
  std::string device = "auto";
};

/// Prints one row per head.
void print_heads(const std::vector<HeadStatistics>& heads) {
  const auto cell = [](std::optional<double> value) { return value ? fmt::format("{:.2f}", *value) : "-"; };
  constexpr auto format = "{:<9} {:>5} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>13}\n";
  std::cout << fmt::format(format, "attention", "layer", "head", "entropy", "distance", "first", "previous",
                           "itself", "off-diagonal");
  for (const auto& head : heads) {
    std::cout << fmt::format(format, name_of(head.kind), head.layer, head.head, cell(head.entropy),
                             cell(head.distance), cell(head.first), cell(head.previous), cell(head.itself),
                             cell(head.alignment_error));
  }
}

/// The report of the text, the picture or the recording that the arguments name.
AttentionReport report_of(const AttentionArguments& arguments, const Run& run) {
  if (arguments.text) require_input(run, PredictionInput::text, "--text");
  if (arguments.audio) {
    require_input(run, PredictionInput::audio_file, "--audio");
    return recording_attention_report(run, *arguments.audio);
  }
  if (!arguments.image) return attention_report(run, *arguments.text, arguments.target);
  require_input(run, PredictionInput::image_file, "--image");
  return image_attention_report(run, *arguments.image);
}

void check(const AttentionArguments& arguments) {
  const char* const file = arguments.image ? "--image" : "--audio";
  if (arguments.text && (arguments.image || arguments.audio))
    throw UsageError(fmt::format("{} contradicts --text: give one of them", file));
  if (arguments.image && arguments.audio) throw UsageError("--audio contradicts --image: give one of them");
  if (!arguments.text && !arguments.image && !arguments.audio) {
    throw UsageError(
        "--text is required, or --image for a run that reads images, --audio for one that reads recordings");
  }
  if (arguments.target && arguments.audio)
    throw UsageError("--target contradicts --audio: the model writes down what is said");
  if (arguments.target && arguments.image)
    throw UsageError("--target contradicts --image: a picture has no answer");
  if (arguments.heads && arguments.json)
    throw UsageError("--heads contradicts --json, which has the same numbers under \"heads\"");
}

void show_attention(const AttentionArguments& arguments) {
  check(arguments);
  const auto device = parse_device(arguments.device);
  note_large_weights(arguments.run);
  const auto run = Run::open(arguments.run, device, WeightFormat::fp32, arguments.base);
  const auto report = report_of(arguments, run);
  if (arguments.json) std::cout << to_json(report) << '\n';
  if (arguments.json && !arguments.out) return;
  const auto path = arguments.out.value_or(run.dir() / "attention.html");
  write_file_atomically(path, attention_page(report), arguments.out ? Follow::everything : Follow::nothing);
  if (!arguments.json && report.answers())
    std::cout << "“" << report.text << "” → “" << report.target << "”\n";
  if (arguments.heads) print_heads(head_statistics(report));
  (arguments.json ? std::cerr : std::cout) << "attention maps: " << path.string() << '\n';
}

}  // namespace

void add_attention(CLI::App& app) {
  const auto arguments = std::make_shared<AttentionArguments>();
  auto* command = app.add_subcommand(
      "attention",
      "Show where a trained model looks and what it predicts at each position: on a page or as numbers");
  add_run(*command, arguments->run);
  add_base(*command, arguments->base);
  command->add_option("--text", arguments->text, "The text to read")->type_name("TEXT");
  command
      ->add_option("--image", arguments->image,
                   "The picture to look at (PNG, JPEG, WebP), for a run that reads images")
      ->type_name("FILE");
  command
      ->add_option("--audio", arguments->audio,
                   "The recording to look at (WAV, FLAC), for a run that reads recordings")
      ->type_name("FILE");
  command
      ->add_option("--target", arguments->target,
                   "The answer or translation to look at; default: the model's own")
      ->type_name("TEXT");
  command->add_option("--out", arguments->out, "The page to write; default: RUN/attention.html")
      ->type_name("FILE")
      ->check(writable_file());
  command->add_flag("--heads", arguments->heads,
                    "Also print statistics of each head: the entropy of its rows (nats), how far it looks "
                    "(tokens, or places of a picture), its weights on the first token, the previous token "
                    "and the token itself, and for cross-attention its distance from the diagonal");
  add_json(*command, arguments->json,
           "One JSON document on standard output, with weights, statistics, roll-out and predictions; no "
           "page without --out");
  add_device(*command, arguments->device);
  command->callback([arguments] { show_attention(*arguments); });
}

}  // namespace zoo
