// Files of images, what is done to them, and their batches.

#include <zlib.h>

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "data/images/augment.h"
#include "data/images/idx_file.h"
#include "data/images/image_batches.h"
#include "data/images/image_file.h"
#include "data/images/image_set.h"
#include "data/images/rand_augment.h"
#include "data/images/resize.h"
#include "data/prefetch.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Image picture(int64_t channels, int64_t height, int64_t width, uint64_t seed = 1) {
  CounterRandom random({seed});
  Image image{.shape = {.channels = channels, .height = height, .width = width}, .pixels = {}};
  for (int64_t i = 0; i < channels * height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  return image;
}

std::string idx(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  return file + values;
}

std::string gzipped(const std::string& content) {
  TempDir dir;
  const auto path = (dir / "file.gz").string();
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A picture whose pixels are their own numbers shows which of them are in the middle.
TEST(Augment, SaysWhichPartOfAPictureIsFitted) {
  const auto expect = [](ImageShape shape, int64_t size, const Box& expected) {
    const Box part = fitted_part(shape, {.size = size});
    EXPECT_DOUBLE_EQ(part.x, expected.x);
    EXPECT_DOUBLE_EQ(part.y, expected.y);
    EXPECT_DOUBLE_EQ(part.width, expected.width);
    EXPECT_DOUBLE_EQ(part.height, expected.height);
  };
  expect({.channels = 1, .height = 8, .width = 8}, 8, {.x = 0, .y = 0, .width = 8, .height = 8});
  expect({.channels = 1, .height = 8, .width = 16}, 8, {.x = 4, .y = 0, .width = 8, .height = 8});
  expect({.channels = 1, .height = 30, .width = 20}, 10, {.x = 0, .y = 4, .width = 20, .height = 20});
  expect({.channels = 1, .height = 20, .width = 30}, 10, {.x = 4, .y = 0, .width = 20, .height = 20});
  Image image{.shape = {.channels = 1, .height = 1, .width = 9}, .pixels = {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(fitted_part(image.shape, {.size = 1}).x, fitted(image, {.size = 1}).pixels.at(0));
}

TEST(ImageFile, APngIsReadAsItWasWritten) {
  for (const int64_t channels : {1, 3}) {
    const Image image = picture(channels, 5, 7);
    const Image read = decode_image(encode_png(image), "a.png", channels);
    EXPECT_EQ(read.pixels, image.pixels);
    EXPECT_EQ(read.shape.height, 5);
    EXPECT_EQ(read.shape.width, 7);
  }
}

TEST(ImageFile, GreyBecomesColours) {
  const Image image = picture(1, 3, 2);
  const Image read = decode_image(encode_png(image), "a.png", 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(read.pixels[c * 6 + i], image.pixels[i]);
}

TEST(ImageFile, WhatIsNoImageGetsOneLine) {
  const auto problem = [](const std::string& bytes) {
    return message_of<DataError>([&] { decode_image(bytes, "a.png", 3); });
  };
  EXPECT_EQ(problem(""), "a.png: the file is empty");
  EXPECT_THAT(problem("hello"), HasSubstr("a.png: this is no PNG, JPEG or WebP image"));
  const std::string whole = encode_png(picture(3, 40, 40));
  for (size_t n = 1; n < whole.size() - 12; n += 97)
    EXPECT_THAT(problem(whole.substr(0, n)), HasSubstr("a.png: "));
  // A header of 50,000 × 50,000 pixels.
  std::string huge = whole;
  for (const size_t at : {16, 20}) huge.replace(at, 4, std::string("\x00\x00\xC3\x50", 4));
  const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(huge.data()) + 12, 17);
  for (size_t i = 0; i < 4; ++i) huge[29 + i] = static_cast<char>(checksum >> (24 - 8 * i));
  EXPECT_THAT(problem(huge), HasSubstr("has more than 64 million pixels: make it smaller"));
}

TEST(IdxFile, PlainAndCompressedAreTheSame) {
  const TempDir dir;
  const std::string content = idx({2, 2, 3}, "abcdefghijkl");
  for (const auto& bytes : {content, gzipped(content)}) {
    const auto array = read_idx(dir.write("a-images-idx3", bytes), 3);
    EXPECT_THAT(array.sizes, ElementsAre(2, 2, 3));
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), "abcdefghijkl");
  }
}

TEST(IdxFile, BadFilesGetOneLine) {
  const TempDir dir;
  const auto problem = [&](const std::string& bytes) {
    return message_of<DataError>([&] { read_idx(dir.write("a-idx3", bytes), 3); });
  };
  EXPECT_THAT(problem(""), HasSubstr("this is no IDX file of bytes with 3 dimensions"));
  EXPECT_THAT(problem(idx({4}, "abcd")), HasSubstr("this is no IDX file of bytes with 3 dimensions"));
  EXPECT_THAT(problem(idx({2, 2, 3}, "abc")),
              HasSubstr("is truncated or damaged: its header says 2 x 2 x 3 values"));
  EXPECT_THAT(problem(gzipped(idx({2, 2, 3}, "abc"))), HasSubstr("is truncated or damaged"));
  EXPECT_THAT(problem(gzipped(idx({2, 2, 3}, "abcdefghijkl")).substr(0, 25)), HasSubstr("truncated"));
  EXPECT_THAT(problem(idx({2, 2, 3}, "abcdefghijklm")), HasSubstr("is longer than its header says"));
  EXPECT_THAT(problem(idx({0, 2, 3}, "")), HasSubstr("the array is empty"));
  EXPECT_THAT(problem(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")),
              HasSubstr("more than 1024 MiB, the most that is read"));
  EXPECT_THAT(problem(idx({0x8000, 0x100, 0x80}, "abc")), HasSubstr("truncated"));  // 1 GiB is not taken
}

TEST(IdxFile, GzipsCheckSumsAndMembersCount) {
  const TempDir dir;
  const auto read = [&](const std::string& bytes) {
    return message_of<DataError>([&] { read_idx(dir.write("a-idx3", bytes), 3); });
  };
  const std::string content = idx({2, 2, 3}, "abcdefghijkl"), whole = gzipped(content);
  EXPECT_EQ(read(gzipped(content.substr(0, 9)) + gzipped(content.substr(9))), "no error");
  EXPECT_EQ(read(gzipped(content) + gzipped("")), "no error") << "an empty member at the end";
  const std::string damaged = "the compressed file is truncated or damaged";
  EXPECT_THAT(read(whole.substr(0, whole.size() - 1)), HasSubstr(damaged));
  EXPECT_THAT(read(whole.substr(0, whole.size() - 8)), HasSubstr(damaged)) << "no check sum at all";
  for (size_t i = 1; i <= 8; ++i) {
    std::string flipped = whole;
    flipped[whole.size() - i] ^= 1;
    EXPECT_THAT(read(flipped), HasSubstr(damaged)) << i << " bytes before the end";
  }
  EXPECT_THAT(read(whole + "x"), HasSubstr(damaged));
  EXPECT_THAT(read(whole + gzipped("x")), HasSubstr("is longer than its header says"));
}

/// A corpus of 8 images of 2 classes in each of the three forms.
class ImageSets : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pixels, labels, list = "image\tlabel\n";
    for (int i = 0; i < 8; ++i) {
      const Image image = picture(1, 4, 4, static_cast<uint64_t>(i));
      const std::string label = i % 2 == 0 ? "cat" : "dog", name = std::to_string(i) + ".png";
      pixels.append(image.pixels.begin(), image.pixels.end());
      labels += static_cast<char>(i % 2);
      dir_.write("tree/" + label + "/" + name, encode_png(image));
      list += "tree/" + label + "/" + name + "\t" + label + "\n";
    }
    dir_.write("train-images-idx3-ubyte", idx({8, 4, 4}, pixels));
    dir_.write("train-labels-idx1-ubyte", idx({8}, labels));
    dir_.write("list.tsv", list);
  }
  DataConfig config(const std::string& name) const {
    DataConfig config;
    config.train = {ConfigPath((dir_ / name).string())};
    config.valid_fraction = 0.25;
    config.images.size = 4;
    config.images.channels = 1;
    config.images.label_names = {"cat", "dog"};
    return config;
  }

  TempDir dir_;
};

