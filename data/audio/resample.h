#pragma once
// Brings recordings to another rate.

#include <cstdint>
#include <span>
#include <vector>

namespace zoo {

/// ⌈n · to / from⌉: the samples of a resampled recording.
int64_t resampled_length(int64_t n, int64_t from, int64_t to);

/// The samples of a recording with `from` samples per second as they would be with `to`: the band-limited
/// signal (J. O. Smith 2002, "Digital Audio Resampling") at the new places. The kernel is a sinc that cuts
/// off at 0.99 of the lower of both Nyquist frequencies, times a Hann window over six of its zeros on each
/// side; outside of the recording there are zeros. Equal to torchaudio.functional.resample with its defaults,
/// up to rounding, but needs no table of `to` kernels where the rates have no large common divisor.
std::vector<float> resample(std::span<const float> samples, int64_t from, int64_t to);

}  // namespace zoo
