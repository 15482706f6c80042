#pragma once
// Brings images to the size that a model reads, and changes training images at random.

#include <optional>

#include "base/random.h"
#include "data/image_config.h"
#include "data/images/box.h"
#include "data/images/image.h"

namespace zoo {

/// A part of an image, in pixels.
struct Rectangle {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// All of an image of this shape.
Rectangle whole(const ImageShape& shape);

/// The part of an image, resized to height × width with antialiased bilinear interpolation, as torchvision
/// does with tensors. Returns the part itself if it has that size.
Image resized(const Image& image, const Rectangle& part, int64_t height, int64_t width);

/// Exchanges left and right.
void flip(Image& image);

/// The image as it is evaluated: resized until its shorter side is `size`, and the middle size × size of
/// that.
Image fitted(const Image& image, int64_t size);

/// The part of an image of this shape that fitted() shows, in its pixels.
Box fitted_part(const ImageShape& shape, int64_t size);

/// The image as it is trained on, size × size: cut, flipped and changed (rand_augment) as `options` says.
/// Equal random numbers give equal images.
Image augmented(const Image& image, int64_t size, const AugmentConfig& options, CounterRandom& random);

/// A rectangle to erase, or none, with options.erasing; for images of height × width.
std::optional<Rectangle> rectangle_to_erase(int64_t height, int64_t width, const AugmentConfig& options,
                                            CounterRandom& random);

/// How another image is mixed into an image.
struct Mixture {
  double share = 1;  // of the image itself, for its target
  /// The part that comes from the other image; none: all pixels are weighted means.
  std::optional<Rectangle> pasted = std::nullopt;
};
/// Draws a mixture for images of height × width. options.mixes() holds.
Mixture draw_mixture(int64_t height, int64_t width, const AugmentConfig& options, CounterRandom& random);

}  // namespace zoo
