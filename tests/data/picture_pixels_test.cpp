// Which pixels and objects training sees: crops, sizes, erasing, mixtures, statistics; rarer kinds of PNG and
// JPEG.

#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

// libjpeg's header needs that of C before it.
#include <jpeglib.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "data/images/annotated_image.h"
#include "data/images/annotated_images.h"
#include "data/images/augment.h"
#include "data/images/image_batches.h"
#include "data/images/image_file.h"
#include "data/images/image_set.h"
#include "data/images/pixel_statistics.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- crops

constexpr int64_t kRampHeight = 48, kRampWidth = 60;

/// The red of a pixel grows by 4 with each column, the green by 5 with each row.
Image ramp() {
  Image image{.shape = {.channels = 3, .height = kRampHeight, .width = kRampWidth}, .pixels = {}};
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t row = 0; row < kRampHeight; ++row)
      for (int64_t column = 0; column < kRampWidth; ++column)
        image.pixels.push_back(static_cast<uint8_t>(c == 0 ? 4 * column : c == 1 ? 5 * row : 0));
  return image;
}

/// The sides of the part of ramp() that an image shows, by how fast its colours change.
struct Sides {
  double height, width;
};
Sides sides_shown(const Image& image) {
  const auto& [channels, height, width] = image.shape;
  const auto pixel = [&](int64_t c, int64_t row, int64_t column) {
    return static_cast<double>(image.pixels[static_cast<size_t>((c * height + row) * width + column)]);
  };
  constexpr int64_t edge = 3;  // where resizing has fewer pixels to weigh
  const auto across = pixel(0, height / 2, width - 1 - edge) - pixel(0, height / 2, edge);
  const auto down = pixel(1, height - 1 - edge, width / 2) - pixel(1, edge, width / 2);
  return {.height = down / 5 * static_cast<double>(height) / static_cast<double>(height - 1 - 2 * edge),
          .width = across / 4 * static_cast<double>(width) / static_cast<double>(width - 1 - 2 * edge)};
}

/// The areas and shapes of 300 crops.
struct Crops {
  double least_area = 1, most_area = 0, narrowest = 9, widest = 0;  // shares of the area; width / height
  void add(const Sides& sides) {
    const double area = sides.height * sides.width / (kRampHeight * kRampWidth);
    least_area = std::min(least_area, area), most_area = std::max(most_area, area);
    narrowest = std::min(narrowest, sides.width / sides.height);
    widest = std::max(widest, sides.width / sides.height);
  }
};

// Pixels and resizing round, so that sides are known within a few percent.
TEST(Crops, HaveTheAreaThatIsAsked) {
  for (const double least : {0.2, 0.6}) {
    Crops crops;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      CounterRandom random({seed});
      crops.add(sides_shown(augmented(ramp(), {.size = 32, .augment = {.min_crop_area = least}}, random)));
    }
    EXPECT_GT(crops.least_area, least - 0.06);
    EXPECT_LT(crops.least_area, least + 0.06);
    EXPECT_GT(crops.most_area, 0.88);
    EXPECT_LT(crops.most_area, 1.06);
    EXPECT_NEAR(crops.narrowest, 3.0 / 4, 0.08);
    EXPECT_NEAR(crops.widest, 4.0 / 3, 0.12);
  }
}

TEST(Crops, OfPicturesWithObjectsHaveTheAreaThatIsAsked) {
  constexpr double shape = static_cast<double>(kRampWidth) / kRampHeight;
  for (const double least : {0.2, 0.6}) {
    ImageConfig config;
    config.size = 48;
    config.max_size = 200;
    config.augment = {.min_crop_area = least};
    config.augment.min_scale = 1;
    Crops crops;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      CounterRandom random({seed});
      crops.add(sides_shown(augmented({.image = ramp(), .objects = {}}, config, random).image));
    }
    EXPECT_GT(crops.least_area, least - 0.06);
    EXPECT_LT(crops.least_area, least + 0.08);
    EXPECT_GT(crops.most_area, 0.9);
    EXPECT_GT(crops.narrowest, shape * 3 / 4 - 0.1);
    EXPECT_LT(crops.widest, shape * 4 / 3 + 0.15);
  }
}

