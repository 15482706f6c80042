#pragma once
// preprocessor_config.json and processor_config.json: how pictures and recordings become inputs of a model.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "data/images/pixel_statistics.h"
#include "tasks/experiment.h"

namespace zoo {

/// Sets `data.images` and `data.audio` of `to` as the files among `files` say; returns how pixels are
/// normalised, nothing for a task without pictures. Without the files: transformers' defaults for the family,
/// where a ViT has squares of its own size. Throws CheckpointError, which names the file in `dir` and its
/// key, for what is not known, not supported or beyond the limits of our keys.
std::optional<PixelStatistics> read_preprocessor(const std::filesystem::path& dir,
                                                 const std::map<std::string, std::string>& files,
                                                 Experiment& to);

/// Whether files of a directory say what a model of pictures that came from it reads now: a training may have
/// had other keys of data.images.
bool prepares_pictures_alike(const std::map<std::string, std::string>& files, const Experiment& experiment,
                             const PixelStatistics& pixels);

/// preprocessor_config.json for a model that reads pictures, with their statistics, or recordings; nothing
/// for other models. Throws ConfigError if no processor of transformers makes the same inputs.
std::optional<std::string> preprocessor_of(const Experiment& experiment,
                                           const std::optional<PixelStatistics>& pixels);

}  // namespace zoo
