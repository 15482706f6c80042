#include "data/images/annotated_image.h"

#include <algorithm>
#include <cmath>

namespace zoo {
namespace {

/// A part with an area of min_area or more and about the shape of the picture, its sides between 3:4 and 4:3
/// of that.
Rectangle random_window(const ImageShape& shape, double min_area, CounterRandom& random) {
  const double area = min_area + (1 - min_area) * random.uniform();
  const double ratio = std::exp(std::log(4.0 / 3.0) * (2 * random.uniform() - 1));
  const auto side = [](int64_t length, double share) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(length) * share), 1, length);
  };
  const int64_t height = side(shape.height, std::sqrt(area / ratio)),
                width = side(shape.width, std::sqrt(area * ratio));
  return {.top = random.below(shape.height - height + 1),
          .left = random.below(shape.width - width + 1),
          .height = height,
          .width = width};
}

AnnotatedImage resized_to(AnnotatedImage picture, int64_t shorter, const ImageConfig& config) {
  const auto from = picture.image.shape;
  picture.image = resized_to_fit(picture.image, shorter, config);
  const double x = static_cast<double>(picture.image.shape.width) / static_cast<double>(from.width),
               y = static_cast<double>(picture.image.shape.height) / static_cast<double>(from.height);
  for (auto& object : picture.objects) {
    auto& box = object.box;
    box = {.x = box.x * x, .y = box.y * y, .width = box.width * x, .height = box.height * y};
  }
  return picture;
}

}  // namespace

ImageShape size_to_fit(const ImageShape& shape, int64_t shorter, int64_t longest) {
  const auto least = static_cast<double>(std::min(shape.height, shape.width)),
             most = static_cast<double>(std::max(shape.height, shape.width));
  auto size = static_cast<double>(shorter);
  // The longer side follows from the shorter one before that is rounded, to the bit as in transformers.
  if (most / least * size > static_cast<double>(longest)) size = static_cast<double>(longest) * least / most;
  const auto nearest = static_cast<int64_t>(std::nearbyint(size));
  if (nearest == std::min(shape.height, shape.width)) return shape;
  const auto rounded = std::max<int64_t>(1, nearest);  // transformers fails with a side of 0
  const auto other = std::clamp<int64_t>(static_cast<int64_t>(size * most / least), 1, longest);
  const bool is_wide = shape.height <= shape.width;
  return {
      .channels = shape.channels, .height = is_wide ? rounded : other, .width = is_wide ? other : rounded};
}

Image resized_to_fit(const Image& image, int64_t shorter, const ImageConfig& config) {
  const auto size = size_to_fit(image.shape, shorter, config.longest_side());
  return resized(image, whole(image.shape), size.height, size.width, config.filter);
}

AnnotatedImage cut_out(const AnnotatedImage& picture, const Rectangle& part) {
  constexpr double least_share = 0.25;
  AnnotatedImage result{.image = resized(picture.image, part, part.height, part.width), .objects = {}};
  for (auto object : picture.objects) {
    const auto& box = object.box;
    const double left = std::max(box.x, static_cast<double>(part.left)),
                 top = std::max(box.y, static_cast<double>(part.top)),
                 right = std::min(box.x + box.width, static_cast<double>(part.left + part.width)),
                 bottom = std::min(box.y + box.height, static_cast<double>(part.top + part.height));
    const double width = right - left, height = bottom - top;
    if (width <= 0 || height <= 0 || width * height < least_share * box.width * box.height) continue;
    object.box = {.x = left - static_cast<double>(part.left),
                  .y = top - static_cast<double>(part.top),
                  .width = width,
                  .height = height};
    result.objects.push_back(object);
  }
  return result;
}

AnnotatedImage flipped(AnnotatedImage picture) {
  flip(picture.image);
  const auto width = static_cast<double>(picture.image.shape.width);
  for (auto& object : picture.objects) object.box.x = width - object.box.x - object.box.width;
  return picture;
}

AnnotatedImage augmented(AnnotatedImage picture, const ImageConfig& config, CounterRandom& random) {
  const auto& augment = config.augment;
  if (augment.min_crop_area)
    picture = cut_out(picture, random_window(picture.image.shape, *augment.min_crop_area, random));
  if (random.uniform() < augment.flip) picture = flipped(std::move(picture));
  const auto least = std::llround(static_cast<double>(config.size) * augment.min_scale);
  const int64_t shorter = least + random.below(config.size - least + 1);
  return resized_to(std::move(picture), shorter, config);
}

AnnotatedImage fitted(AnnotatedImage picture, const ImageConfig& config) {
  return resized_to(std::move(picture), config.size, config);
}

}  // namespace zoo
