#pragma once
// Brings images to the size that a model reads, and changes training images at random.

#include <optional>

#include "base/random.h"
#include "data/image_config.h"
#include "data/images/box.h"
#include "data/images/image.h"
#include "data/images/resize.h"

namespace zoo {

/// Exchanges left and right.
void flip(Image& image);

/// The image as it is evaluated, size × size, as config.fit says. Throws DataError, which says the size and
/// not the name of the image, if `fit` is exact and the image has another size.
Image fitted(const Image& image, const ImageConfig& config);

/// The part of an image of this shape that fitted() shows, in its pixels.
Box fitted_part(const ImageShape& shape, const ImageConfig& config);

/// The image as it is trained on, size × size: cut, flipped and changed (rand_augment) as config.augment
/// says. Equal random numbers give equal images. Throws as fitted().
Image augmented(const Image& image, const ImageConfig& config, CounterRandom& random);

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
