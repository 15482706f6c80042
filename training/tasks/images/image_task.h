#pragma once
// What the tasks that predict from images share.

#include <cstdint>
#include <optional>

#include "io/config/describe.h"
#include "models/model.h"
#include "training/tasks/experiment.h"
#include "training/tasks/vocabulary.h"

namespace zoo {

/// The key n_classes of such a task.
void describe_n_classes(ConfigVisitor& v, std::optional<int64_t>& n_classes);

/// Throws DataError if the configuration asks for another number of classes than the training data have.
void require_n_classes(std::optional<int64_t> wanted, const Vocabulary& vocabulary);

/// The purpose of a model with this head, for images as data.images describes them.
ModelPurpose image_purpose(const Experiment& experiment, HeadKind head, int64_t n_classes);

}  // namespace zoo
