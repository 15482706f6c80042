#pragma once
// What the families that read recordings share, whisper and speech_encoder, and what their data must know.

#include <cstdint>
#include <optional>

#include "models/config/model_config.h"
#include "models/embedders/audio_embedder.h"
#include "models/families/families.h"
#include "models/model.h"

namespace zoo {

/// Whether this is the configuration of a model that reads recordings.
bool reads_recordings(const ModelConfig& config);

// Of such a model:

/// The frames to which it pads every recording; nothing: it reads recordings of any length up to
/// most_frames().
std::optional<int64_t> padded_frames(const ModelConfig& config);
/// The most frames of a recording.
int64_t most_frames(const ModelConfig& config);
/// The bands of its spectrograms, if its configuration says how many.
std::optional<int64_t> configured_mels(const ModelConfig& config);
/// Makes its configuration say how many.
void set_mels(ModelConfig& config, int64_t n_mels);
/// The bands of its spectrograms: those of its configuration, else the data's, else 80.
int64_t n_mels_of(const ModelConfig& config, const ModelPurpose& purpose);
/// Its embedder, for recordings of their own length. There are sinusoids, unless the layers have relative
/// positions, or there are none.
AudioEmbedderOptions recording_options(const ModelConfig& config, const ModelPurpose& purpose);
/// Complains about a width for which there are no sinusoids.
void validate_audio_positions(const ModelConfig& config, const Complain& complain);
/// The frames of a batch's spectrograms; without them, those of shape.length vectors.
int64_t n_frames_of(const PassShape& shape);

}  // namespace zoo
