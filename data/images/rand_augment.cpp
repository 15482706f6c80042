#include "data/images/rand_augment.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace zoo {
namespace {

constexpr int64_t n_values = 256;
using LookupTable = std::array<uint8_t, n_values>;
using Counts = std::array<int64_t, n_values>;

int64_t plane_of(const Image& image) { return image.shape.height * image.shape.width; }

Image blank_like(const Image& image) {
  return {.shape = image.shape, .pixels = std::vector<uint8_t>(image.pixels.size())};
}

// ---- Shapes --------------------------------------------------------------------------------------------

/// The place (x, y) in the old image for the place (u, v) in the new one: x = a·u + b·v + c, y = d·u + e·v +
/// f.
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

/// In numbers with 16 binary places, as PIL computes, so that all machines take the same pixels.
Image moved(const Image& image, const Affine& map) {
  constexpr int binary_places = 16;
  const auto fixed = [](double x) {
    return static_cast<int64_t>(std::floor(x * (1 << binary_places) + 0.5));
  };
  const int64_t across_x = fixed(map.a), across_y = fixed(map.d), down_x = fixed(map.b),
                down_y = fixed(map.e);
  // The middle of the first pixel.
  int64_t row_x = fixed(map.c + map.a * 0.5 + map.b * 0.5), row_y = fixed(map.f + map.d * 0.5 + map.e * 0.5);
  const auto& [channels, height, width] = image.shape;
  Image result = blank_like(image);
  for (int64_t v = 0; v < height; ++v, row_x += down_x, row_y += down_y) {
    int64_t at_x = row_x, at_y = row_y;
    for (int64_t u = 0; u < width; ++u, at_x += across_x, at_y += across_y) {
      const int64_t x = at_x >> binary_places, y = at_y >> binary_places;
      if (x < 0 || x >= width || y < 0 || y >= height) continue;
      for (int64_t c = 0; c < channels; ++c) {
        result.pixels[static_cast<size_t>((c * height + v) * width + u)] =
            image.pixels[static_cast<size_t>((c * height + y) * width + x)];
      }
    }
  }
  return result;
}

Image rotated(const Image& image, double degrees) {
  const double angle = -degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double x = static_cast<double>(image.shape.width) / 2,
               y = static_cast<double>(image.shape.height) / 2;
  return moved(image, {.a = cosine,
                       .b = sine,
                       .c = x - cosine * x - sine * y,
                       .d = -sine,
                       .e = cosine,
                       .f = y + sine * x - cosine * y});
}

// ---- Blends with another image -------------------------------------------------------------------------

/// other + factor · (image - other), cut to 0 … 255 and rounded down.
Image blended(const Image& other, const Image& image, double factor) {
  const auto share = static_cast<float>(factor);
  Image result = blank_like(image);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const int from = other.pixels[i], to = image.pixels[i];
    const float value = static_cast<float>(from) + share * static_cast<float>(to - from);
    result.pixels[i] = static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
  }
  return result;
}

/// The brightness of each pixel, in every channel.
Image grey_of(const Image& image) {
  if (image.shape.channels == 1) return image;
  Image grey = blank_like(image);
  const auto plane = static_cast<size_t>(plane_of(image));
  for (size_t i = 0; i < plane; ++i) {
    const auto& p = image.pixels;
    const uint8_t value = luma(p[i], p[plane + i], p[2 * plane + i]);
    for (size_t c = 0; c < 3; ++c) grey.pixels[c * plane + i] = value;
  }
  return grey;
}

/// The mean brightness everywhere.
Image mean_of(const Image& image) {
  Image result = grey_of(image);
  const auto end = result.pixels.begin() + plane_of(result);
  const double sum = std::accumulate(result.pixels.begin(), end, 0.0);
  const auto mean = static_cast<uint8_t>(sum / static_cast<double>(plane_of(result)) + 0.5);
  std::ranges::fill(result.pixels, mean);
  return result;
}

/// Weighted means of 3 × 3 pixels, the one in the middle five times; the frame stays as it is.
Image blurred(const Image& image) {
  const auto& [channels, height, width] = image.shape;
  Image result = image;
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* const from = image.pixels.data() + c * height * width;
    uint8_t* const to = result.pixels.data() + c * height * width;
    for (int64_t y = 1; y + 1 < height; ++y) {
      for (int64_t x = 1; x + 1 < width; ++x) {
        int sum = 4 * from[y * width + x];
        for (int64_t dy = -1; dy <= 1; ++dy)
          for (int64_t dx = -1; dx <= 1; ++dx) sum += from[(y + dy) * width + x + dx];
        to[y * width + x] = static_cast<uint8_t>((2 * sum + 13) / 26);  // sum / 13, rounded
      }
    }
  }
  return result;
}

// ---- New values for old ones ---------------------------------------------------------------------------

