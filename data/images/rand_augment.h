#pragma once
// RandAugment (Cubuk et al. 2020): operations on colours and shapes, drawn at random.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/random.h"
#include "data/image_config.h"
#include "data/images/image.h"

namespace zoo {

/// What an operation changes an image by:
///   identity       nothing
///   shear_x, _y    shifts each row (column) by `amount` times its number
///   translate_x, _y shifts by `amount` pixels, rounded towards 0
///   rotate         turns counterclockwise by `amount` degrees around the middle
///   brightness, color, contrast, sharpness
///                  moves away from black, from grey, from the mean brightness, from a blurred copy: 0
///                  changes nothing, -1 gives the other image
///   posterize      keeps the `amount` highest bits
///   solarize       inverts numbers from `amount` on
///   autocontrast   stretches each channel to 0 … 255
///   equalize       makes all brightnesses of a channel equally frequent
/// Pixels that come in from outside are black. Shapes take the nearest pixel, as PIL's and torchvision's do
/// by default.
enum class ImageOperation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize
};
constexpr auto config_names(ImageOperation) {
  return std::to_array<std::string_view>({"identity", "shear_x", "shear_y", "translate_x", "translate_y",
                                          "rotate", "brightness", "color", "contrast", "sharpness",
                                          "posterize", "solarize", "autocontrast", "equalize"});
}

/// The image after one operation. It keeps its size; 1 or 3 channels. The result is that of PIL.
Image changed(const Image& image, ImageOperation operation, double amount);

/// The `amount` of an operation at a magnitude from 0 to 30, for an image of this shape, as torchvision's
/// RandAugment with 31 bins: shears to 0.3, translations to 150/331 of the side, 30 degrees, 0.9 for colours,
/// 8 to 4 bits, thresholds from 255 to 0; 0 for the others.
double amount_of(ImageOperation operation, int64_t magnitude, const ImageShape& shape);

/// The image after options.n operations, each one of all with equal probability. Those with a direction go
/// either way. Equal random numbers give equal images.
Image rand_augmented(Image image, const RandAugmentConfig& options, CounterRandom& random);

}  // namespace zoo
