#pragma once
// What the tasks that predict from images share.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image.h"
#include "data/images/pixel_statistics.h"
#include "io/config/describe.h"
#include "models/model.h"
#include "tasks/experiment.h"
#include "tasks/prediction.h"
#include "tasks/vocabulary.h"

namespace zoo {

/// The key n_classes of such a task.
void describe_n_classes(ConfigVisitor& v, std::optional<int64_t>& n_classes);

/// Throws DataError if the configuration asks for another number of classes than the training data have.
void require_n_classes(std::optional<int64_t> wanted, const Vocabulary& vocabulary);

/// Complains where the images do not fit the model: other channels, or smaller than a patch.
void validate_fit(const Experiment& experiment, const Complain& complain);

/// Remarks for people about images that a model sees in part only.
std::vector<std::string> notes_on_fit(const Experiment& experiment);

/// The image of a file that a task predicts from; none if it cannot be read and the options want to be told.
/// Throws DataError otherwise.
std::optional<Image> read_input(const std::string& file, int64_t n_channels, const PredictOptions& options);

/// The mean and deviation of the pixels of training images. Adds a note if some have transparent parts.
PixelStatistics measure_training_pixels(int64_t n_images, const std::function<Image(int64_t)>& image_of,
                                        std::vector<std::string>& notes);

/// The purpose of a model with this head, for images as data.images describes them.
ModelPurpose image_purpose(const Experiment& experiment, HeadKind head, int64_t n_classes);

}  // namespace zoo
