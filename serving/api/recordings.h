#pragma once
// Recordings in requests.

#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "data/audio/sound_file.h"
#include "serving/api/api_error.h"
#include "serving/api/api_limits.h"
#include "serving/api/memory_file.h"

namespace zoo {

/// use(path), where the file has these bytes. What is wrong with it is said of the recording, as an ApiError.
template <class Use>
auto with_recording(const std::string& bytes, const std::string& key, const Use& use) {
  const MemoryFile file(bytes);
  try {
    return use(file.path());
  } catch (const DataError& error) {
    const std::string message = error.what(), path = file.path();
    const bool is_of_file = message.starts_with(path);
    throw ApiError(400, is_of_file ? "the recording" + message.substr(path.size()) : message, key);
  }
}

/// Throws ApiError for bytes that are no WAV or FLAC file, and for a header that promises too much. Decodes
/// nothing: a model refuses what is longer than it reads before it reads samples.
inline SoundInfo check_recording(const std::string& bytes, const std::string& key, const ApiLimits& limits) {
  const auto info = with_recording(bytes, key, [](const auto& path) { return SoundFile(path).info(); });
  if (info.n_samples > limits.most_recording_samples / info.n_channels) {
    throw ApiError(400,
                   fmt::format("the recording has {} samples in {} channels, and may have {} in all",
                               info.n_samples, info.n_channels, limits.most_recording_samples),
                   key);
  }
  return info;
}

}  // namespace zoo
