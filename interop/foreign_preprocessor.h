#pragma once
// preprocessor_config.json: how pictures and recordings become inputs of a model.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "data/images/pixel_statistics.h"
#include "tasks/experiment.h"

namespace zoo {

/// Sets `data.images` and `data.audio` of `to` as the file among `files` says. Without the file: the sizes of
/// DETR's pictures are 800 pixels at the shorter side and at most 1333 at the longer one, and recordings are
/// as Whisper reads them. Throws CheckpointError, which names the file in `dir` and its key, for what is not
/// supported or beyond the limits of our keys.
void read_preprocessor(const std::filesystem::path& dir, const std::map<std::string, std::string>& files,
                       Experiment& to);

/// How the file normalises pixels. Without it, DETR's have the statistics of ImageNet, and those of others
/// are between -1 and 1. Throws CheckpointError.
PixelStatistics read_pixels(const std::filesystem::path& dir, const std::map<std::string, std::string>& files,
                            const Experiment& experiment);

/// The file for a model that reads recordings, as transformers.WhisperFeatureExtractor has it; nothing for
/// other models. Throws ConfigError if WhisperFeatureExtractor cannot make the same inputs.
std::optional<std::string> preprocessor_of(const Experiment& experiment);

}  // namespace zoo
