// zoo evaluate: measures a trained model on validation, test or other data. A translation model also
// translates the data.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "apps/console/commands.h"
#include "apps/console/long_work.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "apps/use/choice_arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/guess.h"
#include "data/data_config.h"
#include "generation/generation_config.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/metrics_log.h"
#include "io/output_file.h"
#include "io/progress.h"
#include "tasks/examples.h"
#include "tasks/preparation.h"

namespace zoo {
namespace {

struct EvaluateArguments {
  RunArguments run;
  ChoiceArguments choices;
  std::vector<std::string> data;
  Split split = Split::valid;
  std::optional<int64_t> beam, max_new_tokens;
  std::optional<double> length_penalty;
  std::optional<std::filesystem::path> translations, examples;
  bool json = false;
};

/// What is printed.
struct Evaluation {
  Metrics metrics;
  std::string data;                        // its name
  torch::Tensor confusion;                 // (C, C) int64, or undefined: see EvaluationOptions
  std::vector<std::string> labels;         // C
  std::vector<ClassMetrics> classes = {};  // of a task that finds objects, or of speakers
  const char* group = "class";             // what those are
};

/// One row for each class or speaker (`group`), with its metrics; one may lack some that others have.
std::string classes_text(const std::vector<ClassMetrics>& classes, const char* group) {
  constexpr size_t most_letters = 24, width = 10;
  if (classes.empty()) return {};
  std::set<std::string> names;
  for (const auto& each : classes)
    for (const auto& [name, value] : each.metrics) names.insert(name);
  const auto cell = [](const std::string& name, const Metrics& metrics) {
    const auto found = metrics.find(name);
    if (found == metrics.end()) return std::string("–");
    return is_count(name) ? fmt::format("{:.0f}", found->second) : fmt::format("{:.4f}", found->second);
  };
  std::string text = fmt::format("\n{:<{}}", group, most_letters);
  for (const auto& name : names) text += fmt::format("{:>{}}", name, width + 2);
  text += '\n';
  for (const auto& [label, metrics] : classes) {
    text += fmt::format("{:<{}}", excerpt(label, most_letters - 1), most_letters);
    for (const auto& name : names) text += fmt::format("{:>{}}", cell(name, metrics), width + 2);
    text += '\n';
  }
  return text;
}

/// One row for each class, with how often each class was predicted; empty if there are too many classes for a
/// terminal.
std::string confusion_text(const Evaluation& evaluation) {
  constexpr int64_t most_classes = 20;
  constexpr size_t most_letters = 14;
  const int64_t n = evaluation.confusion.defined() ? evaluation.confusion.size(0) : 0;
  if (n == 0 || n > most_classes) return {};
  std::string header;
  for (int64_t i = 0; i < n; ++i) header += fmt::format(" {:>6}", fmt::format("[{}]", i + 1));
  auto text = fmt::format("\n{:<{}}{}  (predicted class)\n", "class", most_letters + 6, header);
  for (int64_t i = 0; i < n; ++i) {
    text += fmt::format(
        "{:<{}}",
        fmt::format("[{}] {}", i + 1, excerpt(evaluation.labels[static_cast<size_t>(i)], most_letters)),
        most_letters + 6);
    for (int64_t j = 0; j < n; ++j) text += fmt::format(" {:>6}", evaluation.confusion[i][j].item<int64_t>());
    text += '\n';
  }
  return text;
}

std::string as_json(const Evaluation& evaluation, const Run& run) {
  const auto& [metrics, data, confusion, labels, classes, group] = evaluation;
  nlohmann::json document{{"data", data}, {"weights", name_of(run.weight_format())}};
  for (const auto& [name, value] : metrics) {
    if (is_count(name)) {
      document[name] = static_cast<int64_t>(value);
    } else {
      document[name] = value;
    }
  }
  if (confusion.defined()) document["confusion"] = confusion_json(confusion, labels);
  const auto many = std::string(group) == "class" ? "classes" : std::string(group) + "s";
  for (const auto& [label, numbers] : classes) {
    auto& entry = document[many].emplace_back(nlohmann::json{{"label", label}});
    for (const auto& [name, value] : numbers) entry[name] = value;
  }
  return shown_json(document);
}

std::string as_text(const Evaluation& evaluation) {
  const auto& [metrics, data, confusion, labels, classes, group] = evaluation;
  size_t width = std::string_view("data").size();
  for (const auto& [name, value] : metrics) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}}  {}\n", "data", width, data);
  for (const auto& [name, value] : metrics) {
    text += is_count(name) ? fmt::format("{:<{}}  {:.0f}\n", name, width, value)
                           : fmt::format("{:<{}}  {}\n", name, width, metric_text(value));
  }
  return text + confusion_text(evaluation) + classes_text(classes, group);
}

