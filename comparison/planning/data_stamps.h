#pragma once

#include "data/data_config.h"
#include "pages/json.h"

namespace zoo {

/// A part of the keys of kept scores: place, bytes and time of every file that an evaluation on validation
/// data reads, so that a file that was written anew is noticed without reading it. Of a folder these are all
/// files in it. Files that do not exist have no stamp, and neither have recordings and pictures that a file
/// names.
Json evaluation_data_stamps(const DataConfig& config);

}  // namespace zoo
