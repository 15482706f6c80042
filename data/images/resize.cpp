#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace zoo {
namespace {

/// The pixels of a line that one pixel of the resized line is a mean of, and their weights.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

/// For the pixels begin … begin + n - 1 of a line of `from` pixels that is resized to `to`.
std::vector<Taps> taps_of(int64_t from, int64_t to, int64_t begin, int64_t n) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> result;
  for (int64_t i = begin; i < begin + n; ++i) {
    const double center = scale * (static_cast<double>(i) + 0.5);
    const auto first =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - reach + 0.5)), 0, from - 1);
    const auto end =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(center + reach + 0.5)), first + 1, from);
    Taps taps{.first = first, .weights = {}};
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(j) - center + 0.5) / reach);
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
    result.push_back(std::move(taps));
  }
  return result;
}

uint8_t as_pixel(float value) {
  constexpr float white = 255;
  return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0F, white));
}

/// The window of a part of an image that is resized to height × width.
Image sampled(const Image& image, const Rectangle& part, int64_t height, int64_t width,
              const Rectangle& window) {
  const auto& from = image.shape;
  const auto columns = taps_of(part.width, width, window.left, window.width),
             rows = taps_of(part.height, height, window.top, window.height);
  // Each row that the window needs is first brought to the width of the window.
  const int64_t first_row = rows.front().first,
                n_rows = rows.back().first + std::ssize(rows.back().weights) - first_row;
  std::vector<float> narrow(static_cast<size_t>(n_rows * window.width));
  std::vector<float> sums(static_cast<size_t>(window.width));
  Image result{.shape = {.channels = from.channels, .height = window.height, .width = window.width},
               .pixels = {}};
  result.pixels.reserve(static_cast<size_t>(from.channels * window.height * window.width));
  for (int64_t c = 0; c < from.channels; ++c) {
    float* to = narrow.data();
    for (int64_t row = first_row; row < first_row + n_rows; ++row) {
      const uint8_t* const line =
          image.pixels.data() + (c * from.height + part.top + row) * from.width + part.left;
      for (const auto& [first, weights] : columns) {
        float sum = 0;
        const uint8_t* pixel = line + first;
        for (const float weight : weights) sum += weight * static_cast<float>(*pixel++);
        *to++ = sum;
      }
    }
    for (const auto& [first, weights] : rows) {
      std::ranges::fill(sums, 0.0F);
      const float* value = narrow.data() + (first - first_row) * window.width;
      for (const float weight : weights)
        for (float& sum : sums) sum += weight * *value++;
      for (const float sum : sums) result.pixels.push_back(as_pixel(sum));
    }
  }
  return result;
}

}  // namespace

Rectangle whole(const ImageShape& shape) {
  return {.top = 0, .left = 0, .height = shape.height, .width = shape.width};
}

Image cut_out(const Image& image, const Rectangle& part) {
  const auto& [channels, height, width] = image.shape;
  Image result{.shape = {.channels = channels, .height = part.height, .width = part.width}, .pixels = {}};
  if (image.pixels.empty()) return result;
  result.pixels.resize(static_cast<size_t>(channels * part.height * part.width));
  const int64_t first_row = std::max<int64_t>(0, -part.top),
                last_row = std::min(part.height, height - part.top);
  const int64_t first = std::max<int64_t>(0, -part.left), last = std::min(part.width, width - part.left);
  if (first >= last) return result;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t row = first_row; row < last_row; ++row) {
      const auto* const from = image.pixels.data() + (c * height + part.top + row) * width + part.left;
      auto* const to = result.pixels.data() + (c * part.height + row) * part.width;
      std::copy(from + first, from + last, to + first);
    }
  }
  return result;
}

Image resized(const Image& image, const Rectangle& part, int64_t height, int64_t width) {
  if (part.height == height && part.width == width) return cut_out(image, part);
  if (image.pixels.empty())
    return {.shape = {.channels = image.shape.channels, .height = height, .width = width}, .pixels = {}};
  return sampled(image, part, height, width, {.height = height, .width = width});
}

Image resized_window(const Image& image, int64_t height, int64_t width, const Rectangle& window) {
  if (image.shape.height == height && image.shape.width == width) return cut_out(image, window);
  return sampled(image, whole(image.shape), height, width, window);
}

}  // namespace zoo
