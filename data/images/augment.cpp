#include "data/images/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/images/rand_augment.h"

namespace zoo {
namespace {

int64_t rounded(double x) { return std::llround(x); }

/// A part with an area between min_area and all, and sides between 3:4 and 4:3; the middle if ten draws do
/// not fit (torchvision's RandomResizedCrop).
Rectangle random_part(const ImageShape& shape, double min_area, CounterRandom& random) {
  constexpr int n_draws = 10;
  const double height = static_cast<double>(shape.height), width = static_cast<double>(shape.width);
  const double log_ratio = std::log(4.0 / 3.0);
  for (int i = 0; i < n_draws; ++i) {
    const double area = height * width * (min_area + (1 - min_area) * random.uniform());
    const double ratio = std::exp(log_ratio * (2 * random.uniform() - 1));
    const int64_t w = rounded(std::sqrt(area * ratio)), h = rounded(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > shape.width || h > shape.height) continue;
    return {random.below(shape.height - h + 1), random.below(shape.width - w + 1), h, w};
  }
  const int64_t w = std::min(shape.width, std::max<int64_t>(1, rounded(height * 4 / 3)));
  const int64_t h = std::min(shape.height, std::max<int64_t>(1, rounded(width * 4 / 3)));
  return {(shape.height - h) / 2, (shape.width - w) / 2, h, w};
}

/// The shape of an image whose shorter side becomes `size`.
ImageShape scaled_to(const ImageShape& shape, int64_t size) {
  const int64_t shorter = std::min(shape.height, shape.width);
  const auto scaled = [&](int64_t side) { return std::max(size, side * size / shorter); };
  return {.channels = shape.channels, .height = scaled(shape.height), .width = scaled(shape.width)};
}

/// The shape of an image before the middle is cut out of it.
ImageShape resized_shape(const ImageShape& shape, const ImageConfig& config) {
  const int64_t side = config.resized_side();
  switch (config.fit) {
    case PictureFit::cut:
      return scaled_to(shape, side);
    case PictureFit::squeeze:
      return {.channels = shape.channels, .height = side, .width = side};
    default:
      return shape;
  }
}

/// A square in the middle, which may be larger than the image.
Rectangle middle_of(const ImageShape& shape, int64_t size) {
  const auto begin = [size](int64_t side) {
    return side >= size ? (side - size) / 2 : -((size - side + 1) / 2);
  };
  return {.top = begin(shape.height), .left = begin(shape.width), .height = size, .width = size};
}

/// A number from Beta(alpha, alpha) (Jöhnk 1964).
double symmetric_beta(double alpha, CounterRandom& random) {
  for (;;) {
    const double x = std::pow(random.uniform(), 1 / alpha), y = std::pow(random.uniform(), 1 / alpha);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

}  // namespace

void flip(Image& image) {
  if (image.pixels.empty()) return;
  const int64_t n_rows = image.shape.channels * image.shape.height, width = image.shape.width;
  for (int64_t row = 0; row < n_rows; ++row) {
    const auto first = image.pixels.begin() + row * width;
    std::reverse(first, first + width);
  }
}

Image fitted(const Image& image, const ImageConfig& config) {
  const int64_t size = config.size;
  const auto& shape = image.shape;
  if (config.fit == PictureFit::exact && (shape.height != size || shape.width != size)) {
    throw DataError(
        fmt::format("{} x {} pixels, and the model reads {} x {} alone (data.images.fit is exact)",
                    shape.width, shape.height, size, size));
  }
  const auto to = resized_shape(shape, config);
  return resized_window(image, to.height, to.width, middle_of(to, size), config.filter);
}

Box fitted_part(const ImageShape& shape, const ImageConfig& config) {
  const auto to = resized_shape(shape, config);
  const auto middle = middle_of(to, config.size);
  const auto size = static_cast<double>(config.size);
  const double down = static_cast<double>(shape.height) / static_cast<double>(to.height),
               across = static_cast<double>(shape.width) / static_cast<double>(to.width);
  return {.x = static_cast<double>(middle.left) * across,
          .y = static_cast<double>(middle.top) * down,
          .width = size * across,
          .height = size * down};
}

Image augmented(const Image& image, const ImageConfig& config, CounterRandom& random) {
  const auto& options = config.augment;
  const int64_t size = config.size;
  Image result = options.min_crop_area
                     ? resized(image, random_part(image.shape, *options.min_crop_area, random), size, size,
                               config.filter)
                     : fitted(image, config);
  if (const int64_t padding = options.crop_padding; padding > 0) {
    const int64_t top = random.below(2 * padding + 1) - padding,
                  left = random.below(2 * padding + 1) - padding;
    result = cut_out(result, {top, left, size, size});
  }
  if (options.flip > 0 && random.uniform() < options.flip) flip(result);
  if (options.rand_augment) result = rand_augmented(std::move(result), *options.rand_augment, random);
  return result;
}

std::optional<Rectangle> rectangle_to_erase(int64_t height, int64_t width, const AugmentConfig& options,
                                            CounterRandom& random) {
  if (options.erasing <= 0 || random.uniform() >= options.erasing) return std::nullopt;
  constexpr int n_draws = 10;
  constexpr double least_area = 0.02, most_area = 1.0 / 3;
  const double log_ratio = std::log(10.0 / 3.0);  // sides of 3:10 to 10:3
  for (int i = 0; i < n_draws; ++i) {
    const double area =
        static_cast<double>(height * width) * (least_area + (most_area - least_area) * random.uniform());
    const double ratio = std::exp(log_ratio * (2 * random.uniform() - 1));
    const int64_t h = rounded(std::sqrt(area * ratio)), w = rounded(std::sqrt(area / ratio));
    if (h >= 1 && w >= 1 && h < height && w < width)
      return Rectangle{random.below(height - h + 1), random.below(width - w + 1), h, w};
  }
  return std::nullopt;
}

Mixture draw_mixture(int64_t height, int64_t width, const AugmentConfig& options, CounterRandom& random) {
  const bool both = options.mixup > 0 && options.cutmix > 0;
  const bool paste = both ? random.uniform() < 0.5 : options.cutmix > 0;
  const double share = symmetric_beta(paste ? options.cutmix : options.mixup, random);
  if (!paste) return {.share = share};
  // Centred anywhere, so that a part of it may lie outside (Yun et al. 2019, section 3.1).
  const double side = std::sqrt(1 - share);
  const int64_t h = rounded(static_cast<double>(height) * side),
                w = rounded(static_cast<double>(width) * side);
  const int64_t row = random.below(height), column = random.below(width);
  const int64_t top = std::clamp<int64_t>(row - h / 2, 0, height),
                left = std::clamp<int64_t>(column - w / 2, 0, width);
  const Rectangle pasted{top, left, std::min(row - h / 2 + h, height) - top,
                         std::min(column - w / 2 + w, width) - left};
  const double area = static_cast<double>(pasted.height * pasted.width) / static_cast<double>(height * width);
  return {.share = 1 - area, .pasted = pasted};
}

}  // namespace zoo
