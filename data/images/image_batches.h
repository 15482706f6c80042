#pragma once
// Batches of images and their classes.

#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/images/image_set.h"
#include "data/images/pixel_statistics.h"

namespace zoo {

/// One class, 0 … n_classes - 1, for each image. Batches have
///   images (B, C, size, size) float   normalised by `statistics`
///   targets (B) int64
/// In shuffled order the images are augmented; the changes depend on (seed, epoch, image) only. If
/// options.augment mixes images, there are also the fields
///   other_targets (B) int64   the class of the image that was mixed in
///   shares (B) float          the share of the image itself
/// `tokens_per_image` is what Batch::tokens counts for an image.
std::unique_ptr<BatchSource> image_batches(LabelledImages images, std::vector<int64_t> classes,
                                           const ImageConfig& config, const PixelStatistics& statistics,
                                           int64_t tokens_per_image, const BatchOptions& options);

/// Writes an image to `to`, C · H · W numbers, normalised.
void write_normalised(const Image& image, const PixelStatistics& statistics, float* to);

}  // namespace zoo