TEST_F(ImageSets, ThreeFormsHaveTheSameImages) {
  std::set<std::pair<std::string, std::vector<uint8_t>>> expected;
  for (const std::string name : {"train-images-idx3-ubyte", "tree", "list.tsv"}) {
    auto all = config(name);
    all.valid = all.train;
    const auto images = labelled_images(all).take(Split::train);
    std::set<std::pair<std::string, std::vector<uint8_t>>> found;
    for (int64_t i = 0; i < images.size(); ++i) found.emplace(images.label(i), images.image(i).pixels);
    EXPECT_EQ(found.size(), 8U);
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected) << name;
  }
}

// Together they are all images, and both have both classes, which take turns in the files.
TEST_F(ImageSets, AQuarterOfTheImagesIsForValidation) {
  const auto train = labelled_images(config("list.tsv")).take(Split::train),
             valid = labelled_images(config("list.tsv")).take(Split::valid);
  EXPECT_EQ(train.size(), 6);
  ASSERT_EQ(valid.size(), 2);
  std::set<std::vector<uint8_t>> found, expected;
  for (int64_t i = 0; i < 6; ++i) found.insert(train.image(i).pixels);
  for (int64_t i = 0; i < 2; ++i) found.insert(valid.image(i).pixels);
  for (uint64_t i = 0; i < 8; ++i) expected.insert(picture(1, 4, 4, i).pixels);
  EXPECT_EQ(found, expected);
  // Another time the same ones.
  EXPECT_EQ(labelled_images(config("list.tsv")).take(Split::valid).image(1).pixels, valid.image(1).pixels);
}

