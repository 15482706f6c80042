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
#include "apps/arguments/options.h"
#include "apps/commands.h"
#include "base/device.h"
#include "base/error.h"
#include "comparison/report/attention_page.h"
#include "io/files.h"
#include "training/runs/run.h"

namespace zoo {
namespace {

struct AttentionArguments {
  std::filesystem::path run;
  std::string text;
  std::optional<std::string> target;
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

void show_attention(const AttentionArguments& arguments) {
  if (arguments.heads && arguments.json)
    throw UsageError("--heads contradicts --json, which has the same numbers under \"heads\"");
  const auto run = Run::open(arguments.run, parse_device(arguments.device));
  const auto report = attention_report(run, arguments.text, arguments.target);
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
  command->add_option("--text", arguments->text, "The text to read")->type_name("TEXT")->required();
  command
      ->add_option("--target", arguments->target,
                   "The answer or translation to look at; default: the model's own")
      ->type_name("TEXT");
  command->add_option("--out", arguments->out, "The page to write; default: RUN/attention.html")
      ->type_name("FILE");
  command->add_flag("--heads", arguments->heads,
                    "Also print statistics of each head: the entropy of its rows (nats), how far it looks "
                    "(tokens), its weights on the first token, the previous token and the token itself, and "
                    "for cross-attention its distance from the diagonal");
  add_json(
      *command, arguments->json,
      "One JSON document on standard output, with weights, statistics, roll-out and predictions; no page "
      "without --out");
  add_device(*command, arguments->device);
  command->callback([arguments] { show_attention(*arguments); });
}

}  // namespace zoo
