#include "models/families/recordings.h"

#include "models/families/speech_encoder.h"
#include "models/families/whisper.h"

namespace zoo {
namespace {

bool is_whisper(const ModelConfig& config) { return config.architecture.type == "whisper"; }

}  // namespace

bool reads_recordings(const ModelConfig& config) {
  return is_whisper(config) || config.architecture.type == "speech_encoder";
}

std::optional<int64_t> padded_frames(const ModelConfig& config) {
  if (!is_whisper(config)) return std::nullopt;
  const auto& whisper = config.architecture.as<WhisperConfig>();
  return whisper.pad_to_max ? std::optional(whisper.max_frames) : std::nullopt;
}

int64_t most_frames(const ModelConfig& config) {
  const auto& selection = config.architecture;
  return is_whisper(config) ? selection.as<WhisperConfig>().max_frames
                            : selection.as<SpeechEncoderConfig>().max_frames;
}

std::optional<int64_t> configured_mels(const ModelConfig& config) {
  const auto& selection = config.architecture;
  return is_whisper(config) ? selection.as<WhisperConfig>().n_mels
                            : selection.as<SpeechEncoderConfig>().n_mels;
}

void set_mels(ModelConfig& config, int64_t n_mels) {
  auto& selection = config.architecture;
  if (is_whisper(config)) {
    auto options = selection.as<WhisperConfig>();
    options.n_mels = n_mels;
    selection = Selection("whisper", options);
  } else {
    auto options = selection.as<SpeechEncoderConfig>();
    options.n_mels = n_mels;
    selection = Selection("speech_encoder", options);
  }
}

int64_t n_mels_of(const ModelConfig& config, const ModelPurpose& purpose) {
  constexpr int64_t of_whisper = 80;
  return configured_mels(config).value_or(purpose.n_mels > 0 ? purpose.n_mels : of_whisper);
}

AudioPositions audio_positions_for(Position position) {
  return position == Position::learned || position == Position::sinusoidal ? AudioPositions::sinusoidal
                                                                           : AudioPositions::none;
}

void validate_audio_positions(const ModelConfig& config, const Complain& complain) {
  const bool has_sinusoids = audio_positions_for(config.position) == AudioPositions::sinusoidal;
  if (has_sinusoids && (config.d_model % 2 != 0 || config.d_model < 4))
    complain("d_model", "must be even and at least 4: a half of the positions are sines, the other cosines");
}

}  // namespace zoo
