// Models without a head, which are opened for their vectors and attention maps. Nothing is trained.

#include <fmt/format.h>

#include "base/error.h"
#include "models/families/families.h"
#include "tasks/library_tasks.h"
#include "tasks/task.h"
#include "tasks/task_checks.h"

namespace zoo {
namespace {

[[noreturn]] void fail_without_data() {
  throw UsageError(
      "the task text_features has no data to train or to evaluate on: it opens a model without a head for "
      "zoo "
      "embed, attention and inspect; to train one, choose another task and init_from");
}

class TextFeatures final : public Task {
 public:
  using Task::Task;

  ModelPurpose purpose() const override {
    const auto& special = tokenizer().special();
    return {.head = HeadKind::none, .vocab_size = tokenizer().vocab_size(), .start_token = special.bos};
  }

 private:
  std::unique_ptr<BatchSource> open(Split) override { fail_without_data(); }
};

}  // namespace

TaskType text_features() {
  TaskType type;
  type.name = "text_features";
  type.doc = "None: a model without a head, for the vectors and attention maps of texts.";
  type.make = [](const Experiment& experiment, Vocabulary vocabulary) -> std::unique_ptr<Task> {
    if (!vocabulary.tokenizer) fail_without_data();
    return std::make_unique<TextFeatures>(experiment, std::move(vocabulary));
  };
  type.validate = [](const Experiment& experiment, const Complain& complain) {
    require_shape(experiment, {FamilyShape::encoder, FamilyShape::decoder, FamilyShape::encoder_decoder},
                  "encoder, decoder or encoder_decoder", complain);
    require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
  };
  type.purpose = [](const Experiment&, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::none, .vocab_size = vocab_size, .start_token = 0};
  };
  type.layout = [](const Experiment& experiment) {
    switch (shape_of(experiment.model)) {
      case FamilyShape::encoder:
        return TextLayout::cls_tokens_sep;
      case FamilyShape::encoder_decoder:
        return TextLayout::source_and_target;
      default:
        return TextLayout::tokens;
    }
  };
  return type;
}

}  // namespace zoo