TEST(Crops, SizesGoFromTheLeastScaleToTheWholeSize) {
  ImageConfig config;
  config.size = 20;
  config.max_size = 60;
  for (const double scale : {0.7, 1.0}) {
    config.augment = {};
    config.augment.min_scale = scale;
    std::set<int64_t> shorter, expected;
    for (int64_t size = std::llround(20 * scale); size <= 20; ++size) expected.insert(size);
    for (uint64_t seed = 0; seed < 300; ++seed) {
      CounterRandom random({seed});
      const auto shape = augmented({.image = ramp(), .objects = {}}, config, random).image.shape;
      shorter.insert(shape.height);
      EXPECT_EQ(shape.width, shape.height * kRampWidth / kRampHeight);
    }
    EXPECT_EQ(shorter, expected);
  }
}

// ---- erasing and mixtures

/// Six classes of constant colour images in a directory, one image of each.
class ColouredImages : public ::testing::Test {
 protected:
  static constexpr int64_t kSize = 12, kClasses = 6;

  static uint8_t color(int64_t of_class, int64_t channel) {
    return static_cast<uint8_t>(20 + 35 * of_class + 10 * channel);
  }
  float normalised(int64_t of_class, int64_t channel) const {
    const auto c = static_cast<size_t>(channel);
    return static_cast<float>((color(of_class, channel) / 255.0 - statistics_.mean[c]) /
                              statistics_.deviation[c]);
  }
  void SetUp() override {
    for (int64_t i = 0; i < kClasses; ++i) {
      Image image{.shape = {.channels = 3, .height = kSize, .width = kSize}, .pixels = {}};
      for (int64_t c = 0; c < 3; ++c)
        image.pixels.insert(image.pixels.end(), static_cast<size_t>(kSize * kSize), color(i, c));
      dir_.write(fmt::format("set/{}/a.png", i), encode_png(image));
    }
  }
  Batch batch(const AugmentConfig& augment, int64_t epoch) const {
    DataConfig config;
    config.train = {ConfigPath((dir_ / "set").string())};
    config.valid = config.train;
    config.images.size = kSize;
    config.images.channels = 3;
    config.images.augment = augment;
    auto images = labelled_images(config).take(Split::train);
    std::vector<int64_t> classes;
    for (int64_t i = 0; i < images.size(); ++i) classes.push_back(std::stoll(images.label(i)));
    BatchOptions options;
    options.batch_size = kClasses;
    options.order = BatchOptions::Order::shuffled;
    return image_batches(std::move(images), torch::tensor(classes), config.images, statistics_, 1, options)
        ->batch(epoch, 0);
  }
  /// (B, 3, 1, 1): the colours of classes, normalised.
  torch::Tensor colors(const torch::Tensor& classes) const {
    auto result = torch::empty({classes.size(0), 3, 1, 1});
    for (int64_t b = 0; b < classes.size(0); ++b)
      for (int64_t c = 0; c < 3; ++c) result[b][c].fill_(normalised(classes[b].item<int64_t>(), c));
    return result;
  }

  TempDir dir_;
  PixelStatistics statistics_{.mean = {0.3, 0.35, 0.9}, .deviation = {0.2, 0.25, 0.3}};
};

/// Whether the pixels of a mask (H, W) bool fill a rectangle.
bool is_rectangle(const torch::Tensor& mask) {
  const auto rows = mask.any(1).nonzero(), columns = mask.any(0).nonzero();
  if (rows.numel() == 0) return true;
  const auto height = (rows.max() - rows.min() + 1).item<int64_t>(),
             width = (columns.max() - columns.min() + 1).item<int64_t>();
  return mask.sum().item<int64_t>() == height * width;
}

TEST_F(ColouredImages, AreErasedInAllChannels) {
  int64_t n_erased = 0;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    const auto made = batch({.erasing = 0.5}, epoch);
    const auto is_own = made.field("images").isclose(colors(made.targets));
    for (int64_t b = 0; b < kClasses; ++b) {
      const auto erased = is_own[b][0].logical_not();
      EXPECT_TRUE(is_rectangle(erased));
      const int64_t n = erased.sum().item<int64_t>();
      n_erased += n > 0;
      EXPECT_LE(n, kSize * kSize * 0.45);
      for (int64_t c = 0; c < 3; ++c) {
        EXPECT_TRUE(torch::equal(is_own[b][c].logical_not(), erased));
        EXPECT_EQ(made.field("images")[b][c].masked_select(erased).abs().sum().item<double>(), 0);
      }
    }
  }
  EXPECT_GT(n_erased, 15);
  EXPECT_LT(n_erased, 45) << "half of sixty images";
}

