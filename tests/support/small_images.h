#pragma once
// Small sets of images.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "data/images/image.h"
#include "data/images/image_file.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {

/// FOLDER/train-images-idx3 and its labels: 90 images of 8 × 8 pixels with bright rows, bright columns, or
/// noise.
inline void write_image_classes(const TempDir& dir, const std::string& folder) {
  constexpr int n = 90, side = 8;
  std::string pixels{'\0', '\0', '\x08', '\x03', '\0', '\0', '\0', n,
                     '\0', '\0', '\0',   side,   '\0', '\0', '\0', side};
  std::string labels{'\0', '\0', '\x08', '\x01', '\0', '\0', '\0', n};
  CounterRandom random({5});
  for (int i = 0; i < n; ++i) {
    labels += static_cast<char>(i % 3);
    for (int row = 0; row < side; ++row) {
      for (int column = 0; column < side; ++column) {
        const bool bright = i % 3 == 0 ? row % 2 == 0 : i % 3 == 1 ? column % 2 == 0 : random.below(2) == 0;
        pixels += static_cast<char>((bright ? 200 : 20) + random.below(40));
      }
    }
  }
  dir.write(folder + "train-images-idx3", pixels);
  dir.write(folder + "train-labels-idx1", labels);
}

/// FOLDER/pictures.json, in COCO's format, and FOLDER/images: 40 black pictures with no to three squares,
/// which may overlap. Bright ones are "light", the others "dark".
inline void write_marked_pictures(const TempDir& dir, const std::string& folder) {
  constexpr int n = 40;
  CounterRandom random({6});
  auto file = nlohmann::json::object();
  file["categories"] = {{{"id", 3}, {"name", "dark"}}, {{"id", 8}, {"name", "light"}}};
  for (int i = 0; i < n; ++i) {
    const int64_t height = 16 + random.below(5), width = 16 + random.below(9);
    Image image{.shape = {.channels = 1, .height = height, .width = width}, .pixels = {}};
    image.pixels.resize(static_cast<size_t>(height * width));
    const auto name = fmt::format("{}.png", i);
    file["images"].push_back({{"id", i}, {"file_name", name}, {"height", height}, {"width", width}});
    for (int64_t object = random.below(4); object > 0; --object) {
      const bool light = random.below(2) == 0;
      const int64_t side = 4 + random.below(6), x = random.below(width - side),
                    y = random.below(height - side);
      for (int64_t row = y; row < y + side; ++row)
        std::fill_n(image.pixels.begin() + row * width + x, side, light ? 255 : 120);
      file["annotations"].push_back(
          {{"image_id", i}, {"category_id", light ? 8 : 3}, {"bbox", {x, y, side, side}}});
    }
    dir.write(folder + "images/" + name, encode_png(image));
  }
  dir.write(folder + "pictures.json", file.dump());
}

}  // namespace zoo::testing
