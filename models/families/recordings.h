#pragma once
// What the families that read recordings share, whisper, speech_encoder and wave_encoder, and what their data
// must know.

#include <cstdint>
#include <optional>

#include "models/config/model_config.h"
#include "models/embedders/audio_embedder.h"
#include "models/families/families.h"
#include "models/model.h"

namespace zoo {

/// What a model reads of a recording.
enum class RecordingInput {
  spectrogram,  // fields::kSpectrograms
  samples,      // fields::kSamples
};

/// The input of a model that reads recordings; nothing for other models.
std::optional<RecordingInput> recording_input(const ModelConfig& config);
/// Whether this is the configuration of a model that reads recordings.
inline bool reads_recordings(const ModelConfig& config) { return recording_input(config).has_value(); }
inline bool reads_spectrograms(const ModelConfig& config) {
  return recording_input(config) == RecordingInput::spectrogram;
}

/// The samples from one vector of such a model's encoder to the next, where frames have the distance `hop`.
int64_t samples_per_vector(const ModelConfig& config, int64_t hop);

// Of a model that reads spectrograms:

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