// A pasted part has the colours of the other image in all channels; share and other target say how much of
// which image is there.
TEST_F(ColouredImages, ArePastedInAllChannelsWithTheirTarget) {
  int64_t n_pasted = 0;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    const auto made = batch({.cutmix = 1}, epoch);
    const auto& images = made.field("images");
    const auto is_own = images.isclose(colors(made.targets)),
               is_other = images.isclose(colors(made.field("other_targets")));
    EXPECT_TRUE(is_own.logical_or(is_other).all().item<bool>());
    for (int64_t b = 0; b < kClasses; ++b) {
      if (made.targets[b].item<int64_t>() == made.field("other_targets")[b].item<int64_t>()) continue;
      for (int64_t c = 1; c < 3; ++c) EXPECT_TRUE(torch::equal(is_own[b][c], is_own[b][0]));
      EXPECT_TRUE(is_rectangle(is_own[b][0].logical_not()));
      const double share = is_own[b][0].to(torch::kDouble).mean().item<double>();
      EXPECT_NEAR(made.field("shares")[b].item<double>(), share, 1e-6);
      n_pasted += share < 1;
    }
  }
  EXPECT_GT(n_pasted, 30);
}

TEST_F(ColouredImages, AreBlendedByTheirShares) {
  std::set<int64_t> others;
  double least = 1, most = 0;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    const auto made = batch({.mixup = 1}, epoch);
    const auto share = made.field("shares").view({-1, 1, 1, 1});
    const auto expected = share * colors(made.targets) + (1 - share) * colors(made.field("other_targets"));
    EXPECT_TRUE(torch::allclose(made.field("images"), expected.expand_as(made.field("images")), 1e-4, 1e-5));
    least = std::min(least, share.min().item<double>()), most = std::max(most, share.max().item<double>());
    for (int64_t b = 0; b < kClasses; ++b) others.insert(made.field("other_targets")[b].item<int64_t>());
    EXPECT_FALSE(torch::equal(made.targets, made.field("other_targets")));
  }
  EXPECT_EQ(std::ssize(others), kClasses) << "any image can be the other one";
  EXPECT_LT(least, 0.2);
  EXPECT_GT(most, 0.8) << "Beta(1, 1) is uniform";
}

// ---- statistics

// Files are often sorted by class: the first images are not a sample of all.
TEST(PixelStatistics, AreOfRandomImages) {
  constexpr int64_t n_images = 5000, n_dark = 2048;
  std::set<int64_t> seen;
  const auto statistics = measure_pixels(n_images, [&](int64_t i) {
    seen.insert(i);
    const auto value = static_cast<uint8_t>(i < n_dark ? 0 : 255);
    return Image{.shape = {.channels = 1, .height = 1, .width = 1}, .pixels = {value}};
  });
  EXPECT_EQ(seen.size(), 2048U) << "each of them once";
  EXPECT_NEAR(statistics.mean[0], 1 - static_cast<double>(n_dark) / n_images, 0.05);
  EXPECT_NEAR(statistics.deviation[0], 0.49, 0.02);
}

TEST(PixelStatistics, AreThoseOfEachChannel) {
  const auto statistics = measure_pixels(2, [](int64_t i) {
    const auto x = static_cast<uint8_t>(51 * i);
    return Image{.shape = {.channels = 3, .height = 1, .width = 2}, .pixels = {x, 51, 255, 255, 0, 255}};
  });
  EXPECT_THAT(statistics.mean, ElementsAre(::testing::DoubleNear(0.15, 1e-12), 1.0, 0.5));
  EXPECT_NEAR(statistics.deviation[0], std::sqrt(3 * 0.04 / 4 - 0.15 * 0.15), 1e-12);  // of 0, 0.2, 0.2, 0.2
  EXPECT_EQ(statistics.deviation[1], 1) << "the same everywhere";
  EXPECT_NEAR(statistics.deviation[2], 0.5, 1e-12);
}

// ---- COCO files

