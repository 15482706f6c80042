// zoo patch: which activations of a clean text bring its answer back in a corrupted one.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/causes/reports_json.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/use/causes/inputs.h"
#include "pages/causes/causes_page.h"

namespace zoo {
namespace {

struct PatchArguments {
  CauseRun run;
  std::string clean, corrupt;
  std::optional<std::string> target, answer, against;
  std::optional<int64_t> position;
  std::optional<std::filesystem::path> out;
  bool json = false;
};

constexpr size_t kMostRows = 12;

std::string token_at(const PatchReport& report, const Patch& patch) {
  const auto& question = report.clean;
  const bool decodes = patch.part.place.side == StackSide::decoder && !question.target_tokens.empty();
  const auto& tokens = decodes ? question.target_tokens : question.source_tokens;
  const auto position = static_cast<size_t>(patch.position.value_or(0));
  return position < tokens.size() ? shown_label(tokens[position]) : std::string();
}

void print_most(std::string_view title, const PatchReport& report, std::vector<PatchReport::Result> results) {
  std::ranges::stable_sort(results, std::ranges::greater(), &PatchReport::Result::recovered);
  if (results.size() > kMostRows) results.resize(kMostRows);
  std::cout << fmt::format("\n{:<34} {:>10}\n", title, "recovered");
  for (const auto& [patch, difference, recovered] : results) {
    const auto name = patch.position ? fmt::format("{} at {} {}", patch.part.name(), *patch.position,
                                                   token_at(report, patch))
                                     : patch.part.name();
    std::cout << fmt::format("{:<34} {:>10.3f}\n", name, recovered);
  }
}

void show_patches(const PatchArguments& arguments) {
  const auto run = open_for_causes(arguments.run);
  const auto question = [&](const std::string& text) {
    return ask(run, request_of({.text = text, .image = {}, .target = arguments.target}, run));
  };
  PatchRequest request{.place = arguments.position};
  if (arguments.answer) request.answer = output_named(run, *arguments.answer, "--answer");
  if (arguments.against) request.against = output_named(run, *arguments.against, "--against");
  auto report = patch_report(run.model(), question(arguments.clean), question(arguments.corrupt), request);
  report.name = run.experiment().name;
  if (arguments.out) write_page(*arguments.out, patch_page(report));
  if (arguments.json) {
    std::cout << to_json(report) << '\n';
    return;
  }
  const auto& label = report.clean.label;
  std::cout << fmt::format(
      "logit of {} less that of {}: {:.4f} for the clean text, {:.4f} for the corrupted one\n",
      shown_label(label(report.answer)), shown_label(label(report.against)), report.clean_difference,
      report.corrupt_difference);
  print_most("head, at all positions", report, report.heads);
  print_most("part, at one position", report, report.positions);
}

}  // namespace

void add_patch(CLI::App& app) {
  const auto arguments = std::make_shared<PatchArguments>();
  auto* command = app.add_subcommand(
      "patch",
      "Put activations of a clean text into a corrupted one, and show which bring the clean answer back");
  add_cause_run(*command, arguments->run);
  command->add_option("--clean", arguments->clean, "The text with the answer")->type_name("TEXT")->required();
  command
      ->add_option("--corrupt", arguments->corrupt,
                   "A text of the same number of tokens, with another answer")
      ->type_name("TEXT")
      ->required();
  command
      ->add_option("--target", arguments->target,
                   "Of a model that answers or translates: what it writes; it must be given")
      ->type_name("TEXT");
  command
      ->add_option("--answer", arguments->answer,
                   "The output that is followed, one token or a class; default: the clean text's likeliest")
      ->type_name("TEXT");
  command
      ->add_option("--against", arguments->against,
                   "The output whose logit is taken from it; default: the corrupted text's likeliest")
      ->type_name("TEXT");
  command
      ->add_option("--position", arguments->position,
                   "The place of the answer, from 0; default: the last one, or the first masked token")
      ->type_name("N")
      ->check(whole_number(0));
  add_page(*command, arguments->out);
  add_json(*command, arguments->json, "One JSON document on standard output, with every patch");
  command->footer(
      "Recovered is 0 where the corrupted text's answer stays and 1 where the clean one is back. Each head "
      "is "
      "patched at all positions; residual streams and sub-layers at one position.");
  command->callback([arguments] { show_patches(*arguments); });
}

}  // namespace zoo
