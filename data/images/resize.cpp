#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace zoo {
namespace {

// Weights are whole multiples of 2^-22, as in Pillow: eight bits of a pixel, two of room for sums beyond
// white.
constexpr int kFraction = 32 - 8 - 2;

/// The pixels of a line that one pixel of the resized line is a mean of, and their weights.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

/// How far from its centre a filter reaches, in pixels of the smaller image.
double reach_of(PictureFilter filter) {
  switch (filter) {
    case PictureFilter::lanczos:
      return 3;
    case PictureFilter::bicubic:
      return 2;
    case PictureFilter::box:
      return 0.5;
    default:
      return 1;
  }
}

double weight_at(double x, PictureFilter filter) {
  constexpr double a = -0.5;  // of the cubic
  const double away = std::abs(x);
  switch (filter) {
    case PictureFilter::lanczos:
      return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    case PictureFilter::bicubic:
      if (away < 1) return ((a + 2) * away - (a + 3)) * away * away + 1;
      return away < 2 ? (((away - 5) * away + 8) * away - 4) * a : 0;
    case PictureFilter::box:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case PictureFilter::hamming:
      return away < 1 ? sinc(away) * (0.54 + 0.46 * std::cos(away * std::numbers::pi)) : 0;
    default:
      return std::max(0.0, 1 - away);
  }
}

/// One pixel for each. Pillow adds up the places one by one, and so do we for lines of usual lengths: a sum
/// differs from a product where a place is nearly the edge of a pixel.
std::vector<Taps> nearest_taps(int64_t from, int64_t to, int64_t begin, int64_t n) {
  constexpr int64_t usual = 1 << 16;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  double place = scale * 0.5;
  if (to <= usual) {
    for (int64_t i = 0; i < begin; ++i) place += scale;
  } else {
    place += scale * static_cast<double>(begin);
  }
  std::vector<Taps> result;
  for (int64_t i = 0; i < n; ++i, place += scale)
    result.push_back({.first = std::min(static_cast<int64_t>(place), from - 1), .weights = {1 << kFraction}});
  return result;
}

/// For the pixels begin … begin + n - 1 of a line of `from` pixels that is resized to `to`.
std::vector<Taps> taps_of(int64_t from, int64_t to, int64_t begin, int64_t n, PictureFilter filter) {
  if (from == to) filter = PictureFilter::nearest;  // the line itself
  if (filter == PictureFilter::nearest) return nearest_taps(from, to, begin, n);
  const double scale = static_cast<double>(from) / static_cast<double>(to), shrink = std::max(scale, 1.0);
  const double reach = reach_of(filter) * shrink;
  std::vector<Taps> result;
  for (int64_t i = begin; i < begin + n; ++i) {
    const double center = scale * (static_cast<double>(i) + 0.5);
    const auto first = std::max<int64_t>(static_cast<int64_t>(center - reach + 0.5), 0);
    const auto end = std::min<int64_t>(static_cast<int64_t>(center + reach + 0.5), from);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      weights.push_back(weight_at((static_cast<double>(j) - center + 0.5) * (1 / shrink), filter));
      sum += weights.back();
    }
    Taps taps{.first = first, .weights = {}};
    for (const double weight : weights) {
      const double exact = (sum == 0 ? weight : weight / sum) * (1 << kFraction);
      taps.weights.push_back(static_cast<int32_t>(exact + (exact < 0 ? -0.5 : 0.5)));
    }
    result.push_back(std::move(taps));
  }
  return result;
}

constexpr int32_t kHalf = 1 << (kFraction - 1);

uint8_t as_pixel(int32_t sum) {
  constexpr int32_t white = 255;
  return static_cast<uint8_t>(std::clamp(sum >> kFraction, 0, white));
}

/// The pixels of a line from the first to the last one that `taps` need.
struct Span {
  int64_t begin, end;
};
Span span_of(const std::vector<Taps>& taps) {
  Span span{taps.front().first, taps.front().first};
  for (const auto& [first, weights] : taps) span.end = std::max(span.end, first + std::ssize(weights));
  return span;
}

