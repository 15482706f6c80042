#include "data/audio_config.h"

#include <fmt/format.h>

namespace zoo {

void describe(ConfigVisitor& v, SpecAugmentConfig& c) {
  constexpr double most_masks = 100, widest = 1e5;
  v.field("frequency_masks", c.frequency_masks, "Masks over bands.", Limits::between(0, most_masks));
  v.field("frequency_width", c.frequency_width, "Most bands of a mask.", Limits::between(0, widest));
  v.field("time_masks", c.time_masks, "Masks over frames.", Limits::between(0, most_masks));
  v.field("time_width", c.time_width, "Most frames of a mask.", Limits::between(0, widest));
  v.field("time_share", c.time_share, "Largest share of a recording's frames that one mask hides.",
          Limits::between(0, 1));
}

void describe(ConfigVisitor& v, AudioAugmentConfig& c) {
  constexpr double fastest = 0.5, longest_shift = 10, loudest = 40;
  v.field("speed", c.speed, "Play recordings up to this share faster or slower; 0 = as they are.",
          Limits::between(0, fastest));
  v.field("shift", c.shift, "Up to so many seconds of silence before and after a recording.",
          Limits::between(0, longest_shift));
  v.field("gain", c.gain, "Up to so many decibels louder or softer.", Limits::between(0, loudest));
  v.field("spec_augment", c.spec_augment,
          "Hide parts of the spectrogram (SpecAugment); default: nothing is hidden.");
}

void describe(ConfigVisitor& v, AudioConfig& c) {
  constexpr double lowest_rate = 1000, highest_rate = 192'000, most_bands = 512, widest = 1 << 15,
                   longest = 600;
  v.field("sample_rate", c.sample_rate,
          "Samples per second that the model reads; recordings with another rate are resampled.",
          Limits::between(lowest_rate, highest_rate));
  v.field("n_mels", c.n_mels, "Bands of the spectrogram.", Limits::between(1, most_bands));
  v.field("n_fft", c.n_fft, "Samples of a window of the spectrogram.", Limits::between(2, widest));
  v.field("hop", c.hop, "Samples from one frame of the spectrogram to the next.", Limits::between(1, widest));
  v.field("max_seconds", c.max_seconds, "Longest recording; longer ones are refused.",
          {.min = 0, .max = longest, .min_excluded = true});
  v.field("padding", c.padding,
          "batch: spectrograms are padded to the longest of their batch; longest: recordings are padded with "
          "silence to max_seconds, as published Whisper models have it.");
  v.field("normalization", c.normalization,
          "whisper: the range of log-mel spectrograms as Whisper has it; recording: each band of a recording "
          "gets the mean 0 and the deviation 1.");
  v.field(
      "standardize", c.standardize,
      "For a model that reads samples (wave_encoder): those of a recording get the mean 0 and the deviation "
      "1; false: they stay as they are.");
  v.field("augment", c.augment, "Random changes of training recordings.");
}

void validate(const AudioConfig& c, const Complain& complain) {
  if (c.hop > c.n_fft)
    complain("hop", fmt::format("{} is more than n_fft {}: samples would be left out", c.hop, c.n_fft));
  if (c.max_samples() < c.hop) {
    complain("max_seconds", fmt::format("{} is less than a frame ({} samples of {} per second)",
                                        c.max_seconds, c.hop, c.sample_rate));
  }
}

}  // namespace zoo