/// table(c) of each channel c.
template <class MakeTable>
Image mapped(const Image& image, MakeTable table) {
  Image result = image;
  for (int64_t c = 0; c < image.shape.channels; ++c) {
    const auto begin = result.pixels.begin() + c * plane_of(image);
    Counts counts{};
    std::for_each(begin, begin + plane_of(image), [&](uint8_t value) { ++counts[value]; });
    const LookupTable values = table(counts);
    std::transform(begin, begin + plane_of(image), begin, [&](uint8_t value) { return values[value]; });
  }
  return result;
}

/// The table with f(value) for each value.
template <class F>
LookupTable table_of(F f) {
  LookupTable table;
  for (int64_t value = 0; value < n_values; ++value)
    table[static_cast<size_t>(value)] = static_cast<uint8_t>(f(value));
  return table;
}

LookupTable stretched(const Counts& counts) {
  const auto is_there = [](int64_t count) { return count > 0; };
  const auto lowest = static_cast<double>(std::ranges::find_if(counts, is_there) - counts.begin());
  const auto highest =
      static_cast<double>(counts.rend() - std::find_if(counts.rbegin(), counts.rend(), is_there) - 1);
  if (highest <= lowest) return table_of([](int64_t value) { return value; });
  const double scale = 255 / (highest - lowest), offset = -lowest * scale;
  return table_of(
      [&](int64_t value) { return std::clamp(static_cast<double>(value) * scale + offset, 0.0, 255.0); });
}

LookupTable equalized(const Counts& counts) {
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const int64_t of_highest = *std::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
  const int64_t step = (total - of_highest) / (n_values - 1);
  if (step == 0) return table_of([](int64_t value) { return value; });
  int64_t sum = step / 2;
  return table_of([&](int64_t value) {
    const int64_t result = sum / step;
    sum += counts[static_cast<size_t>(value)];
    return std::min<int64_t>(result, n_values - 1);
  });
}

bool has_direction(ImageOperation operation) {
  return operation >= ImageOperation::shear_x && operation <= ImageOperation::sharpness;
}

}  // namespace

Image changed(const Image& image, ImageOperation operation, double amount) {
  using enum ImageOperation;
  switch (operation) {
    case identity:
      return image;
    case shear_x:
      return moved(image, {.b = amount});
    case shear_y:
      return moved(image, {.d = amount});
    case translate_x:
      return moved(image, {.c = -std::trunc(amount)});
    case translate_y:
      return moved(image, {.f = -std::trunc(amount)});
    case rotate:
      return rotated(image, amount);
    case brightness:
      return blended(blank_like(image), image, 1 + amount);
    case color:
      return blended(grey_of(image), image, 1 + amount);
    case contrast:
      return blended(mean_of(image), image, 1 + amount);
    case sharpness:
      return blended(blurred(image), image, 1 + amount);
    case posterize: {
      const auto kept = static_cast<int64_t>(amount);
      const int64_t mask = 255 & ~((int64_t{1} << (8 - kept)) - 1);
      return mapped(image,
                    [&](const Counts&) { return table_of([&](int64_t value) { return value & mask; }); });
    }
    case solarize:
      return mapped(image, [&](const Counts&) {
        return table_of(
            [&](int64_t value) { return static_cast<double>(value) < amount ? value : 255 - value; });
      });
    case autocontrast:
      return mapped(image, stretched);
    case equalize:
      break;
  }
  return mapped(image, equalized);
}

double amount_of(ImageOperation operation, int64_t magnitude, const ImageShape& shape) {
  using enum ImageOperation;
  constexpr double largest = 30, most_shear = 0.3, most_shift = 150.0 / 331, most_degrees = 30,
                   most_blend = 0.9;
  const double share = static_cast<double>(magnitude) / largest;
  switch (operation) {
    case shear_x:
    case shear_y:
      return most_shear * share;
    case translate_x:
      return most_shift * static_cast<double>(shape.width) * share;
    case translate_y:
      return most_shift * static_cast<double>(shape.height) * share;
    case rotate:
      return most_degrees * share;
    case brightness:
    case color:
    case contrast:
    case sharpness:
      return most_blend * share;
    case posterize:
      return 8 - std::nearbyint(4 * share);  // halves to even, as torch.round
    case solarize:
      return 255 * (1 - share);
    default:
      return 0;
  }
}

Image rand_augmented(Image image, const RandAugmentConfig& options, CounterRandom& random) {
  for (int64_t i = 0; i < options.n; ++i) {
    const auto operation =
        static_cast<ImageOperation>(random.below(std::ssize(config_names(ImageOperation{}))));
    const double amount = amount_of(operation, options.magnitude, image.shape);
    const bool is_reversed = has_direction(operation) && random.below(2) == 1;
    image = changed(image, operation, is_reversed ? -amount : amount);
  }
  return image;
}

}  // namespace zoo
