#pragma once
// Spectrograms of recordings, as speech models read them.

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "data/audio_config.h"

namespace zoo {

class CounterRandom;

/// Weights (n_mels rows, n_fft / 2 + 1 columns) that gather the energies of a spectrum in bands: triangles at
/// equal distances on Slaney's mel scale (Auditory Toolbox, 1998: linear to 1 kHz, logarithmic above) from 0
/// to half the rate, each with the same area. Equal to librosa.filters.mel(norm="slaney", htk=False).
std::vector<std::vector<double>> mel_filters(int64_t n_mels, int64_t n_fft, int64_t sample_rate);

/// Log-mel spectrograms (Radford et al. 2022). A frame every `hop` samples has the energies of n_fft samples
/// around it, in a Hann window, in n_mels bands, as log10 of at least 1e-10. The recording is mirrored at its
/// ends. Computed in double, so with normalization: whisper the result equals that of
/// transformers.WhisperFeatureExtractor up to its rounding.
class LogMel {
 public:
  /// Reads the keys sample_rate, n_mels, n_fft, hop and normalization.
  explicit LogMel(const AudioConfig& config);

  /// The frames of a recording with `n` samples: n / hop, at least 1.
  int64_t n_frames(int64_t n) const;
  /// (M, N) float on the CPU. A recording of less than n_fft samples is continued with zeros before.
  torch::Tensor operator()(std::span<const float> samples) const;

 private:
  /// The weights of a band, from its first bin with a weight on.
  struct Band {
    int64_t first = 0;
    std::vector<double> weights;
  };

  int64_t n_fft_, hop_;
  SpectrogramNormalization normalization_;
  std::vector<double> window_;
  std::vector<Band> bands_;
};

/// Hides parts of a spectrogram (M, N), in place, as the options say; they become its mean.
void hide_parts(torch::Tensor& spectrogram, const SpecAugmentConfig& options, CounterRandom& random);

}  // namespace zoo