void refuse_options_of_translation(const EvaluateArguments& arguments, const TaskType& type) {
  const auto refuse = [&](const char* option, bool given) {
    if (given)
      throw UsageError(fmt::format("{} is for text_to_text, and this run's task is {}", option, type.name));
  };
  refuse("--beam", arguments.beam.has_value());
  refuse("--length-penalty", arguments.length_penalty.has_value());
  refuse("--max-new-tokens", arguments.max_new_tokens.has_value());
  refuse("--translations", arguments.translations.has_value());
}

/// The run's `generation:` values, overridden by the command line.
GenerationConfig generation_of(const EvaluateArguments& arguments, GenerationConfig options) {
  options.beam = arguments.beam.value_or(options.beam);
  options.length_penalty = arguments.length_penalty.value_or(options.length_penalty);
  if (arguments.max_new_tokens) options.max_new_tokens = arguments.max_new_tokens;
  options.num_samples = 1;
  check(options);
  if (arguments.length_penalty && options.beam == 1)
    throw UsageError("--length-penalty is for beam search: add --beam N");
  return options;
}

/// Shows a line of progress on stderr.
Translations translate(const Run& run, const EvaluateArguments& arguments,
                       const GenerationConfig& generation) {
  std::optional<Progress> progress;
  const auto show = [&](int64_t done, int64_t all) {
    if (!progress) progress.emplace("translating", ProgressCount{.total = all, .unit = "lines"});
    progress->update(done, "");
  };
  return run.translate(arguments.split, arguments.data, {.generation = generation, .on_progress = show});
}

/// A file that cannot be written fails here, before everything is evaluated.
void check_output(const std::optional<std::filesystem::path>& file) {
  if (file) OutputFile(*file, OutputFile::Mode::kAppend, Follow::everything).close();
}

/// BLEU and chrF of the run's translations, which become the predictions of the examples, if there are any.
Metrics evaluate_translations(const Run& run, const EvaluateArguments& arguments,
                              const GenerationConfig& generation, std::vector<ExampleScore>& examples) {
  const auto translations = translate(run, arguments, generation);
  if (arguments.translations) {
    std::string text;
    for (const auto& line : translations.outputs) text += line + "\n";
    write_file_atomically(*arguments.translations, text, Follow::everything);
  }
  for (size_t i = 0; i < examples.size(); ++i) {
    examples[i].prediction = translations.outputs.at(i);
    examples[i].right = examples[i].prediction == examples[i].target;
  }
  return translation_metrics(translations);
}

std::string names_of(const std::vector<ConfigPath>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.text);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Says on stderr that the model is no better than a guess.
void note_guess(const Run& run, Split split, double loss) {
  // The guess needs the frequencies of the training data.
  if (const auto reading = reading_note(run.experiment().data, Split::train)) std::cerr << *reading << '\n';
  const auto guess = guess_losses(run.task(), split);
  if (const auto note = guess ? guess_note(loss, *guess) : std::nullopt)
    std::cerr << "note: " << *note << '\n';
}

/// The files of --data, or the split and its files as the configuration names them: "test: test.txt",
/// "valid: 10 % of text.txt".
std::string data_name(const EvaluateArguments& arguments, const DataConfig& data) {
  if (!arguments.data.empty()) return fmt::format("{}", fmt::join(arguments.data, ", "));
  if (arguments.split == Split::valid && data.valid.empty())
    return fmt::format("valid: {:g} % of {}", 100 * data.valid_fraction, names_of(data.train));
  return fmt::format("{}: {}", name_of(arguments.split),
                     names_of(arguments.split == Split::valid ? data.valid : data.test));
}

/// Says on stderr that reading the data takes long, if it does.
void note_reading(const EvaluateArguments& arguments, const DataConfig& data) {
  auto read = data;
  if (!arguments.data.empty()) read.test.assign(arguments.data.begin(), arguments.data.end());
  const auto split = arguments.data.empty() ? arguments.split : Split::test;
  if (const auto note = reading_note(read, split)) std::cerr << *note << '\n';
}

void print(const EvaluateArguments& arguments, const Evaluation& result, const Run& run) {
  std::cout << (arguments.json ? as_json(result, run) + "\n" : as_text(result));
}

