#pragma once
// Brings parts of images to other sizes.

#include <cstdint>

#include "data/image_config.h"
#include "data/images/image.h"

namespace zoo {

/// A part of an image, in pixels.
struct Rectangle {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// All of an image of this shape.
Rectangle whole(const ImageShape& shape);

/// A part of an image. The area outside of the image is black.
Image cut_out(const Image& image, const Rectangle& part);

/// The part of an image, resized to height × width as Pillow's Image.resize() does with bytes, to the bit:
/// the filter is as wide as the pixels of the smaller image (antialias), and its weights are whole multiples
/// of 2^-22. Returns the part itself if it has that size.
Image resized(const Image& image, const Rectangle& part, int64_t height, int64_t width,
              PictureFilter filter = PictureFilter::bilinear);

/// The window of the image after it is resized to height × width. Only the window is computed, so time and
/// memory do not depend on height · width. The window lies within it.
Image resized_window(const Image& image, int64_t height, int64_t width, const Rectangle& window,
                     PictureFilter filter = PictureFilter::bilinear);

}  // namespace zoo
