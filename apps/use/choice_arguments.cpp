#include "apps/use/choice_arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/options.h"
#include "base/error.h"
#include "tasks/text/choice_scores.h"

namespace zoo {

CLI::Option* add_choices(CLI::App& command, ChoiceArguments& arguments) {
  auto* const choices =
      command
          .add_option("--choices", arguments.files,
                      "Files of questions (NAME.jsonl: context, choices, answer), which any model that "
                      "writes answers by the likelihood of each choice, as lm-evaluation-harness does: acc, "
                      "acc_norm and bits per byte")
          ->type_name("FILE");
  command
      .add_option("--shots", arguments.shots,
                  "--choices: questions with their answers that stand before each question: the first N of "
                  "--shots-from; default 0")
      ->type_name("N")
      ->check(whole_number(0, 1000))
      ->needs(choices);
  command.add_option("--shots-from", arguments.shots_from, "--choices: files of those questions")
      ->type_name("FILE")
      ->needs(choices);
  command
      .add_option("--delimiter", arguments.delimiter,
                  "--choices: what stands between a context and a choice; default a blank")
      ->option_text("TEXT")
      ->needs(choices);
  command
      .add_option("--separator", arguments.separator,
                  "--choices: what stands between questions; default two line ends")
      ->option_text("TEXT")
      ->needs(choices);
  return choices;
}

std::unique_ptr<Task> task_of_choices(const Run& run, const ChoiceArguments& arguments) {
  require_likelihoods(run.model());
  auto experiment = run.experiment();
  const bool has_questions = experiment.task == "choices";
  experiment.task = task_types().select("choices");
  auto& data = experiment.data;
  data.test.assign(arguments.files.begin(), arguments.files.end());
  auto& choices = data.choices;
  choices.files.clear();
  choices.shots = arguments.shots.value_or(choices.shots);
  if (!arguments.shots_from.empty())
    choices.shots_from.assign(arguments.shots_from.begin(), arguments.shots_from.end());
  choices.delimiter = arguments.delimiter.value_or(choices.delimiter);
  choices.separator = arguments.separator.value_or(choices.separator);
  if (choices.shots > 0 && choices.shots_from.empty() && !has_questions)
    throw UsageError("--shots: name the file of the questions that stand before others with --shots-from");
  if (choices.shots == 0 && !arguments.shots_from.empty())
    throw UsageError("--shots-from: say with --shots how many of its questions stand before others");
  return task_with_vocabulary(experiment, run.task().vocabulary());
}

}  // namespace zoo