TEST_F(ImageSets, BadListsGetOneLine) {
  const auto problem = [&](const std::string& rows) {
    dir_.write("bad.tsv", "image\tlabel\n" + rows);
    return message_of<DataError>([&] { labelled_images(config("bad.tsv")).take(Split::train); });
  };
  EXPECT_THAT(problem("../a.png\tcat\n"),
              HasSubstr("bad.tsv:2: '../a.png' is no path of a file in the directory"));
  EXPECT_THAT(problem("/etc/passwd\tcat\n"), HasSubstr("bad.tsv:2: '/etc/passwd' is no path"));
  EXPECT_THAT(problem("a.png\t\n"), HasSubstr("no label"));
  dir_.write("train-labels-idx1-ubyte", idx({7}, "abcdefg"));
  EXPECT_THAT(
      message_of<DataError>([&] { labelled_images(config("train-images-idx3-ubyte")).take(Split::train); }),
      HasSubstr("has 8 images, but 7 labels belong to it: the numbers must be equal"));
  dir_.write("train-labels-idx1-ubyte", idx({8}, std::string(8, '\x02')));
  EXPECT_THAT(
      message_of<DataError>([&] { labelled_images(config("train-images-idx3-ubyte")).take(Split::train); }),
      HasSubstr("label 2 of image 1 has no name: data.images.label_names has 2"));
  EXPECT_THAT(message_of<DataError>([&] { labelled_images(config("list")).take(Split::train); }),
              HasSubstr("does not exist"));
}