// Each file has ids and an order of its own; objects follow their picture and the name of their category.
TEST(AnnotatedImages, OfSeveralFilesKeepTheirObjects) {
  const TempDir dir;
  const auto write = [&](const std::string& name, const std::string& categories, int64_t category,
                         int64_t height) {
    const Image image{.shape = {.channels = 1, .height = height, .width = 9},
                      .pixels = std::vector<uint8_t>(static_cast<size_t>(9 * height), 5)};
    std::string pictures, annotations;
    for (int64_t i = 0; i < 2; ++i) {
      dir.write(fmt::format("{}{}.png", name, i), encode_png(image));
      pictures += fmt::format(R"({}{{"id": {}, "file_name": "{}{}.png", "width": 9, "height": {}}})",
                              i == 0 ? "" : ", ", i + 1, name, i, height);
    }
    // The second picture of each file has an object.
    annotations =
        fmt::format(R"({{"image_id": 2, "category_id": {}, "bbox": [1, 2, {}, 3]}})", category, height - 4);
    dir.write(name + ".json", fmt::format(R"({{"images": [{}], "annotations": [{}], "categories": [{}]}})",
                                          pictures, annotations, categories));
  };
  write("one", R"({"id": 1, "name": "cat"}, {"id": 2, "name": "dog"})", 2, 8);
  write("two", R"({"id": 1, "name": "dog"}, {"id": 2, "name": "cow"}, {"id": 3, "name": "cat"})", 2, 10);
  write("six", R"({"id": 7, "name": "cow"})", 7, 11);
  DataConfig config;
  for (const char* name : {"one.json", "two.json", "six.json"})
    config.train.push_back(ConfigPath((dir / name).string()));
  config.valid = config.train;
  config.images.channels = 1;
  const auto labels = categories_of(read_descriptions(config, Split::train));
  EXPECT_THAT(labels, ElementsAre("cat", "dog", "cow"));
  const auto set = marked_images(config, labels).take(Split::train);
  ASSERT_EQ(set.size(), 6);
  const std::vector<int64_t> categories = {1, 2, 2}, heights = {8, 10, 11};
  for (int64_t i = 0; i < 6; ++i) {
    const auto file = static_cast<size_t>(i / 2);
    EXPECT_EQ(set.shape(i).height, heights[file]);
    EXPECT_EQ(set.image(i).shape.height, heights[file]);
    ASSERT_EQ(set.objects(i).size(), i % 2 == 0 ? 0U : 1U) << i;
    if (i % 2 == 0) continue;
    EXPECT_EQ(set.objects(i)[0].image, i);
    EXPECT_EQ(set.objects(i)[0].category, categories[file]);
    EXPECT_EQ(set.objects(i)[0].box.width, static_cast<double>(heights[file] - 4));
  }
}

// ---- PNG

/// A PNG file by the specification: one row after the other without a filter.
std::string png_of(uint32_t width, uint32_t height, int bit_depth, int color_type,
                   const std::vector<std::string>& rows, const std::string& palette = "") {
  const auto number = [](uint64_t n) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift);
    return bytes;
  };
  const auto chunk = [&](const std::string& type, const std::string& data) {
    const std::string body = type + data;
    return number(data.size()) + body +
           number(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  };
  std::string raw;
  for (const auto& row : rows) raw += '\0' + row;
  std::vector<Bytef> packed(compressBound(raw.size()));
  uLongf size = packed.size();
  compress(packed.data(), &size, reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  std::string header = number(width) + number(height);
  for (const int byte : {bit_depth, color_type, 0, 0, 0}) header += static_cast<char>(byte);
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + (palette.empty() ? "" : chunk("PLTE", palette)) +
         chunk("IDAT", {packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size)}) + chunk("IEND", "");
}

TEST(PngFile, SixteenBitsBecomeEight) {
  std::string row;
  std::vector<uint8_t> expected;
  for (int value = 0; value < 65536; value += 1111) {
    row += static_cast<char>(value >> 8), row += static_cast<char>(value & 255);
    expected.push_back(static_cast<uint8_t>(std::lround(value / 257.0)));
  }
  const auto n = static_cast<uint32_t>(expected.size());
  EXPECT_EQ(decode_image(png_of(n, 1, 16, 0, {row}), "a.png", 1).pixels, expected);
  const auto three = decode_image(png_of(n / 3, 1, 16, 2, {row.substr(0, n / 3 * 6)}), "a.png", 3);
  for (size_t i = 0; i < n / 3; ++i)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(three.pixels[c * (n / 3) + i], expected[3 * i + c]);
}

TEST(PngFile, FewBitsAndPalettesAreColours) {
  EXPECT_THAT(decode_image(png_of(8, 1, 1, 0, {"\xA5"}), "a.png", 1).pixels,
              ElementsAre(255, 0, 255, 0, 0, 255, 0, 255));
  EXPECT_THAT(decode_image(png_of(4, 1, 2, 0, {"\x1B"}), "a.png", 1).pixels, ElementsAre(0, 85, 170, 255));
  EXPECT_THAT(decode_image(png_of(2, 1, 4, 3, {"\x10"}, std::string("\1\2\3\4\5\6", 6)), "a.png", 3).pixels,
              ElementsAre(4, 1, 5, 2, 6, 3));
}

// ---- JPEG

