// zoo attribute: what each token, or each part of a picture, adds to an answer, by gradients.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/causes/attribution.h"
#include "analysis/causes/reports_json.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/use/causes/inputs.h"
#include "base/error.h"
#include "pages/causes/causes_page.h"

namespace zoo {
namespace {

struct AttributeArguments {
  CauseRun run;
  CauseInput input;
  std::optional<int64_t> position, steps;
  std::optional<std::string> answer, against;
  std::optional<std::filesystem::path> out;
  std::optional<AttributionBaseline> baseline;
  AttributionBy by = AttributionBy::integrated_gradients;
  bool json = false;
};

constexpr size_t kMostSquares = 12;  // of a picture, on a terminal
constexpr double kFineError = 0.05;  // of the difference

AttributionOptions options_of(const AttributeArguments& arguments, const Run& run) {
  const bool integrates = arguments.by == AttributionBy::integrated_gradients;
  if (!integrates && (arguments.baseline || arguments.steps))
    throw UsageError("--baseline and --steps are for --by integrated_gradients: leave them out");
  AttributionOptions options{.by = arguments.by, .place = arguments.position};
  options.baseline = arguments.baseline.value_or(options.baseline);
  options.baseline_token = baseline_token(run, options.baseline);
  options.steps = arguments.steps.value_or(options.steps);
  if (arguments.answer) options.answer = output_named(run, *arguments.answer, "--answer");
  if (arguments.against) options.against = output_named(run, *arguments.against, "--against");
  return options;
}

/// A bar from the middle: to the left below zero.
std::string bar_of(double value, double most) {
  constexpr int half = 12;
  const int length = most > 0 ? static_cast<int>(std::lround(half * std::abs(value) / most)) : 0;
  std::string left(half, ' '), right;
  for (int i = 0; i < length; ++i) right += "█";
  if (value >= 0) return left + "│" + right;
  return std::string(static_cast<size_t>(half - length), ' ') + right + "│";
}

void print_tokens(const std::string& title, const std::vector<std::string>& names,
                  const std::vector<double>& values, double most) {
  std::cout << fmt::format("{:>5}  {:<18} {:>11}\n", "", title, "attribution");
  for (size_t i = 0; i < values.size(); ++i) {
    const auto name = i < names.size() ? shown_label(names[i]) : std::string();
    std::cout << fmt::format("{:>5}  {:<18} {:>11.4f}  {}\n", i, name, values[i], bar_of(values[i], most));
  }
}

/// The parts of a picture that add or take most.
void print_picture(const AttributionReport& report, double most) {
  std::vector<size_t> order(report.source.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return std::abs(report.source[i]); });
  if (order.size() > kMostSquares) order.resize(kMostSquares);
  const auto columns = static_cast<size_t>(report.picture->columns);
  std::cout << fmt::format("{:<18} {:>11}\n", "part", "attribution");
  for (const size_t i : order) {
    std::cout << fmt::format("{:<18} {:>11.4f}  {}\n",
                             fmt::format("row {} column {}", i / columns, i % columns), report.source[i],
                             bar_of(report.source[i], most));
  }
  if (report.source.size() > order.size())
    std::cout << fmt::format("and {} others\n", report.source.size() - order.size());
}

void print_sum(const AttributionReport& report) {
  if (report.options.by != AttributionBy::integrated_gradients) {
    std::cout << fmt::format("sum {:.4f}; the score is {:.4f}\n", report.sum(), report.score);
    return;
  }
  const double difference = report.score - report.baseline_score, error = report.completeness_error();
  std::cout << fmt::format("sum {:.4f}; the score is {:.4f}, {:.4f} for the baseline: error {:+.4f}\n",
                           report.sum(), report.score, report.baseline_score, error);
  if (std::abs(error) > kFineError * std::abs(difference))
    std::cout << fmt::format("the integral misses {:.0f} % of the difference: give more --steps than {}\n",
                             100 * std::abs(error / difference), report.options.steps);
}

void show_attribution(const AttributeArguments& arguments) {
  const auto run = open_for_causes(arguments.run);
  auto question = ask(run, request_of(arguments.input, run));
  auto report = attribution_report(run.model(), std::move(question), options_of(arguments, run));
  report.name = run.experiment().name;
  if (arguments.out) write_page(*arguments.out, attribution_page(report));
  if (arguments.json) {
    std::cout << to_json(report) << '\n';
    return;
  }
  print_answer(report.question);
  std::cout << describe(report) << '\n';
  double most = 0;
  for (const auto* const values : {&report.source, &report.target})
    for (const double value : *values) most = std::max(most, std::abs(value));
  if (report.picture) {
    print_picture(report, most);
  } else {
    if (!report.source.empty())
      print_tokens(report.target.empty() ? "token" : "source", report.question.source_tokens, report.source,
                   most);
    if (!report.target.empty()) print_tokens("target", report.target_names, report.target, most);
  }
  print_sum(report);
}

}  // namespace

void add_attribute(CLI::App& app) {
  const auto arguments = std::make_shared<AttributeArguments>();
  auto* command = app.add_subcommand(
      "attribute", "Show by gradients what each token, or each part of a picture, adds to an answer");
  add_cause_run(*command, arguments->run);
  add_cause_input(*command, arguments->input);
  command
      ->add_option("--by", arguments->by,
                   "The gradients: integrated_gradients, from a baseline to the input, or gradient_input, of "
                   "one pass, times the input")
      ->transform(one_of<AttributionBy>())
      ->option_text("WHAT")
      ->capture_default_str();
  command
      ->add_option(
          "--baseline", arguments->baseline,
          "The input without content: zero (vectors of zeros, or a picture of the mean colour), mean "
          "(the mean of all token vectors, or of the picture), or the token pad or mask; default: zero")
      ->transform(one_of<AttributionBaseline>())
      ->option_text("WHAT");
  command->add_option("--steps", arguments->steps, "Points between baseline and input; default: 50")
      ->type_name("N")
      ->check(whole_number(1, 10'000));
  command
      ->add_option("--position", arguments->position,
                   "The place of the answer, from 0; default: the last one, or the first masked token")
      ->type_name("N")
      ->check(whole_number(0));
  command
      ->add_option(
          "--answer", arguments->answer,
          "The output whose logit is explained, one token or a class; default: the right one, or the "
          "model's own")
      ->type_name("TEXT");
  command
      ->add_option("--against", arguments->against,
                   "Another output, whose logit is taken from it: why this one and not that one")
      ->type_name("TEXT");
  add_page(*command, arguments->out);
  add_json(*command, arguments->json);
  command->footer(
      "The sum of integrated gradients is the logit of the input minus the logit of the baseline. The error "
      "is what the sum of --steps points misses of it.");
  command->callback([arguments] { show_attribution(*arguments); });
}

}  // namespace zoo
