#pragma once
// The keys of the family whisper.

#include <cstdint>
#include <optional>

#include "io/config/describe.h"

namespace zoo {

/// The keys of the family, beside `type: whisper`.
struct WhisperConfig {
  int64_t max_frames = 3000;           // two rows of the table of positions for each vector of the encoder
  std::optional<int64_t> n_mels = {};  // default: the data's, or 80
  bool pad_to_max = true;              // every recording is padded to max_frames, and nothing is hidden
};
void describe(ConfigVisitor& v, WhisperConfig& c);

}  // namespace zoo