enum class Scans { one, progressive };
struct JpegOptions {
  J_COLOR_SPACE pixels = JCS_RGB, file = JCS_YCbCr;
  bool adobe = false;
  Scans scans = Scans::one;
};

/// A JPEG of width × height pixels that are given pixel by pixel, with little loss.
std::string jpeg_of(const std::vector<uint8_t>& pixels, int width, int height, const JpegOptions& options) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width), jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.in_color_space = options.pixels;
  jpeg.input_components = options.pixels == JCS_CMYK ? 4 : options.pixels == JCS_GRAYSCALE ? 1 : 3;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, options.file);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (options.scans == Scans::progressive) jpeg_simple_progression(&jpeg);
  jpeg.write_Adobe_marker = options.adobe ? TRUE : FALSE;
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<uint8_t> rows = pixels;
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = rows.data() + jpeg.next_scanline * static_cast<size_t>(width * jpeg.input_components);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string content(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);  // NOLINT(*-no-malloc)
  return content;
}

/// 16 × 16 pixels of one colour.
std::vector<uint8_t> one_color(const std::vector<uint8_t>& color) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 256; ++i) pixels.insert(pixels.end(), color.begin(), color.end());
  return pixels;
}

void expect_color(const std::string& jpeg, const std::vector<int>& color) {
  const Image image = decode_image(jpeg, "a.jpg", std::ssize(color));
  for (size_t c = 0; c < color.size(); ++c) {
    for (size_t i = 0; i < 256; ++i) ASSERT_NEAR(image.pixels[c * 256 + i], color[c], 2) << "channel " << c;
  }
}

TEST(JpegFile, ColoursAreThoseOfTheFile) {
  const auto red = one_color({200, 40, 90});
  expect_color(jpeg_of(red, 16, 16, {}), {200, 40, 90});
  expect_color(jpeg_of(red, 16, 16, {.scans = Scans::progressive}), {200, 40, 90});
  expect_color(jpeg_of(red, 16, 16, {.file = JCS_RGB, .adobe = true}), {200, 40, 90});
  const auto grey = jpeg_of(one_color({77}), 16, 16, {.pixels = JCS_GRAYSCALE, .file = JCS_GRAYSCALE});
  expect_color(grey, {77});
  expect_color(grey, {77, 77, 77});
}

// Adobe's programs store ink as 255 - ink; the marker "Adobe" says so.
TEST(JpegFile, InkIsWhatTheLightLacks) {
  const std::vector<uint8_t> ink = {10, 100, 200, 50};
  const auto light = [](int ink_of_color, int black) { return (255 - ink_of_color) * (255 - black) / 255; };
  const std::vector<int> plain = {light(10, 50), light(100, 50), light(200, 50)},
                         inverted = {10 * 50 / 255, 100 * 50 / 255, 200 * 50 / 255};
  expect_color(jpeg_of(one_color(ink), 16, 16, {.pixels = JCS_CMYK, .file = JCS_CMYK}), plain);
  expect_color(jpeg_of(one_color(ink), 16, 16, {.pixels = JCS_CMYK, .file = JCS_CMYK, .adobe = true}),
               inverted);
  expect_color(jpeg_of(one_color(ink), 16, 16, {.pixels = JCS_CMYK, .file = JCS_YCCK, .adobe = true}),
               inverted);
}

// A truncated file has all its pixels, but blurred ones: libjpeg would only warn.
TEST(JpegFile, TruncatedOnesAreRefusedWhereverTheyEnd) {
  CounterRandom random({4});
  std::vector<uint8_t> noise;
  for (int i = 0; i < 40 * 40 * 3; ++i) noise.push_back(static_cast<uint8_t>(random.below(256)));
  for (const auto scans : {Scans::one, Scans::progressive}) {
    const auto whole = jpeg_of(noise, 40, 40, {.scans = scans});
    EXPECT_EQ(decode_image(whole, "a.jpg", 3).shape.width, 40);
    std::set<size_t> ends;
    for (size_t end = 4; end + 2 < whole.size(); end += 61) ends.insert(end);
    // Before every scan, where what is there is a picture.
    for (size_t at = whole.find("\xFF\xDA"); at != whole.npos; at = whole.find("\xFF\xDA", at + 1))
      ends.insert(at);
    ends.insert(whole.size() - 3);
    for (const size_t end : ends) {
      EXPECT_THAT(message_of<DataError>([&] { decode_image(whole.substr(0, end), "a.jpg", 3); }),
                  HasSubstr("a.jpg: the image is damaged or truncated"))
          << end << " of " << whole.size();
    }
  }
}

}  // namespace
}  // namespace zoo::testing
