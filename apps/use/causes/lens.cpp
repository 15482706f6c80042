// zoo lens: what a model would say after each of its layers, and what adds to its answer.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/causes/reports_json.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "apps/use/causes/inputs.h"
#include "apps/use/causes/train_lens.h"
#include "base/error.h"
#include "base/text.h"
#include "pages/causes/causes_page.h"

namespace zoo {
namespace {

struct LensArguments {
  CauseRun run;
  CauseInput input;
  std::optional<int64_t> position;
  std::optional<std::string> answer;
  std::optional<std::filesystem::path> lens, out;
  TrainLensArguments training;
  bool json = false;
};

constexpr size_t kLabelBytes = 16;
constexpr size_t kMostParts = 12;  // of a logit, on a terminal

/// One row for each depth at one place.
void print_depths(const LensReport& report, int64_t place) {
  const auto& question = report.question;
  std::cout << fmt::format("place {}, {}: the answer {}{}\n", place,
                           shown_label(question.places[static_cast<size_t>(place)]),
                           shown_label(question.label(question.targets[static_cast<size_t>(place)])),
                           report.kind == LensKind::trained ? ", by a trained lens" : "");
  constexpr auto format = "{:>5}  {:<18} {:>11}  {:>11} {:>7} {:>11}\n";
  std::cout << fmt::format(format, "depth", "likeliest", "probability", "answer's", "rank", "divergence");
  for (size_t depth = 0; depth < report.depths.size(); ++depth) {
    const auto& cell = report.depths[depth][static_cast<size_t>(place)];
    std::cout << fmt::format(format, depth, shown_label(cell.likeliest.front().label),
                             fmt::format("{:.4f}", cell.likeliest.front().probability),
                             fmt::format("{:.4f}", cell.probability), cell.rank,
                             fmt::format("{:.4f}", cell.divergence));
  }
}

/// The parts that add or take most.
void print_contributions(const LensContributions& found, const Question& question) {
  if (!found.reason.empty()) {
    std::cout << fmt::format("\nno parts of the answer: {}\n", found.reason);
    return;
  }
  auto parts = found.contributions.parts;
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const auto& part) { return std::abs(part.logit); });
  std::cout << fmt::format("\nthe logit of {}, {:.4f}, is the sum of\n",
                           shown_label(question.label(found.output)), found.contributions.logit);
  double others = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i >= kMostParts) {
      others += parts[i].logit;
      continue;
    }
    std::cout << fmt::format("{:>10.4f}  {}\n", parts[i].logit, parts[i].name);
  }
  if (parts.size() > kMostParts)
    std::cout << fmt::format("{:>10.4f}  {} others\n", others, parts.size() - kMostParts);
}

/// Throws UsageError for options that a training does not read.
void require_no_input(const LensArguments& arguments) {
  const auto& [text, image, target] = arguments.input;
  const char* const other = text                 ? "--text"
                            : image              ? "--image"
                            : target             ? "--target"
                            : arguments.position ? "--position"
                            : arguments.answer   ? "--answer"
                            : arguments.lens     ? "--lens"
                                                 : nullptr;
  if (other)
    throw UsageError(fmt::format(
        "{} contradicts --train: train the lens first, and then show it with --lens FILE", other));
}

void show_lens(const LensArguments& arguments) {
  require_training(arguments.training);
  if (!arguments.training.data.empty()) {
    require_no_input(arguments);
    const auto training = make_lens(arguments.run, arguments.training, arguments.out);
    if (!arguments.json) return print(training);
    std::cout << to_json(training) << '\n';
    return;
  }
  const auto run = open_for_causes(arguments.run);
  require_alternatives(run);
  auto question = ask(run, request_of(arguments.input, run));
  const int64_t place = arguments.position.value_or(question.place);
  require_place(question, place, "--position");
  if (arguments.answer)
    question.targets[static_cast<size_t>(place)] = output_named(run, *arguments.answer, "--answer");
  LensOptions options;
  if (arguments.lens) options.lens = load_lens(*arguments.lens, run.model());
  auto report = lens_report(run.model(), std::move(question), options);
  report.name = run.experiment().name;
  const auto contributions = lens_contributions(run.model(), report.question, place);
  if (arguments.out) write_page(*arguments.out, lens_page(report, contributions));
  if (arguments.json) {
    std::cout << to_json(report, contributions) << '\n';
    return;
  }
  print_answer(report.question);
  print_depths(report, place);
  print_contributions(contributions, report.question);
}

}  // namespace

void add_lens(CLI::App& app) {
  const auto arguments = std::make_shared<LensArguments>();
  auto* command = app.add_subcommand(
      "lens",
      "Show what a trained model would say after each of its layers, and which parts add to its answer");
  add_cause_run(*command, arguments->run);
  add_cause_input(*command, arguments->input);
  command
      ->add_option("--position", arguments->position,
                   "The place that is shown, from 0; default: the last one, or the first masked token")
      ->type_name("N")
      ->check(whole_number(0));
  command
      ->add_option(
          "--answer", arguments->answer,
          "The output that is followed at this place, one token or a class; default: the right one, or "
          "the model's own")
      ->type_name("TEXT");
  command
      ->add_option(
          "--lens", arguments->lens,
          "A lens that was trained for this model (--train): the vectors after each layer go through "
          "its maps")
      ->type_name("FILE");
  add_train_lens(*command, arguments->training);
  command
      ->add_option("--out", arguments->out,
                   "Also write a page, one HTML file; with --train: where the lens is written")
      ->type_name("FILE")
      ->check(writable_file());
  add_json(*command, arguments->json, "One JSON document on standard output, with every place");
  command->footer(
      "A row is what the final norm and the head make of the vectors after so many layers: the likeliest "
      "output, "
      "and of the answer its probability and rank; divergence is the Kullback-Leibler divergence from the "
      "model's "
      "own answer, in nats. The parts of the logit are the embedding, each head and each sub-layer. --train "
      "lowers this divergence by an affine map for each depth (the tuned lens, Belrose et al. 2023), and "
      "prints "
      "it for both lenses over every fifth batch, which is held out.");
  command->callback([arguments] { show_lens(*arguments); });
}

}  // namespace zoo
