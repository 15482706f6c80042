// zoo heads: which heads look at the token before, at an earlier copy, or at what followed the copy.

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/causes/reports_json.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/use/causes/inputs.h"

namespace zoo {
namespace {

struct HeadsArguments {
  CauseRun run;
  std::optional<int64_t> length;
  bool json = false;
};

void show_heads(const HeadsArguments& arguments) {
  const auto run = open_for_causes(arguments.run);
  const auto report = head_kinds(run, {.length = arguments.length});
  if (arguments.json) {
    std::cout << to_json(report) << '\n';
    return;
  }
  constexpr auto format = "{:>5} {:>5} {:>9} {:>10} {:>10}\n";
  std::cout << fmt::format(format, "layer", "head", "previous", "duplicate", "induction");
  for (const auto& head : report.heads) {
    const auto cell = [](double share) { return fmt::format("{:.3f}", share); };
    std::cout << fmt::format(format, head.layer, head.head, cell(head.previous), cell(head.duplicate),
                             cell(head.induction));
  }
  if (report.recall)
    std::cout << fmt::format("recall of {} random tokens that are repeated: {:.3f}\n", report.length,
                             *report.recall);
}

}  // namespace

void add_heads(CLI::App& app) {
  const auto arguments = std::make_shared<HeadsArguments>();
  auto* command = app.add_subcommand(
      "heads", "Find the previous-token, duplicate-token and induction heads of a trained model");
  add_cause_run(*command, arguments->run);
  command
      ->add_option("--length", arguments->length,
                   "Random tokens that are repeated; default: 32, or less where the model sees less")
      ->type_name("N")
      ->check(whole_number(2, 1 << 16));
  add_json(*command, arguments->json);
  command->footer(
      "The model reads random tokens twice. A number is a head's mean weight: on the token before "
      "(previous), and "
      "in the second half on the same token in the first half (duplicate) and on what followed it there "
      "(induction). For a decoder, recall is the share of the second half that it predicts.");
  command->callback([arguments] { show_heads(*arguments); });
}

}  // namespace zoo
