#pragma once
// Batches of pictures and their objects.

#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/images/annotated_images.h"
#include "data/images/pixel_statistics.h"

namespace zoo {

/// Batches have the fields kImages (normalised by `statistics`, see PicturePadding), kImageSizes, kBoxes,
/// kBoxClasses, kBatchCounts and kImageNumbers of data/batch.h.
/// In shuffled order the pictures are augmented; the changes depend on (seed, epoch, picture) only. Groups
/// (AnnotatedObject::is_crowd) are left out. Pictures of similar areas share a batch, if the options say so.
/// The tokens of a batch are its pictures.
std::unique_ptr<BatchSource> detection_batches(std::shared_ptr<const AnnotatedImages> images,
                                               const ImageConfig& config, const PixelStatistics& statistics,
                                               const BatchOptions& options);

/// Pictures of any sizes as a model reads them: the fields images and image_sizes.
Batch batch_of_pictures(const std::vector<Image>& pictures, const ImageConfig& config,
                        const PixelStatistics& statistics);

}  // namespace zoo
