#pragma once
// Mean and deviation of the pixels, by which images are normalised.

#include <vector>

#include "data/images/image_set.h"

namespace zoo {

/// For each channel, of pixels from 0 to 1.
struct PixelStatistics {
  std::vector<double> mean, deviation;
};

/// Measured on at most 2,048 of the images, drawn at random. A channel that is the same everywhere has
/// deviation 1.
PixelStatistics measure_pixels(const LabelledImages& images);

}  // namespace zoo
