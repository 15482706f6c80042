#pragma once
// Batches of images and their classes.

#include <memory>

#include <torch/types.h>

#include "data/batch_source.h"
#include "data/images/image_set.h"
#include "data/images/pixel_statistics.h"

namespace zoo {

/// `targets`: one for each image, (N) int64 classes or (N, K) float as Batch::targets. Batches have
///   images (B, C, size, size) float   normalised by `statistics`
///   targets (B) int64 or (B, K) float
/// In shuffled order the images are augmented; the changes depend on (seed, epoch, image) only. If
/// options.augment mixes images, targets of floats are mixed in the same shares, and with classes there are
/// also the fields
///   other_targets (B) int64   the class of the image that was mixed in
///   shares (B) float          the share of the image itself
/// `tokens_per_image` is what Batch::tokens counts for an image.
std::unique_ptr<BatchSource> image_batches(LabelledImages images, torch::Tensor targets,
                                           const ImageConfig& config, const PixelStatistics& statistics,
                                           int64_t tokens_per_image, const BatchOptions& options);

/// Writes an image to `to`, C · H · W numbers, normalised.
void write_normalised(const Image& image, const PixelStatistics& statistics, float* to);

}  // namespace zoo
