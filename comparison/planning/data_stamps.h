#pragma once

#include "data/data_config.h"
#include "pages/json.h"

namespace zoo {

/// The place, bytes and time of every file that an evaluation on validation data reads. Kept scores have them
/// in their key: a file that was written anew is noticed, and it need not be read for that. A folder has the
/// stamps of all files in it. Files that do not exist have no stamp. Recordings and pictures that a table
/// names have none either.
Json evaluation_data_stamps(const DataConfig& config);

}  // namespace zoo
