#pragma once
// Where a model looks in a picture.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "analysis/attention_maps.h"

namespace zoo {

/// The report of a model that reads the image file `image` as in Task::predict(). Every layer of the
/// model must have maps. Throws UsageError if the model has no grid of places, DataError if the file cannot
/// be read.
AttentionReport image_attention_report(Model& model, Task& task, const std::string& image);
/// The same for a trained model. UsageError also if it reads no images, or if a layer of it has no maps
/// (why_no_maps()).
AttentionReport image_attention_report(const Run& run, const std::string& image);

/// The names of what the encoder reads of a picture: special vectors, then the places row by row.
std::vector<std::string> place_names(const PatchGrid& grid);

/// The fields of a picture's report that are not about maps, as `zoo attention --json` names them
/// (attention_maps.h).
nlohmann::ordered_json image_json(const AttentionReport& report);

}  // namespace zoo
