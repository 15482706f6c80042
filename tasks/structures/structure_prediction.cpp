// Structures of proteins from their sequences.

#include "base/error.h"
#include "models/families/families.h"
#include "tasks/library_tasks.h"
#include "tasks/structures/folded_chain.h"
#include "tasks/task.h"

namespace zoo {
namespace {

class StructurePrediction final : public Task {
 public:
  using Task::Task;

  ModelPurpose purpose() const override { return {.head = HeadKind::none}; }

 private:
  std::unique_ptr<BatchSource> open(Split) override {
    throw UsageError(
        "the task structure_prediction has no data to train or to evaluate on: it opens published models for "
        "zoo "
        "predict");
  }
};

}  // namespace

TaskType structure_prediction() {
  TaskType type;
  type.name = "structure_prediction";
  type.doc = "The atoms of a protein in space from its sequence, with an esmfold; for published models.";
  type.needs = VocabularyNeeds::nothing;
  type.unit = "residue";
  type.make = [](const Experiment& experiment, Vocabulary vocabulary) -> std::unique_ptr<Task> {
    return std::make_unique<StructurePrediction>(experiment, std::move(vocabulary));
  };
  type.validate = [](const Experiment& experiment, const Complain& complain) {
    if (experiment.model.architecture.type != "esmfold")
      complain("model.architecture", "structure_prediction needs an esmfold");
  };
  type.purpose = [](const Experiment&, int64_t) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::none};
  };
  return type;
}

}  // namespace zoo
