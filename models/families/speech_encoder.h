#pragma once
// The keys of the family speech_encoder.

#include <cstdint>
#include <optional>

#include "io/config/describe.h"

namespace zoo {

/// The keys of the family, beside `type: speech_encoder`.
struct SpeechEncoderConfig {
  int64_t max_frames = 3000;
  std::optional<int64_t> n_mels = {};  // default: the data's, or 80
};
void describe(ConfigVisitor& v, SpeechEncoderConfig& c);

}  // namespace zoo