// The header says a gigabyte, which a few kilobytes can hold if they are compressed.
TEST_F(ImageSets, TheLabelsSayHowManyImagesAreRead) {
  dir_.write("train-images-idx3-ubyte", idx({40'000, 160, 160}, ""));
  EXPECT_THAT(
      message_of<DataError>([&] { labelled_images(config("train-images-idx3-ubyte")).take(Split::train); }),
      HasSubstr("has 40000 images, but 8 labels belong to it: the numbers must be equal"));
}

std::unique_ptr<BatchSource> batches_of(const DataConfig& config, int64_t batch_size,
                                        BatchOptions::Order order) {
  auto images = labelled_images(config).take(Split::train);
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < images.size(); ++i) classes.push_back(images.label(i) == "dog");
  BatchOptions options;
  options.batch_size = batch_size;
  options.seed = 3;
  options.order = order;
  const auto statistics = measure_pixels(images.size(), [&](int64_t i) { return images.image(i); });
  return image_batches(std::move(images), torch::tensor(classes), config.images, statistics, 5, options);
}

TEST_F(ImageSets, EvaluatedImagesAreNormalised) {
  auto all = config("list.tsv");
  all.valid = all.train;
  all.images.augment = {.crop_padding = 2, .flip = 1, .erasing = 1, .mixup = 1};  // of training only
  const auto batch = batches_of(all, 8, BatchOptions::Order::sequential)->batch(0, 0);
  EXPECT_EQ(batch.tokens, 40);
  EXPECT_EQ(batch.fields.size(), 1U);
  const auto& images = batch.field("images");
  EXPECT_NEAR(images.mean().item<double>(), 0, 1e-5);
  EXPECT_NEAR(images.square().mean().item<double>(), 1, 1e-4);
  EXPECT_THAT(std::vector<int64_t>(batch.targets.data_ptr<int64_t>(), batch.targets.data_ptr<int64_t>() + 8),
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
}

// Two batches of 4 hold the images of one of 8, with the same changes; another epoch changes them otherwise.
TEST_F(ImageSets, ChangesDependOnSeedEpochAndImageOnly) {
  auto all = config("list.tsv");
  all.valid = all.train;
  for (const auto& augment : {AugmentConfig{.crop_padding = 1, .flip = 0.5, .erasing = 0.5},
                              AugmentConfig{.min_crop_area = 0.3, .cutmix = 1}, AugmentConfig{.mixup = 0.4},
                              AugmentConfig{.rand_augment = RandAugmentConfig{}}}) {
    all.images.augment = augment;
    const auto source = batches_of(all, 8, BatchOptions::Order::shuffled),
               halves = prefetched(batches_of(all, 4, BatchOptions::Order::shuffled));
    for (const int64_t epoch : {0, 1}) {
      const auto whole = source->batch(epoch, 0), second = halves->batch(epoch, 1),
                 first = halves->batch(epoch, 0);
      for (const auto& [name, tensor] : whole.fields)
        EXPECT_TRUE(torch::equal(tensor, torch::cat({first.field(name), second.field(name)}))) << name;
      EXPECT_TRUE(torch::equal(whole.targets, torch::cat({first.targets, second.targets})));
    }
    EXPECT_FALSE(
        torch::equal(source->batch(0, 0).field("images").sum(), source->batch(1, 0).field("images").sum()));
  }
}

// A process decodes only its rows, and they are what they are in the whole batch.
TEST_F(ImageSets, AProcessMakesItsShareOfABatch) {
  auto all = config("list.tsv");
  all.valid = all.train;
  all.images.augment = {.crop_padding = 1, .flip = 0.5, .erasing = 0.5, .mixup = 0.4};
  const auto whole = batches_of(all, 8, BatchOptions::Order::shuffled)->batch(1, 0);
  for (const int64_t n_parts : {2, 3, 20}) {
    for (int64_t index = 0; index < n_parts; ++index) {
      const auto source = prefetched(batches_of(all, 8, BatchOptions::Order::shuffled));
      source->use_share(index, n_parts);
      const auto batch = source->batch(1, 0);
      EXPECT_TRUE(torch::equal(batch.targets, whole.targets));
      EXPECT_EQ(batch.tokens, whole.tokens);
      const auto [first, count] =
          index < 8 ? rows_of_part(8, index, std::min<int64_t>(n_parts, 8)) : RowRange();
      for (const auto& [name, tensor] : whole.fields) {
        const auto made = batch.field(name);
        EXPECT_TRUE(torch::equal(made.narrow(0, first, count), tensor.narrow(0, first, count))) << name;
        EXPECT_EQ(made.count_nonzero().item<int64_t>(),
                  made.narrow(0, first, count).count_nonzero().item<int64_t>())
            << name << ": other rows are not made";
      }
    }
  }
}

// The shares say what the pixels of constant images are mixed from.
TEST(Augment, SharesAreThoseOfThePixels) {
  for (const auto& options : {AugmentConfig{.mixup = 0.5}, AugmentConfig{.cutmix = 1}}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      CounterRandom random({seed});
      const auto mixture = draw_mixture(8, 6, options, random);
      EXPECT_GE(mixture.share, 0);
      EXPECT_LE(mixture.share, 1);
      EXPECT_EQ(mixture.pasted.has_value(), options.cutmix > 0);
      if (!mixture.pasted) continue;
      const auto& [top, left, height, width] = *mixture.pasted;
      EXPECT_GE(std::min({top, left, height, width}), 0);
      EXPECT_LE(top + height, 8);
      EXPECT_LE(left + width, 6);
      EXPECT_NEAR(mixture.share, 1 - static_cast<double>(height * width) / 48, 1e-12);
    }
  }
}

TEST(Augment, FittedImagesHaveTheMiddle) {
  Image wide = picture(1, 4, 10);
  const Image middle = fitted(wide, {.size = 4});
  for (size_t row = 0; row < 4; ++row)
    for (size_t column = 0; column < 4; ++column)
      EXPECT_EQ(middle.pixels[row * 4 + column], wide.pixels[row * 10 + 3 + column]);
  for (const auto& [height, width] : {std::pair{3, 1000}, {1, 1}, {1000, 3}, {2, 2}}) {
    const Image image = fitted(picture(3, height, width), {.size = 5});
    EXPECT_EQ(image.shape.height, 5);
    EXPECT_EQ(image.shape.width, 5);
    EXPECT_EQ(image.pixels.size(), 75U);
  }
}

// Bytes are rounded after the first direction and after the second. LibTorch's operation, which torchvision
// calls, adds floats, so a pixel half way between two values can be rounded to the other one. tests/parity
// compares with Pillow, to the bit.
TEST(Resize, IsThatOfTorchvision) {
  const auto along = [](const torch::Tensor& pixels, int64_t height, int64_t width) {
    return at::_upsample_bilinear2d_aa(pixels.contiguous(), {height, width}, false);
  };
  for (const auto& [height, width] : {std::pair{5, 7}, {64, 48}, {20, 20}, {37, 150}, {1, 33}, {33, 1}}) {
    const Image image = picture(3, height, width);
    const auto pixels = torch::tensor(image.pixels, torch::kFloat).view({1, 3, height, width});
    for (const auto& [to_height, to_width] : {std::pair{20, 20}, {9, 71}, {64, 13}, {1, 1}}) {
      const auto found = torch::tensor(resized(image, whole(image.shape), to_height, to_width).pixels)
                             .view({1, 3, to_height, to_width});
      const auto n_away = [&](int64_t between_height, int64_t between_width) {
        const auto between = along(pixels, between_height, between_width).round();
        return ((found - along(between, to_height, to_width)).abs() > 0.501).sum().item<int64_t>();
      };
      EXPECT_LE(std::min(n_away(height, to_width), n_away(to_height, width)), found.numel() / 50)
          << height << " x " << width << " to " << to_height << " x " << to_width;
    }
  }
}

TEST(Resize, AWindowIsAPartOfTheWhole) {
  const Image image = picture(3, 40, 30);
  for (const auto& [height, width] : {std::pair{80, 60}, {13, 200}, {40, 30}, {9, 9}}) {
    const Rectangle window{.top = 3, .left = 4, .height = 5, .width = 4};
    const Image all = resized(image, whole(image.shape), height, width);
    EXPECT_EQ(resized_window(image, height, width, window).pixels, cut_out(all, window).pixels);
  }
  // Parts of a picture know nothing of what is beside them.
  const Rectangle part{.top = 7, .left = 11, .height = 20, .width = 9};
  const Image cut = cut_out(image, part);
  EXPECT_EQ(resized(image, part, 11, 13).pixels, resized(cut, whole(cut.shape), 11, 13).pixels);
}

// All of it would take 200 GB.
TEST(Augment, OnlyTheMiddleOfALongPictureIsEnlarged) {
  Image line{.shape = {.channels = 1, .height = 1, .width = 1'000'000}, .pixels = {}};
  line.pixels.resize(1'000'000);
  for (size_t i = 0; i < line.pixels.size(); ++i) line.pixels[i] = static_cast<uint8_t>(i % 200);
  const Image middle = fitted(line, {.size = 448});
  EXPECT_EQ(middle.pixels.size(), 448U * 448);
  EXPECT_EQ(middle.pixels[447], 0);  // the middle of 499999 and 500000, of which 448 pixels are made each
}

TEST(Augment, FitsAsTheConfigurationSays) {
  const Image image = picture(1, 4, 10);
  const Image squeezed = fitted(image, {.size = 4, .fit = PictureFit::squeeze});
  EXPECT_EQ(squeezed.pixels, resized(image, whole(image.shape), 4, 4).pixels);
  const Image inner = fitted(image, {.size = 4, .fit = PictureFit::squeeze, .resize_to = 6});
  EXPECT_EQ(inner.pixels, cut_out(resized(image, whole(image.shape), 6, 6), {1, 1, 4, 4}).pixels);
  // The frame is black, and its larger half is before the image.
  const Image framed = fitted(image, {.size = 7, .fit = PictureFit::middle});
  EXPECT_EQ(framed.pixels, cut_out(image, {-2, 1, 7, 7}).pixels);
  EXPECT_EQ(fitted(picture(1, 4, 4), {.size = 4, .fit = PictureFit::exact}).pixels, picture(1, 4, 4).pixels);
  EXPECT_THAT(message_of<DataError>([&] { fitted(image, {.size = 4, .fit = PictureFit::exact}); }),
              ::testing::HasSubstr("10 x 4 pixels, and the model reads 4 x 4 alone"));
  const Box part = fitted_part(image.shape, {.size = 4, .fit = PictureFit::squeeze});
  EXPECT_DOUBLE_EQ(part.width, 10);
  EXPECT_DOUBLE_EQ(part.height, 4);
}

TEST(Augment, FlipsAndCrops) {
  const Image image = picture(1, 4, 4);
  CounterRandom random({1});
  Image flipped = augmented(image, {.size = 4, .augment = {.flip = 1}}, random);
  EXPECT_NE(flipped.pixels, image.pixels);
  flipped = augmented(flipped, {.size = 4, .augment = {.flip = 1}}, random);
  EXPECT_EQ(flipped.pixels, image.pixels);
  // A crop moves the image by at most the padding; black comes in from the sides.
  std::set<std::vector<uint8_t>> crops;
  for (int i = 0; i < 200; ++i)
    crops.insert(augmented(image, {.size = 4, .augment = {.crop_padding = 1}}, random).pixels);
  EXPECT_EQ(crops.size(), 9U);
  EXPECT_TRUE(crops.contains(image.pixels));
}

// One operation for each image: all 14 occur, those with a direction in both. (What each does is compared
// with PIL in tests/parity.)
TEST(Augment, RandAugmentDrawsAllOperations) {
  const Image image = picture(3, 20, 16);
  std::set<std::vector<uint8_t>> expected, found;
  for (size_t i = 0; i < config_names(ImageOperation{}).size(); ++i) {
    const auto operation = static_cast<ImageOperation>(i);
    const double amount = amount_of(operation, 12, image.shape);
    expected.insert(changed(image, operation, amount).pixels);
    if (operation >= ImageOperation::shear_x && operation <= ImageOperation::sharpness)
      expected.insert(changed(image, operation, -amount).pixels);
  }
  EXPECT_GE(expected.size(), 14U + 9 - 2);  // noise is equalized and stretched already
  for (uint64_t seed = 0; seed < 600; ++seed) {
    CounterRandom random({seed}), again({seed});
    const auto pixels = rand_augmented(image, {.n = 1, .magnitude = 12}, random).pixels;
    EXPECT_EQ(rand_augmented(image, {.n = 1, .magnitude = 12}, again).pixels, pixels);
    found.insert(pixels);
  }
  EXPECT_EQ(found, expected);
  // Several follow each other.
  CounterRandom random({1}), same({1});
  const Image twice = rand_augmented(image, {.n = 2, .magnitude = 12}, random);
  const Image once = rand_augmented(image, {.n = 1, .magnitude = 12}, same);
  EXPECT_EQ(twice.pixels, rand_augmented(once, {.n = 1, .magnitude = 12}, same).pixels);
}

}  // namespace
}  // namespace zoo::testing
