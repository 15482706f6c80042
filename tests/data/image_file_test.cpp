// Files of images that are unusual, or that somebody has made to do harm.

#include "data/images/image_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/directory.h"
#include "data/images/exif.h"
#include "io/files.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string seed_of(const std::string& name) { return read_file("tests/fuzz/seeds/" + name); }

std::string problem_of_image(const std::string& bytes, const DecodingLimits& limits = {}) {
  return message_of<DataError>([&] { decode_image(bytes, "a", 3, limits); });
}

/// A JPEG whose first scan comes `n` times more.
std::string with_more_scans(const std::string& jpeg, int n) {
  const size_t begin = jpeg.find("\xFF\xDA");
  size_t end = begin + 2;
  while (jpeg[end] != '\xFF' || jpeg[end + 1] == '\0') ++end;  // the next marker
  std::string longer = jpeg.substr(0, end);
  for (int i = 0; i < n; ++i) longer += jpeg.substr(begin, end - begin);
  return longer + jpeg.substr(end);
}

TEST(ImageFile, AJpegHasFewScans) {
  const auto jpeg = seed_of("jpeg/progressive.jpg");
  EXPECT_EQ(problem_of_image(with_more_scans(jpeg, 50)), "no error");
  EXPECT_EQ(
      problem_of_image(with_more_scans(jpeg, 20'000)),
      "a: the image has more than 100 scans, the most that are read for its size: save it as another JPEG "
      "or as PNG");
  const Image image = decode_image(jpeg, "a", 3);
  const int64_t n = image.shape.height * image.shape.width;
  EXPECT_THAT(problem_of_image(with_more_scans(jpeg, 50), {.scanned_pixels = 20 * n}),
              HasSubstr("the image has more than 20 scans"));
  EXPECT_EQ(problem_of_image(jpeg, {.scanned_pixels = 20 * n}), "no error");
}

// A file of 6 GB that takes no room on the disk.
TEST(ImageFile, ALargeFileIsNotRead) {
  const TempDir dir;
  const auto path = dir.write("a.png", seed_of("png/rgb.png"));
  std::filesystem::resize_file(path, uintmax_t{6} << 30);
  EXPECT_THAT(message_of<DataError>([&] { read_image(path, Follow::links, 3); }),
              HasSubstr("a.png': it is larger than 512 MiB, the most that is read of such a file"));
  EXPECT_THAT(message_of<DataError>([&] { read_file(path); }), HasSubstr("it is larger than 4096 MiB"));
}

TEST(ImageFile, TransparencyIsPutOnWhiteAndTold) {
  EXPECT_TRUE(decode_image(seed_of("png/rgba.png"), "a", 3).has_transparency);
  EXPECT_FALSE(decode_image(seed_of("png/rgb.png"), "a", 3).has_transparency);
  EXPECT_FALSE(decode_image(seed_of("jpeg/grey.jpg"), "a", 3).has_transparency);
}

TEST(FileListing, FindsImagesAtEveryDepthAndCountsTheRest) {
  const TempDir dir;
  for (const auto* name : {"b.png", "a/c.JPG", "a/deep/d.webp", ".hidden.png", ".git/e.png", "a/notes.txt",
                           "more.txt", "README"})
    dir.write(name, "x");
  ASSERT_EQ(::mkfifo((dir / "pipe.png").c_str(), 0600), 0);
  std::filesystem::create_directory_symlink(dir.path(), dir / "a/loop");
  std::filesystem::create_symlink(dir / "b.png", dir / "z.png");
  const auto listing = list_files(dir.path(), is_image_name);
  EXPECT_THAT(listing.files,
              ElementsAre(dir / "a/c.JPG", dir / "a/deep/d.webp", dir / "b.png", dir / "z.png"));
  EXPECT_EQ(listing.skipped_text(),
            "5 other files left out: 2 .txt, 1 no extension, 2 no file");  // the pipe and the link
  EXPECT_EQ(list_files(dir / "a/deep", is_image_name).skipped_text(), std::nullopt);
}

TEST(ImageFile, DamagedFilesOfASetAreNamed) {
  std::vector<std::string> problems{"", "a.png: damaged", "", "b.png: damaged", ""};
  const auto read = [&](int64_t i) {
    const auto& problem = problems[static_cast<size_t>(i)];
    if (!problem.empty()) throw DataError(problem);
    return Image{};
  };
  EXPECT_EQ(message_of<DataError>([&] { read_of_set(3, 5, read); }),
            "2 of 5 images cannot be read: a.png: damaged; b.png: damaged");
  EXPECT_EQ(message_of<DataError>([&] { read_of_set(1, 3, read); }), "a.png: damaged");
  EXPECT_EQ(message_of<DataError>([&] { read_of_set(0, 5, read); }), "no error")
      << "others are not looked at";
  problems = {std::string(200, 'a'), std::string(200, 'b'), "c"};
  EXPECT_EQ(message_of<DataError>([&] { read_of_set(0, 3, read); }),
            fmt::format("3 of 3 images cannot be read: {}; {}; …", problems[0], problems[1]));
}

// What Exif says is compared with PIL in tests/parity; here is what must be ignored.
TEST(Exif, DamagedDataSayNothing) {
  using std::string_literals::operator""s;
  const auto tiff = [](const std::string& entry) { return "MM\0\x2A\0\0\0\x08\0\x01"s + entry; };
  const auto turned = tiff("\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"s);
  EXPECT_EQ(exif_orientation(turned), 6);
  EXPECT_EQ(exif_orientation("Exif\0\0"s + turned), 6);
  for (size_t n = 0; n < turned.size() - 2; ++n) EXPECT_EQ(exif_orientation(turned.substr(0, n)), 1) << n;
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x03\0\0\0\x01\0\x09\0\0"s)), 1) << "there are eight";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x04\0\0\0\x01\0\x06\0\0"s)), 1) << "a larger number";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x04\0\0\0\x01\0\0\0\x06"s)), 6) << "LONG";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x01\0\0\0\x01\x08\0\0\0"s)), 8) << "BYTE";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x06\0\0\0\x01\x08\0\0\0"s)), 8) << "SBYTE";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x08\0\0\0\x01\0\x03\0\0"s)), 3) << "SSHORT";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x09\0\0\0\x01\0\0\0\x06"s)), 6) << "SLONG";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x09\0\0\0\x01\xff\xff\xff\xff"s)), 1) << "-1";
  EXPECT_EQ(exif_orientation(tiff("\x01\x12\0\x02\0\0\0\x01\x06\0\0\0"s)), 1) << "a text";
  EXPECT_EQ(exif_orientation("II\x2A\0\xFF\xFF\xFF\xFF"s), 1) << "the directory is elsewhere";
}

}  // namespace
}  // namespace zoo::testing
