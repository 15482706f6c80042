#include "data/images/pixel_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/splits.h"

namespace zoo {

bool can_normalize(const PixelStatistics& pixels, int64_t n_channels) {
  const auto& [mean, deviation] = pixels;
  return std::ssize(mean) == n_channels && std::ssize(deviation) == n_channels &&
         std::ranges::all_of(mean, [](double x) { return std::isfinite(x); }) &&
         std::ranges::all_of(deviation, [](double x) { return std::isfinite(x) && x > 0; });
}

PixelStatistics measure_pixels(int64_t n_images, const std::function<Image(int64_t)>& image_of) {
  constexpr int64_t most_images = 2048, n_values = 256;
  constexpr double white = 255;
  const int64_t n = std::min(n_images, most_images);
  std::vector<std::array<int64_t, n_values>> counts;
  auto chosen = random_order(n_images);
  chosen.resize(static_cast<size_t>(n));
  for (const int64_t index : chosen) {
    const Image image = image_of(index);
    counts.resize(static_cast<size_t>(image.shape.channels));
    const auto plane = static_cast<size_t>(image.shape.height * image.shape.width);
    for (size_t at = 0; at < image.pixels.size(); ++at) ++counts[at / plane][image.pixels[at]];
  }
  PixelStatistics result;
  for (const auto& of_channel : counts) {
    double total = 0, sum = 0, squares = 0;
    for (int64_t value = 0; value < n_values; ++value) {
      const auto count = static_cast<double>(of_channel[static_cast<size_t>(value)]);
      const double x = static_cast<double>(value) / white;
      total += count, sum += count * x, squares += count * x * x;
    }
    const double mean = sum / total, variance = squares / total - mean * mean;
    constexpr double least = 1e-12;
    result.mean.push_back(mean);
    result.deviation.push_back(variance > least ? std::sqrt(variance) : 1.0);
  }
  return result;
}

}  // namespace zoo
