#pragma once
// Batches of pictures and their objects.

#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/images/marked_images.h"
#include "data/images/pixel_statistics.h"

namespace zoo {

/// Batches have the fields
///   images (B, C, H, W) float   normalised by `statistics`; zeros at the right and at the bottom of pictures
///                               that are smaller than H × W, see PicturePadding
///   image_sizes (B, 2) int64    height and width of each picture within that
///   boxes (B, M, 4) float       of the objects: centre x, centre y, width, height, as shares of the sides of
///                               the picture; M is the most objects of a picture of the batch, and at least 1
///   box_classes (B, M) int64    0 … C-1; -1 where there is no object
///   batch_counts (B, B) int64   in each row the number of objects of every picture of the batch, so that a
///                               part of the batch can be weighed by the whole
///   image_numbers (B) int64     the numbers of the pictures in `images`
/// In shuffled order the pictures are augmented; the changes depend on (seed, epoch, picture) only. Groups
/// (MarkedObject::is_crowd) are left out. Pictures of similar areas share a batch, if the options say so. The
/// tokens of a batch are its pictures.
std::unique_ptr<BatchSource> detection_batches(std::shared_ptr<const MarkedImages> images,
                                               const ImageConfig& config, const PixelStatistics& statistics,
                                               const BatchOptions& options);

/// Pictures of any sizes as a model reads them: the fields images and image_sizes.
Batch batch_of_pictures(const std::vector<Image>& pictures, const ImageConfig& config,
                        const PixelStatistics& statistics);

}  // namespace zoo
