#include "tasks/images/image_task.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "data/images/augment.h"
#include "data/images/image_batches.h"
#include "data/images/image_file.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/families/vit.h"

namespace zoo {
namespace {

/// How a model divides pictures, if it makes patches of them.
std::optional<VitConfig> patches_of(const ModelConfig& config) {
  if (compares_pictures(config)) return picture_encoder(config).architecture.as<VitConfig>();
  if (reads_patches(config)) return config.architecture.as<VitConfig>();
  return std::nullopt;
}

}  // namespace

void describe_n_classes(ConfigVisitor& v, std::optional<int64_t>& n_classes) {
  v.field(
      "n_classes", n_classes,
      "Number of classes; default: as many as the training data have. With it, `zoo inspect` needs no data.",
      Limits::between(1, 1 << 20));
}

void require_n_classes(std::optional<int64_t> wanted, const Vocabulary& vocabulary) {
  const auto n_labels = std::ssize(vocabulary.labels);
  if (wanted && *wanted != n_labels) {
    throw DataError(fmt::format("the training data have {} classes, but task.n_classes is {}: leave it out",
                                n_labels, *wanted));
  }
}

void validate_fit(const Experiment& experiment, const Complain& complain) {
  const auto& images = experiment.data.images;
  const auto patches = patches_of(experiment.model);
  if (!patches) return;
  if (patches->n_channels && *patches->n_channels != images.channels) {
    complain("model.architecture",
             fmt::format("reads {} channels, but data.images.channels is {}: leave out n_channels",
                         *patches->n_channels, images.channels));
  }
  if (images.size < patches->patch_size) {
    complain("model.architecture",
             fmt::format("has patches of {}, larger than images of {} (data.images.size)",
                         patches->patch_size, images.size));
  }
}

std::vector<std::string> notes_on_fit(const Experiment& experiment) {
  const auto& architecture = experiment.model.architecture;
  const int64_t size = experiment.data.images.size;
  if (architecture.type != "vit") return {};
  const int64_t patch = architecture.as<VitConfig>().patch_size, rest = size % patch;
  if (rest == 0 || size < patch) return {};
  return {
      fmt::format("patches of {} leave the last {} of {} rows and columns of each image unseen: "
                  "data.images.size {} would not",
                  patch, rest, size, size - rest + patch)};
}

Image read_picture(const std::string& file, const ImageConfig& config) {
  return read_image(file, Follow::everything, config.channels, config.transparency);
}

FittedImage read_fitted(const std::string& file, const ImageConfig& config) {
  const auto picture = read_picture(file, config);
  try {
    auto image = fitted(picture, config);
    image.has_transparency = picture.has_transparency;
    return {.image = std::move(image), .shown = fitted_part(picture.shape, config)};
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", file, error.what()));
  }
}

Batch batch_of_images(const std::vector<Image>& images, const ImageConfig& config,
                      const PixelStatistics& statistics) {
  auto pixels = torch::empty({std::ssize(images), config.channels, config.size, config.size});
  for (int64_t i = 0; i < std::ssize(images); ++i)
    write_normalised(images[static_cast<size_t>(i)], statistics, pixels[i].mutable_data_ptr<float>());
  Batch batch;
  batch.fields = {{fields::kImages, std::move(pixels)}};
  return batch;
}

ImageInputs read_images(const std::vector<std::string>& files, const ImageConfig& config,
                        const PixelStatistics& statistics) {
  ImageInputs inputs;
  std::vector<Image> images;
  for (const auto& file : files) {
    auto [image, shown] = read_fitted(file, config);
    inputs.shown.push_back(shown);
    images.push_back(std::move(image));
  }
  inputs.batch = batch_of_images(images, config, statistics);
  return inputs;
}

std::vector<Prediction> predict_from_images(
    const std::vector<std::string>& files, const ImageConfig& config, const PixelStatistics& statistics,
    const PredictOptions& options, const std::function<void(const Batch&, std::span<Prediction>)>& answer) {
  constexpr size_t at_once = 32;
  std::vector<Prediction> predictions;
  for (size_t begin = 0; begin < files.size(); begin += at_once) {
    const auto end = std::min(files.size(), begin + at_once);
    std::vector<Image> images;
    std::vector<Prediction> found;
    for (size_t i = begin; i < end; ++i) {
      auto read = read_input(files[i], options, [&](const auto& file) { return read_fitted(file, config); });
      if (!read) continue;
      found.push_back({.input = files[i], .on_white = read->image.has_transparency});
      images.push_back(std::move(read->image));
    }
    if (!images.empty()) answer(batch_of_images(images, config, statistics), found);
    std::ranges::move(found, std::back_inserter(predictions));
    if (options.on_progress) options.on_progress(static_cast<int64_t>(end), std::ssize(files));
  }
  return predictions;
}

std::vector<Prediction> unanswered(const std::vector<std::string>& files) {
  std::vector<Prediction> predictions;
  for (const auto& file : files) predictions.push_back({.input = file});
  return predictions;
}

PixelStatistics measure_training_pixels(int64_t n_images, const std::function<Image(int64_t)>& image_of,
                                        std::vector<std::string>& notes) {
  int64_t n = 0, n_transparent = 0;
  auto statistics = measure_pixels(n_images, [&](int64_t index) {
    auto image = image_of(index);
    ++n;
    n_transparent += image.has_transparency ? 1 : 0;
    return image;
  });
  if (n_transparent > 0) {
    notes.push_back(
        fmt::format("{} of {} training images that were looked at have transparent parts, which are "
                    "put on white",
                    n_transparent, n));
  }
  return statistics;
}

ModelPurpose image_purpose(const Experiment& experiment, HeadKind head, int64_t n_classes) {
  const auto& images = experiment.data.images;
  const int64_t side = images.padding == PicturePadding::square ? images.longest_side() : images.size;
  return {.head = head,
          .n_classes = n_classes,
          .image = {.channels = images.channels, .height = side, .width = side}};
}

}  // namespace zoo
