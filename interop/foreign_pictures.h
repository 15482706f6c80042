#pragma once
// preprocessor_config.json of pictures: what transformers' image processors do, as data.images and
// statistics.

#include <nlohmann/json_fwd.hpp>

#include "data/image_config.h"
#include "data/images/pixel_statistics.h"
#include "interop/families/foreign_config.h"
#include "tasks/experiment.h"

namespace zoo {

/// Sets keys of data.images as an image processor (ViT's, DeiT's, CLIP's or BiT's) makes square inputs of
/// images.size pixels. A square is squeezed there, and transparency is dropped. Throws CheckpointError for a
/// key that is not known, and for inputs of another size.
PixelStatistics read_square_pictures(ForeignConfig& from, ImageConfig& images);

/// The same for DETR's processor, whose pictures keep their shape.
PixelStatistics read_detected_pictures(ForeignConfig& from, ImageConfig& images);

/// The file for a model of pictures: a processor of transformers that makes the same inputs of pictures
/// without transparency. Throws ConfigError if the model's own size is another one.
nlohmann::ordered_json picture_processor_of(const Experiment& experiment, const PixelStatistics& pixels);

}  // namespace zoo
