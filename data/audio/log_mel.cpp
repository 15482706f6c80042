#include "data/audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <torch/types.h>

#include "base/random.h"

namespace zoo {
namespace {

// Slaney's scale: 200/3 Hz a mel up to 1 kHz, which is mel 15, then 27 mels for a factor of 6.4.
constexpr double kLinearStep = 200.0 / 3, kBreak = 1000, kBreakMel = 15, kMels = 27, kFactor = 6.4;

double mel_of(double hertz) {
  if (hertz < kBreak) return hertz / kLinearStep;
  return kBreakMel + std::log(hertz / kBreak) * kMels / std::log(kFactor);
}

double hertz_of(double mel) {
  if (mel < kBreakMel) return mel * kLinearStep;
  return kBreak * std::exp((mel - kBreakMel) * std::log(kFactor) / kMels);
}

/// The index of the sample that stands at `i` of a recording that is mirrored at its ends.
int64_t mirrored(int64_t i, int64_t n) {
  if (i < 0) i = -i;
  return i < n ? i : 2 * (n - 1) - i;
}

/// x ← (x - mean) / deviation, for each band.
void standardise(torch::Tensor& bands) {
  constexpr double least = 1e-5;
  const int64_t M = bands.size(0), N = bands.size(1);
  double* row = bands.mutable_data_ptr<double>();
  for (int64_t m = 0; m < M; ++m, row += N) {
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < N; ++n) sum += row[n];
    const double mean = sum / static_cast<double>(N);
    for (int64_t n = 0; n < N; ++n) squares += (row[n] - mean) * (row[n] - mean);
    const double scale = 1 / (std::sqrt(squares / static_cast<double>(N)) + least);
    for (int64_t n = 0; n < N; ++n) row[n] = (row[n] - mean) * scale;
  }
}

/// A mask of 0 … `widest` places among `n`: its first place and its width.
std::pair<int64_t, int64_t> draw_mask(int64_t n, int64_t widest, CounterRandom& random) {
  const int64_t width = random.below(std::min(widest, n) + 1), first = random.below(n - width + 1);
  return {first, width};
}

}  // namespace

std::vector<std::vector<double>> mel_filters(int64_t n_mels, int64_t n_fft, int64_t sample_rate) {
  const auto n_bins = static_cast<size_t>(n_fft / 2 + 1);
  const double nyquist = static_cast<double>(sample_rate) / 2, top = mel_of(nyquist);
  std::vector<double> corners;
  for (int64_t i = 0; i < n_mels + 2; ++i)
    corners.push_back(hertz_of(top * static_cast<double>(i) / static_cast<double>(n_mels + 1)));
  std::vector<std::vector<double>> filters;
  for (size_t m = 0; m < static_cast<size_t>(n_mels); ++m) {
    const double left = corners[m], peak = corners[m + 1], right = corners[m + 2];
    auto& row = filters.emplace_back(n_bins);
    for (size_t k = 0; k < n_bins; ++k) {
      const double f = static_cast<double>(sample_rate) * static_cast<double>(k) / static_cast<double>(n_fft);
      const double height = std::min((f - left) / (peak - left), (right - f) / (right - peak));
      row[k] = std::max(0.0, height) * 2 / (right - left);
    }
  }
  return filters;
}

LogMel::LogMel(const AudioConfig& config)
    : n_fft_(config.n_fft), hop_(config.hop), normalization_(config.normalization) {
  for (int64_t i = 0; i < n_fft_; ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(n_fft_);
    window_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn));
  }
  for (const auto& row : mel_filters(config.n_mels, config.n_fft, config.sample_rate)) {
    const auto is_used = [](double weight) { return weight > 0; };
    const auto first = std::ranges::find_if(row, is_used);
    const auto end = std::find_if_not(first, row.end(), is_used);
    bands_.push_back({.first = first == row.end() ? 0 : first - row.begin(), .weights = {first, end}});
  }
}

int64_t LogMel::n_frames(int64_t n) const { return std::max<int64_t>(1, n / hop_); }

torch::Tensor LogMel::operator()(std::span<const float> samples) const {
  constexpr double quietest = 1e-10, range = 8;
  const int64_t n_samples = std::ssize(samples), N = n_frames(n_samples), M = std::ssize(bands_);
  const int64_t n_read = std::max(n_samples, n_fft_), n_bins = n_fft_ / 2 + 1;
  const auto at = [&](int64_t i) {
    const int64_t from = mirrored(i, n_read);
    return from < n_samples ? static_cast<double>(samples[static_cast<size_t>(from)]) : 0;
  };
  auto bands = torch::empty({M, N}, torch::kDouble);
  double* const to = bands.mutable_data_ptr<double>();
  constexpr int64_t at_once = 256;
  for (int64_t begin = 0; begin < N; begin += at_once) {
    const int64_t n = std::min(at_once, N - begin);
    auto windows = torch::empty({n, n_fft_}, torch::kDouble);
    double* window = windows.mutable_data_ptr<double>();
    for (int64_t frame = begin; frame < begin + n; ++frame, window += n_fft_) {
      const int64_t first = frame * hop_ - n_fft_ / 2;
      for (int64_t i = 0; i < n_fft_; ++i) window[i] = at(first + i) * window_[static_cast<size_t>(i)];
    }
    const auto spectra = at::view_as_real(at::fft_rfft(windows)).contiguous();  // (n, bins, 2)
    const double* spectrum = spectra.const_data_ptr<double>();
    for (int64_t frame = begin; frame < begin + n; ++frame, spectrum += 2 * n_bins) {
      for (int64_t m = 0; m < M; ++m) {
        const auto& band = bands_[static_cast<size_t>(m)];
        const double* bin = spectrum + 2 * band.first;
        double energy = 0;
        for (const double weight : band.weights) {
          energy += weight * (bin[0] * bin[0] + bin[1] * bin[1]);
          bin += 2;
        }
        to[m * N + frame] = std::log10(std::max(energy, quietest));
      }
    }
  }
  const double floor = *std::max_element(to, to + M * N) - range;
  for (int64_t i = 0; i < M * N; ++i) to[i] = std::max(to[i], floor);
  if (normalization_ == SpectrogramNormalization::recording) {
    standardise(bands);
  } else {
    for (int64_t i = 0; i < M * N; ++i) to[i] = (to[i] + 4) / 4;
  }
  return bands.to(torch::kFloat);
}

void hide_parts(torch::Tensor& spectrogram, const SpecAugmentConfig& options, CounterRandom& random) {
  const int64_t M = spectrogram.size(0), N = spectrogram.size(1);
  float* const values = spectrogram.mutable_data_ptr<float>();
  double sum = 0;
  for (int64_t i = 0; i < M * N; ++i) sum += static_cast<double>(values[i]);
  const auto mean = static_cast<float>(sum / static_cast<double>(M * N));
  for (int64_t i = 0; i < options.frequency_masks; ++i) {
    const auto [first, width] = draw_mask(M, options.frequency_width, random);
    std::fill_n(values + first * N, width * N, mean);
  }
  const auto most = static_cast<int64_t>(options.time_share * static_cast<double>(N));
  for (int64_t i = 0; i < options.time_masks; ++i) {
    const auto [first, width] = draw_mask(N, std::min(options.time_width, most), random);
    for (int64_t m = 0; m < M; ++m) std::fill_n(values + m * N + first, width, mean);
  }
}

}  // namespace zoo