void write_examples(const EvaluateArguments& arguments, const std::vector<ExampleScore>& examples) {
  if (arguments.examples)
    write_file_atomically(*arguments.examples, to_json_lines(examples), Follow::everything);
}

void ask(const EvaluateArguments& arguments, const Run& run) {
  const auto task = task_of_choices(run, arguments.choices);
  check_output(arguments.examples);
  std::vector<ExampleScore> examples;
  const Evaluation result{
      .metrics = task->evaluate(run.model(), Split::test,
                                {.examples = arguments.examples ? &examples : nullptr,
                                 .on_progress = progress_on_terminal("evaluating", "batches")}),
      .data = fmt::format("{}", fmt::join(arguments.choices.files, ", ")),
      .confusion = {},
      .labels = {}};
  write_examples(arguments, examples);
  print(arguments, result, run);
}

void run(const EvaluateArguments& arguments) {
  const auto trained = open_run(arguments.run);
  if (!arguments.choices.files.empty()) return ask(arguments, trained);
  const auto& experiment = trained.experiment();
  const auto& type = task_type(experiment);
  const bool translates = type.predicts == PredictionKind::answers;
  if (!translates) refuse_options_of_translation(arguments, type);
  const auto generation = generation_of(arguments, experiment.generation);
  Evaluation result{.metrics = {},
                    .data = data_name(arguments, experiment.data),
                    .confusion = {},
                    .labels = trained.labels()};
  if (type.predicts_from == PredictionInput::audio_file) result.group = "speaker";
  note_reading(arguments, experiment.data);
  check_output(arguments.examples);
  check_output(arguments.translations);
  std::vector<ExampleScore> examples;
  result.metrics = trained.evaluate(arguments.split, arguments.data,
                                    {.confusion = &result.confusion,
                                     .classes = &result.classes,
                                     .examples = arguments.examples ? &examples : nullptr,
                                     .on_progress = progress_on_terminal("evaluating", "batches")});
  if (translates) result.metrics.merge(evaluate_translations(trained, arguments, generation, examples));
  write_examples(arguments, examples);
  if (arguments.data.empty()) note_guess(trained, arguments.split, result.metrics.at("loss"));
  print(arguments, result, trained);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  const auto arguments = std::make_shared<EvaluateArguments>();
  arguments->run.automatic = AutomaticWeights::by_precision;
  auto* command = app.add_subcommand("evaluate", "Measure a trained model on validation, test or other data");
  add_run(*command, arguments->run.dir);
  auto* data =
      command
          ->add_option("--data", arguments->data, "Files of the same kind as data.valid, instead of a split")
          ->type_name("FILE");
  auto* split = command
                    ->add_option("--split", arguments->split,
                                 "valid (default) or test, as the run's configuration names them; not with "
                                 "--data")
                    ->transform(one_of<Split>({Split::valid, Split::test}))
                    ->option_text("SPLIT")
                    ->excludes(data);
  auto* choices = add_choices(*command, arguments->choices)->excludes(data)->excludes(split);
  command
      ->add_option("--beam", arguments->beam,
                   "text_to_text: beams of beam search; 1 = greedy; default: the run's generation.beam")
      ->type_name("N")
      ->check(whole_number(1, 1024))
      ->excludes(choices);
  command
      ->add_option("--length-penalty", arguments->length_penalty,
                   "text_to_text: hypotheses are ranked by log-probability / length^A")
      ->type_name("A")
      ->check(number())
      ->excludes(choices);
  command
      ->add_option("--max-new-tokens", arguments->max_new_tokens,
                   "text_to_text: most tokens of one translation, within data.target_length")
      ->type_name("N")
      ->check(whole_number(1))
      ->excludes(choices);
  command
      ->add_option("--translations", arguments->translations,
                   "text_to_text: write the translations to this file, one per line; pairs with a blank side "
                   "are not part of the data and have no line")
      ->type_name("FILE")
      ->excludes(choices);
  command
      ->add_option(
          "--examples", arguments->examples,
          "Write a line of JSON for each document, pair, picture, recording or question to this file: input, "
          "target, prediction, loss (the sum over its targets), targets, bytes, right; of a question also "
          "answer, chosen, chosen_norm and log_likelihoods")
      ->type_name("FILE");
  add_base(*command, arguments->run.base);
  add_checkpoint(*command, arguments->run.checkpoint);
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  add_json(*command, arguments->json);
  command->footer(
      "For text_to_text, bleu and chrf are as in sacreBLEU: case:mixed|eff:no|tok:13a|smooth:exp, chrF2.");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zoo
