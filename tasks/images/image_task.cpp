#include "tasks/images/image_task.h"

#include <fmt/format.h>

#include "data/images/augment.h"
#include "data/images/image_file.h"
#include "models/families/vit.h"

namespace zoo {

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
  const auto& architecture = experiment.model.architecture;
  const auto& images = experiment.data.images;
  if (architecture.type != "vit") return;
  const auto& vit = architecture.as<VitConfig>();
  if (vit.n_channels && *vit.n_channels != images.channels) {
    complain("model.architecture",
             fmt::format("reads {} channels, but data.images.channels is {}: leave out n_channels",
                         *vit.n_channels, images.channels));
  }
  if (images.size < vit.patch_size) {
    complain("model.architecture",
             fmt::format("has patches of {}, larger than images of {} (data.images.size)", vit.patch_size,
                         images.size));
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
