#include "models/families/recordings.h"

#include "models/config/layer_types.h"
#include "models/families/speech_encoder.h"
#include "models/families/wave_encoder.h"
#include "models/families/whisper.h"

namespace zoo {
namespace {

bool is_whisper(const ModelConfig& config) { return config.architecture.type == "whisper"; }

/// use() with the keys of the family.
template <class Use>
auto with_keys(const ModelConfig& config, const Use& use) {
  const auto& selection = config.architecture;
  return is_whisper(config) ? use(selection.as<WhisperConfig>()) : use(selection.as<SpeechEncoderConfig>());
}

AudioPositions audio_positions_for(const KindSelection<Position>& position) {
  return position == Position::learned || position == Position::sinusoidal ? AudioPositions::sinusoidal
                                                                           : AudioPositions::none;
}

}  // namespace

std::optional<RecordingInput> recording_input(const ModelConfig& config) {
  if (is_whisper(config) || config.architecture.type == "speech_encoder") return RecordingInput::spectrogram;
  return config.architecture.type == "wave_encoder" ? std::optional(RecordingInput::samples) : std::nullopt;
}

int64_t samples_per_vector(const ModelConfig& config, int64_t hop) {
  constexpr int64_t frames = 2;  // the second convolution of an AudioEmbedder leaves out every other one
  return reads_spectrograms(config) ? frames * hop : wave_options(config).total_stride();
}

std::optional<int64_t> padded_frames(const ModelConfig& config) {
  if (!is_whisper(config)) return std::nullopt;
  const auto& whisper = config.architecture.as<WhisperConfig>();
  return whisper.pad_to_max ? std::optional(whisper.max_frames) : std::nullopt;
}

int64_t most_frames(const ModelConfig& config) {
  return with_keys(config, [](const auto& keys) { return keys.max_frames; });
}

std::optional<int64_t> configured_mels(const ModelConfig& config) {
  return with_keys(config, [](const auto& keys) { return keys.n_mels; });
}

void set_mels(ModelConfig& config, int64_t n_mels) {
  config.architecture = with_keys(config, [&](auto keys) {
    keys.n_mels = n_mels;
    return Selection(config.architecture.type, keys);
  });
}

int64_t n_mels_of(const ModelConfig& config, const ModelPurpose& purpose) {
  constexpr int64_t of_whisper = 80;
  return configured_mels(config).value_or(purpose.n_mels > 0 ? purpose.n_mels : of_whisper);
}

AudioEmbedderOptions recording_options(const ModelConfig& config, const ModelPurpose& purpose) {
  return AudioEmbedderOptions(config.d_model, n_mels_of(config, purpose))
      .max_frames(most_frames(config))
      .length(RecordingLength::own)
      .positions(audio_positions_for(config.position))
      .found_positions(found_positions_of(config))
      .dropout(config.dropout);
}

void validate_audio_positions(const ModelConfig& config, const Complain& complain) {
  const bool has_sinusoids = audio_positions_for(config.position) == AudioPositions::sinusoidal;
  if (has_sinusoids && (config.d_model % 2 != 0 || config.d_model < 4))
    complain("d_model", "must be even and at least 4: a half of the positions are sines, the other cosines");
}

int64_t n_frames_of(const PassShape& shape) {
  const auto sizes = shape.sizes_of(fields::kSpectrograms);
  return sizes.empty() ? 2 * shape.length : sizes.back();
}

}  // namespace zoo
