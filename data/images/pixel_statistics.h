#pragma once
// Mean and deviation of the pixels, by which images are normalised.

#include <cstdint>
#include <functional>
#include <vector>

#include "data/images/image.h"

namespace zoo {

/// For each channel, of pixels from 0 to 1.
struct PixelStatistics {
  std::vector<double> mean, deviation;
};

/// Whether they are a finite mean and a positive deviation for each of `n_channels`.
bool can_normalize(const PixelStatistics& pixels, int64_t n_channels);

/// Measured on at most 2,048 of n images, drawn at random; image(i) gives number i. A channel that is the
/// same everywhere has deviation 1.
PixelStatistics measure_pixels(int64_t n_images, const std::function<Image(int64_t)>& image);

}  // namespace zoo
