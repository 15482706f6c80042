// zoo ablate: what a model loses without its heads and sub-layers.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/causes/reports_json.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/texts.h"
#include "apps/use/causes/inputs.h"
#include "base/error.h"
#include "pages/causes/causes_page.h"
#include "tasks/problem.h"

namespace zoo {
namespace {

struct AblateArguments {
  CauseRun run;
  std::vector<std::string> data, reference, texts, heads, parts;
  std::vector<int64_t> positions;
  AblationBy by = AblationBy::zero;
  int64_t batches = 8;
  std::optional<int64_t> length;
  std::optional<std::string> answer;
  std::optional<std::filesystem::path> out;
  bool repeated = false, json = false;
};

/// The data that the model is measured on, and its name for people.
struct Measured {
  std::vector<Batch> batches;
  std::string name;
};

Measured measured(const AblateArguments& arguments, const Run& run) {
  if (arguments.repeated)
    return {.batches = {repeated_tokens(run, {.length = arguments.length})},
            .name = "random tokens that are repeated"};
  if (arguments.texts.empty()) {
    const auto& data = run.experiment().data;
    if (arguments.data.empty() && data.train.empty() && data.valid.empty())
      throw UsageError("the run names no data: give --data FILE, --text TEXT or --repeated");
    return {.batches = run.batches(Split::valid, arguments.data, arguments.batches),
            .name = arguments.data.empty() ? "the run's validation data"
                                           : fmt::format("{}", fmt::join(arguments.data, ", "))};
  }
  Measured result{.batches = {}, .name = fmt::format("{}", fmt::join(arguments.texts, " | "))};
  std::optional<int64_t> answer;
  if (arguments.answer) answer = output_named(run, *arguments.answer, "--answer");
  for (const auto& text : arguments.texts)
    result.batches.push_back(batch_of_question(run, ask(run, {.text = text}), answer));
  return result;
}

/// The parts of --heads and --parts.
std::vector<AblatedPart> chosen_parts(const AblateArguments& arguments) {
  std::vector<AblatedPart> parts;
  std::set<std::string> names;
  const auto add = [&](const AblatedPart& part) {
    if (!names.insert(part.name()).second)
      throw UsageError(fmt::format("{} is named twice: name each part once", part.name()));
    parts.push_back(part);
  };
  for (const auto& name : arguments.heads) {
    const auto part = ablated_part(name);
    if (!part.head) throw UsageError(fmt::format("--heads: {} is no head: give it with --parts", name));
    add(part);
  }
  for (const auto& name : arguments.parts) add(ablated_part(name));
  return parts;
}

void print(const AblationReport& report) {
  size_t width = 5;
  std::vector<std::string> names;
  for (const auto& row : report.rows) {
    std::vector<std::string> parts;
    for (const auto& part : row.parts) parts.push_back(part.name());
    names.push_back(parts.size() > 3 ? fmt::format("these {} together", parts.size())
                                     : fmt::format("{}", fmt::join(parts, " + ")));
    width = std::max(width, names.back().size());
  }
  const auto line = [&](const std::string& name, const AblationScore& score, const std::string& change) {
    std::cout << fmt::format("{:<{}}  {:>9.4f}  {:>9}", name, width, score.loss(), change);
    if (report.has_accuracy) std::cout << fmt::format("  {:>8.4f}", score.accuracy());
    std::cout << '\n';
  };
  std::cout << fmt::format("{}, {} targets, {}\n", report.data, report.whole.targets, name_of(report.by));
  std::cout << fmt::format("{:<{}}  {:>9}  {:>9}{}\n", "without", width, "loss", "change",
                           report.has_accuracy ? "  accuracy" : "");
  line("-", report.whole, "");
  for (size_t i = 0; i < report.rows.size(); ++i)
    line(names[i], report.rows[i].score,
         fmt::format("{:+.4f}", report.rows[i].score.loss() - report.whole.loss()));
}

void check(const AblateArguments& arguments) {
  const int inputs = static_cast<int>(!arguments.texts.empty()) + static_cast<int>(!arguments.data.empty()) +
                     static_cast<int>(arguments.repeated);
  if (inputs > 1) throw UsageError("--data, --text and --repeated contradict each other: give one of them");
  if (arguments.answer && arguments.texts.empty())
    throw UsageError("--answer is for --text: files say themselves what is right");
  if (arguments.length && !arguments.repeated) throw UsageError("--length is for --repeated: add it");
  if (!arguments.reference.empty() && arguments.by == AblationBy::zero)
    throw UsageError("--reference is for --by mean and --by resample: zeros need no other texts");
}

void ablate(const AblateArguments& arguments) {
  check(arguments);
  const auto run = open_for_causes(arguments.run);
  if (task_type(run.experiment()).predicts_from == PredictionInput::audio_file ||
      run.task().purpose().head == HeadKind::detection)
    throw UsageError(fmt::format(
        "a run of the task {} cannot be ablated: choose a run over texts, or one that classifies pictures",
        run.experiment().task.type));
  const auto chosen = chosen_parts(arguments);
  auto [batches, name] = measured(arguments, run);
  std::vector<Batch> references;
  if (!arguments.reference.empty())
    references = run.batches(Split::valid, arguments.reference, arguments.batches);
  const auto problem = problem_of(run.experiment());
  Ablation ablation(run.model(), std::move(batches), arguments.by, std::move(references), problem);
  AblationReport report{.name = run.experiment().name,
                        .data = name,
                        .by = arguments.by,
                        .positions = arguments.positions,
                        .has_accuracy = problem == Problem::single_label,
                        .whole = ablation.whole()};
  const auto parts = chosen.empty() ? all_parts(ablation.first_activations()) : chosen;
  for (const auto& part : parts) require_part(part, ablation.first_activations());
  const auto show = progress_over("ablating", "parts");
  for (size_t i = 0; i < parts.size(); ++i) {
    report.rows.push_back({.parts = {parts[i]}, .score = ablation.without({parts[i]}, arguments.positions)});
    show(static_cast<int64_t>(i) + 1, std::ssize(parts));
  }
  if (chosen.size() > 1)
    report.rows.push_back({.parts = chosen, .score = ablation.without(chosen, arguments.positions)});
  if (arguments.out) write_page(*arguments.out, ablation_page(report));
  if (arguments.json) {
    std::cout << to_json(report) << '\n';
    return;
  }
  print(report);
}

}  // namespace

void add_ablate(CLI::App& app) {
  const auto arguments = std::make_shared<AblateArguments>();
  auto* command =
      app.add_subcommand("ablate", "Measure what a trained model loses without heads or sub-layers");
  add_cause_run(*command, arguments->run);
  command
      ->add_option("--data", arguments->data,
                   "Files of the same kind as data.valid; default: the run's validation data")
      ->type_name("FILE");
  command->add_option("--text", arguments->texts, "A text in place of files; may be repeated")
      ->option_text("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--answer", arguments->answer,
                   "With --text: the right output at its last place, or at the first masked token; default: "
                   "what the text says, or else the model's own answer")
      ->type_name("TEXT");
  command->add_flag("--repeated", arguments->repeated,
                    "Random tokens that are repeated, as zoo heads reads them: the loss is that of the copy");
  command
      ->add_option(
          "--length", arguments->length,
          "With --repeated: random tokens that are repeated; default: 32, or less where the model sees "
          "less")
      ->type_name("N")
      ->check(whole_number(2, 1 << 16));
  command
      ->add_option(
          "--heads", arguments->heads,
          "Heads as LAYER.HEAD, from 0, such as 3.2; of a model with two sides encoder.3.2, decoder.3.2 "
          "or cross.3.2; default: every head and every sub-layer, one after the other")
      ->type_name("HEAD");
  command
      ->add_option("--parts", arguments->parts,
                   "Parts by their names, such as layers.3.attention, layers.3.feed_forward or residual.4")
      ->type_name("NAME");
  command
      ->add_option("--positions", arguments->positions,
                   "Replace activations only at these positions, from 0; default: at all")
      ->type_name("N")
      ->check(whole_number(0));
  command
      ->add_option(
          "--by", arguments->by,
          "What stands in their place: zero, mean (over the tokens of the data) or resample (those of "
          "another row)")
      ->transform(one_of<AblationBy>())
      ->option_text("WHAT")
      ->capture_default_str();
  command
      ->add_option("--reference", arguments->reference,
                   "Files whose activations --by mean and --by resample take; default: the data themselves")
      ->type_name("FILE");
  command->add_option("--batches", arguments->batches, "The most batches of the data that are read")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  add_page(*command, arguments->out);
  add_json(*command, arguments->json);
  command->footer("With several --heads or --parts, the last row is without all of them.");
  command->callback([arguments] { ablate(*arguments); });
}

}  // namespace zoo
