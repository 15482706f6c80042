#pragma once
// What the tasks that predict from images share.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/image_config.h"
#include "data/images/box.h"
#include "data/images/image.h"
#include "data/images/pixel_statistics.h"
#include "io/config/describe.h"
#include "models/model.h"
#include "tasks/experiment.h"
#include "tasks/prediction.h"
#include "tasks/task.h"
#include "tasks/vocabulary.h"

namespace zoo {

/// The key n_classes of such a task.
void describe_n_classes(ConfigVisitor& v, std::optional<int64_t>& n_classes);

/// Throws DataError if the configuration asks for another number of classes than the training data have.
void require_n_classes(std::optional<int64_t> wanted, const Vocabulary& vocabulary);

/// Complains where the images do not fit a model of patches: other channels, or smaller than a patch.
void validate_fit(const Experiment& experiment, const Complain& complain);

/// Remarks for people about images that a model sees in part only.
std::vector<std::string> notes_on_fit(const Experiment& experiment);

/// The image of a file, in its own size. Throws DataError.
Image read_picture(const std::string& file, const ImageConfig& config);
/// The same, fitted() to the inputs of the model.
struct FittedImage {
  Image image;
  Box shown;  // the part of the picture, in its pixels
};
FittedImage read_fitted(const std::string& file, const ImageConfig& config);

/// read(file), of a file that a task predicts from; none if that throws DataError and the options want to be
/// told.
template <class Read>
auto read_input(const std::string& file, const PredictOptions& options, Read read)
    -> std::optional<decltype(read(file))> {
  try {
    return read(file);
  } catch (const DataError& error) {
    if (!options.on_unreadable) throw;
    options.on_unreadable(error.what());
    return std::nullopt;
  }
}

/// Images that are fitted() to their size, as a batch without targets.
Batch batch_of_images(const std::vector<Image>& images, const ImageConfig& config,
                      const PixelStatistics& statistics);
/// The images of files, fitted(), as one batch. Throws DataError.
ImageInputs read_images(const std::vector<std::string>& files, const ImageConfig& config,
                        const PixelStatistics& statistics);
/// What is predicted from the images of files: `answer` gets a batch of some of them, and one prediction for
/// each of its rows, whose answer it sets. Files that cannot be read have none (read_input()).
std::vector<Prediction> predict_from_images(
    const std::vector<std::string>& files, const ImageConfig& config, const PixelStatistics& statistics,
    const PredictOptions& options,
    const std::function<void(const Batch& batch, std::span<Prediction> predictions)>& answer);
/// A prediction for each file, in which nothing is said.
std::vector<Prediction> unanswered(const std::vector<std::string>& files);

/// The mean and deviation of the pixels of training images. Adds a note if some have transparent parts.
PixelStatistics measure_training_pixels(int64_t n_images, const std::function<Image(int64_t)>& image_of,
                                        std::vector<std::string>& notes);

/// The purpose of a model with this head, for images as data.images describes them.
ModelPurpose image_purpose(const Experiment& experiment, HeadKind head, int64_t n_classes);

}  // namespace zoo
