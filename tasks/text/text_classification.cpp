// Predicts the class of a text, its labels, or a number, with each of the three families.

#include "tasks/text/text_classification.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "models/families/families.h"
#include "tasks/labels.h"
#include "tasks/library_tasks.h"
#include "tasks/problem.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_classifier.h"
#include "tasks/text/text_tasks.h"
#include "text/text_rows.h"

namespace zoo {
namespace {

std::unique_ptr<Task> make_text_classification(const Experiment& experiment, Vocabulary vocabulary) {
  const bool as_text = class_answer(experiment) == ClassAnswer::text;
  const auto problem = problem_of(experiment);
  auto data = labelled_texts(experiment.data, problem);
  if (!vocabulary.tokenizer || vocabulary.labels.empty()) {
    const auto& rows = data.of(Split::train);
    auto fields = rows.labels;
    // A label may stand only in the rows that are for validation.
    if (is_shared(experiment.data, Split::valid))
      std::ranges::copy(data.of(Split::valid).labels, std::back_inserter(fields));
    vocabulary.labels = label_names(fields, problem, experiment.data);
    // An encoder-decoder needs the tokens of the labels, because it writes them. The other families have the
    // same tokens, so that the families are comparable.
    if (!vocabulary.tokenizer) {
      vocabulary.tokenizer = make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all,
                                                reader_of({&rows.texts, &rows.pairs, &vocabulary.labels}));
    }
  }
  return as_text ? classification_by_text(experiment, std::move(vocabulary), std::move(data))
                 : classification_by_head(experiment, std::move(vocabulary), std::move(data));
}

void validate_text_classification(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::encoder, FamilyShape::decoder, FamilyShape::encoder_decoder},
                "encoder, decoder or encoder_decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
  validate_problem(experiment, complain);
  const bool as_text = class_answer(experiment) == ClassAnswer::text;
  if (as_text && shape_of(experiment.model) != FamilyShape::encoder_decoder)
    complain("task.answer", "text is for an encoder_decoder: the other families answer by a head");
  if (as_text && problem_of(experiment) != Problem::single_label)
    complain("task.problem", "only single_label can be answered as text: set task.answer to head");
  // Other families need a tokenizer of the Hub that says what stands around a pair.
  const bool may_have_pairs = shape_of(experiment.model) == FamilyShape::encoder ||
                              (!as_text && experiment.data.tokenizer.type == TokenizerKind::hub);
  if (!experiment.data.pair_column.empty() && !may_have_pairs)
    complain("data.pair_column", "is for an encoder, which reads both texts of a pair at once");
}

}  // namespace

void describe(ConfigVisitor& v, TextClassificationConfig& c) {
  v.field("answer", c.answer,
          "How the class is said: by a head that scores the classes, or (encoder_decoder) as text; default: "
          "text in an encoder_decoder, else head.");
  describe_problem(v, c.problem);
}

ClassAnswer class_answer(const Experiment& experiment) {
  const auto usual =
      shape_of(experiment.model) == FamilyShape::encoder_decoder ? ClassAnswer::text : ClassAnswer::head;
  if (!experiment.task.options) return usual;
  return experiment.task.as<TextClassificationConfig>().answer.value_or(usual);
}

TaskType text_classification() {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
  TaskType type;
  type.name = "text_classification";
  type.doc = "The class of a text, its labels, or a number.";
  type.make_options = options_of<TextClassificationConfig>();
  type.problem = problem_in<TextClassificationConfig>;
  type.best_by = {accuracy};
  std::ranges::move(metrics_of_problems(), std::back_inserter(type.best_by));
  type.comparison = accuracy;
  type.needs = VocabularyNeeds::tokenizer_and_labels;
  type.predicts_from = PredictionInput::text;
  type.make = make_text_classification;
  type.validate = validate_text_classification;
  type.layout = [](const Experiment& experiment) {
    switch (shape_of(experiment.model)) {
      case FamilyShape::encoder:
        return TextLayout::cls_tokens_sep;
      case FamilyShape::encoder_decoder:
        return TextLayout::source_and_target;
      default:
        return TextLayout::tokens_eos;
    }
  };
  return type;
}

}  // namespace zoo
