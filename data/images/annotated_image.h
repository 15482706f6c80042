#pragma once
// A picture and its objects, changed together.

#include <vector>

#include "base/random.h"
#include "data/image_config.h"
#include "data/images/augment.h"
#include "data/images/box.h"
#include "data/images/image.h"

namespace zoo {

struct AnnotatedImage {
  Image image;
  std::vector<AnnotatedObject> objects;
};

/// The size of a picture whose shorter side becomes `shorter` pixels, or less if the longer side would have
/// more than `longest`: to the pixel as transformers.DetrImageProcessor, in which rounding of the shorter
/// side can leave the longer one some pixels off `longest`.
ImageShape size_to_fit(const ImageShape& shape, int64_t shorter, int64_t longest);
/// The picture in this size, with the longest side and the filter of `config`.
Image resized_to_fit(const Image& image, int64_t shorter, const ImageConfig& config);

/// A part of the picture. Boxes are cut at its edges. Objects of which it has less than a quarter of the box
/// are left out.
AnnotatedImage cut_out(const AnnotatedImage& picture, const Rectangle& part);
/// The picture with left and right exchanged.
AnnotatedImage flipped(AnnotatedImage picture);

/// The picture as it is trained on: cut and flipped as config.augment says, in a size that it says. The boxes
/// are in pixels of the result.
AnnotatedImage augmented(AnnotatedImage picture, const ImageConfig& config, CounterRandom& random);
/// The picture as it is evaluated.
AnnotatedImage fitted(AnnotatedImage picture, const ImageConfig& config);

}  // namespace zoo