/// Rows of pixels, one after the other, and the places of the first row and column in the picture.
struct Plane {
  const uint8_t* pixels;
  int64_t stride;
  int64_t top, left;
};

/// A pixel for each of `columns`, in the rows of a span.
std::vector<uint8_t> across(const Plane& from, const Span& rows, const std::vector<Taps>& columns) {
  std::vector<uint8_t> result;
  result.reserve(static_cast<size_t>(rows.end - rows.begin) * columns.size());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const uint8_t* const line = from.pixels + (row - from.top) * from.stride;
    for (const auto& [first, weights] : columns) {
      int32_t sum = kHalf;
      const uint8_t* pixel = line + (first - from.left);
      for (const int32_t weight : weights) sum += weight * *pixel++;
      result.push_back(as_pixel(sum));
    }
  }
  return result;
}

/// A row for each of `rows`, of the columns of a span.
std::vector<uint8_t> down(const Plane& from, const std::vector<Taps>& rows, const Span& columns) {
  std::vector<uint8_t> result;
  const auto width = static_cast<size_t>(columns.end - columns.begin);
  result.reserve(rows.size() * width);
  std::vector<int32_t> sums(width);
  for (const auto& [first, weights] : rows) {
    std::ranges::fill(sums, kHalf);
    const uint8_t* line = from.pixels + (first - from.top) * from.stride + (columns.begin - from.left);
    for (const int32_t weight : weights) {
      for (size_t i = 0; i < width; ++i) sums[i] += weight * line[i];
      line += from.stride;
    }
    for (const int32_t sum : sums) result.push_back(as_pixel(sum));
  }
  return result;
}

/// The window of a part of an image that is resized to height × width. As in Pillow, what is between the two
/// directions is rounded to whole numbers, too, and as in Pillow 13, rows come first where many more of them
/// go than of the columns.
Image sampled(const Image& image, const Rectangle& part, int64_t height, int64_t width,
              const Rectangle& window, PictureFilter filter) {
  const auto& from = image.shape;
  const auto columns = taps_of(part.width, width, window.left, window.width, filter),
             rows = taps_of(part.height, height, window.top, window.height, filter);
  const auto row_span = span_of(rows), column_span = span_of(columns);
  const int64_t rows_less = part.height - height, columns_less = part.width - width;
  const bool rows_first = rows_less > 0 && rows_less > 2 * columns_less;
  Image result{.shape = {.channels = from.channels, .height = window.height, .width = window.width},
               .pixels = {}};
  result.pixels.reserve(static_cast<size_t>(from.channels * window.height * window.width));
  for (int64_t c = 0; c < from.channels; ++c) {
    const Plane plane{.pixels = image.pixels.data() + (c * from.height + part.top) * from.width + part.left,
                      .stride = from.width,
                      .top = 0,
                      .left = 0};
    std::vector<uint8_t> done;
    if (rows_first) {
      const auto flat = down(plane, rows, column_span);
      done = across({.pixels = flat.data(),
                     .stride = column_span.end - column_span.begin,
                     .top = 0,
                     .left = column_span.begin},
                    {0, window.height}, columns);
    } else {
      const auto narrow = across(plane, row_span, columns);
      done = down({.pixels = narrow.data(), .stride = window.width, .top = row_span.begin, .left = 0}, rows,
                  {0, window.width});
    }
    result.pixels.insert(result.pixels.end(), done.begin(), done.end());
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

Image resized(const Image& image, const Rectangle& part, int64_t height, int64_t width,
              PictureFilter filter) {
  if (part.height == height && part.width == width) return cut_out(image, part);
  if (image.pixels.empty())
    return {.shape = {.channels = image.shape.channels, .height = height, .width = width}, .pixels = {}};
  return sampled(image, part, height, width, {.height = height, .width = width}, filter);
}

Image resized_window(const Image& image, int64_t height, int64_t width, const Rectangle& window,
                     PictureFilter filter) {
  if (image.shape.height == height && image.shape.width == width) return cut_out(image, window);
  return sampled(image, whole(image.shape), height, width, window, filter);
}

}  // namespace zoo
