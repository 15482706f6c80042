#pragma once
// `data.audio:`, how recordings become inputs of a model.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/config/config_file.h"

namespace zoo {

/// Parts of a spectrogram that are hidden at random (SpecAugment, Park et al. 2019, without warping). They
/// become the mean of the spectrogram.
struct SpecAugmentConfig {
  int64_t frequency_masks = 2;   // masks over bands
  int64_t frequency_width = 10;  // a mask has 0 … frequency_width bands
  int64_t time_masks = 2;        // masks over frames
  int64_t time_width = 20;       // a mask has 0 … time_width frames
  double time_share = 0.2;       // and at most this share of the recording's frames
};
void describe(ConfigVisitor& v, SpecAugmentConfig& c);

/// Random changes of training recordings. Each is a function of (training.seed, epoch, recording) alone.
struct AudioAugmentConfig {
  /// A recording is played up to this share faster or slower, in steps of 1 %, which changes its pitch, too
  /// (Ko et al. 2015).
  double speed = 0;
  double shift = 0;                                    // up to so many seconds of silence before and after it
  double gain = 0;                                     // up to so many decibels louder or softer
  std::optional<SpecAugmentConfig> spec_augment = {};  // default: nothing is hidden
};
void describe(ConfigVisitor& v, AudioAugmentConfig& c);

/// How the numbers of a spectrogram, log10 of the energy in each band, are brought to a common range. Both
/// first raise what is more than 8 below the largest number of the recording.
///   whisper    (x + 4) / 4 (Radford et al. 2022): the loudness of a recording is to be seen
///   recording  each band gets the mean 0 and the deviation 1 over the recording
enum class SpectrogramNormalization { whisper, recording };
constexpr auto config_names(SpectrogramNormalization) {
  return std::to_array<std::string_view>({"whisper", "recording"});
}

/// How the recordings of a batch get one length.
///   batch    spectrograms are padded to the longest of the batch, and the model is told their lengths
///   longest  recordings are padded with silence to max_seconds, as published Whisper models have it
enum class RecordingPadding { batch, longest };
constexpr auto config_names(RecordingPadding) {
  return std::to_array<std::string_view>({"batch", "longest"});
}

struct AudioConfig {
  int64_t sample_rate = 16000;  // samples per second that the model reads; recordings are resampled to it
  int64_t n_mels = 80;          // bands
  int64_t n_fft = 400;          // samples of a window
  int64_t hop = 160;            // samples from one window to the next
  double max_seconds = 30;      // longer recordings are refused
  RecordingPadding padding = RecordingPadding::batch;
  SpectrogramNormalization normalization = SpectrogramNormalization::whisper;
  bool standardize = true;  // of a model that reads samples: those of a recording get mean 0 and deviation 1
  AudioAugmentConfig augment;

  /// The samples of the longest recording, in the model's rate.
  int64_t max_samples() const { return static_cast<int64_t>(max_seconds * static_cast<double>(sample_rate)); }
};
void describe(ConfigVisitor& v, AudioConfig& c);
/// Checks across keys.
void validate(const AudioConfig& c, const Complain& complain);

}  // namespace zoo
