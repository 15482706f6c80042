// Boxes that are drawn on pictures.

#include "data/images/draw_boxes.h"

#include <array>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zoo::testing {
namespace {

using Pixel = std::array<int, 3>;

constexpr Pixel kRed{255, 0, 0};  // the colour of the first label

Image plain(int64_t channels, int64_t height, int64_t width, uint8_t value) {
  return {.shape = {.channels = channels, .height = height, .width = width},
          .pixels = std::vector<uint8_t>(static_cast<size_t>(channels * height * width), value)};
}

Pixel at(const Image& image, int64_t y, int64_t x) {
  const int64_t n = image.shape.height * image.shape.width, i = y * image.shape.width + x;
  const auto channel = [&](int64_t c) { return int{image.pixels.at(static_cast<size_t>(c * n + i))}; };
  return {channel(0), channel(1), channel(2)};
}

std::set<Pixel> colours_of(const Image& image) {
  std::set<Pixel> colours;
  for (int64_t y = 0; y < image.shape.height; ++y)
    for (int64_t x = 0; x < image.shape.width; ++x) colours.insert(at(image, y, x));
  return colours;
}

TEST(DrawBoxes, AFrameOfTwoPixelsIsAroundTheObject) {
  const Image drawn = draw_boxes(plain(3, 400, 400, 90),
                                 std::vector<LabelledBox>{{"cat", 0.9, {100, 150, 60, 40}}}, {"cat", "dog"});
  EXPECT_EQ(drawn.shape.height, 400);
  EXPECT_EQ(drawn.shape.width, 400);
  for (const int64_t x : {100, 101, 130, 158, 159}) {
    EXPECT_EQ(at(drawn, 150, x), kRed) << x;
    EXPECT_EQ(at(drawn, 189, x), kRed) << x;
  }
  for (const int64_t y : {150, 170, 189}) {
    EXPECT_EQ(at(drawn, y, 101), kRed) << y;
    EXPECT_EQ(at(drawn, y, 158), kRed) << y;
  }
  const Pixel untouched{90, 90, 90};
  EXPECT_EQ(at(drawn, 170, 102), untouched) << "inside";
  EXPECT_EQ(at(drawn, 170, 99), untouched) << "left of it";
  EXPECT_EQ(at(drawn, 170, 160), untouched) << "right of it";
  EXPECT_EQ(at(drawn, 190, 130), untouched) << "below it";
}

TEST(DrawBoxes, TheTextStandsAboveTheBoxOrWithinIt) {
  const std::vector<std::string> labels{"cat"};
  const auto ground = [&](const Box& box) {
    const Image drawn =
        draw_boxes(plain(3, 400, 400, 90), std::vector<LabelledBox>{{"cat", 0.9, box}}, labels);
    int64_t top = 400, bottom = -1, right = -1, n_ink = 0;
    for (int64_t y = 0; y < 400; ++y) {
      for (int64_t x = 0; x < 400; ++x) {
        if (at(drawn, y, x) == Pixel{255, 255, 255}) {  // white letters on red
          top = std::min(top, y), bottom = std::max(bottom, y), right = std::max(right, x), ++n_ink;
        }
      }
    }
    EXPECT_GT(n_ink, 40) << "the letters of “cat 0.90”";
    return std::array{top, bottom, right};
  };
  const auto above = ground({.x = 100, .y = 150, .width = 60, .height = 40});
  EXPECT_GT(above[0], 130);
  EXPECT_LT(above[1], 150);
  const auto within = ground({.x = 100, .y = 3, .width = 60, .height = 40});
  EXPECT_GE(within[0], 3);
  EXPECT_LT(within[1], 20);
  const auto at_the_right = ground({.x = 390, .y = 150, .width = 10, .height = 40});
  EXPECT_LT(at_the_right[2], 400);
  EXPECT_GT(at_the_right[2], 380) << "moved to the left by as little as possible";
}

TEST(DrawBoxes, EveryLabelHasItsColour) {
  const std::vector<std::string> labels{"a", "b", "c", "d", "e", "f"};
  std::set<Pixel> frames;
  for (const auto& label : labels) {
    const Image drawn = draw_boxes(plain(3, 300, 300, 90),
                                   std::vector<LabelledBox>{{label, 0.5, {50, 50, 100, 100}}}, labels);
    frames.insert(at(drawn, 149, 100));
    EXPECT_EQ(at(drawn, 149, 100), at(drawn, 100, 50)) << label;
  }
  EXPECT_EQ(frames.size(), labels.size());
}

TEST(DrawBoxes, TheBestObjectIsOnTop) {
  const std::vector<LabelledBox> objects{{"a", 0.9, {50, 50, 100, 100}}, {"b", 0.6, {50, 50, 100, 100}}};
  EXPECT_EQ(at(draw_boxes(plain(3, 300, 300, 90), objects, {"a", "b"}), 149, 100), kRed);
}

TEST(DrawBoxes, ASmallPictureIsEnlargedByAWholeFactor) {
  Image image = plain(1, 28, 20, 0);
  image.pixels[static_cast<size_t>(5 * 20 + 7)] = 200;
  const Image drawn = draw_boxes(image, {}, {});
  EXPECT_EQ(drawn.shape.channels, 3);
  EXPECT_EQ(drawn.shape.height, 28 * 11);  // 28 * 10 < 300
  EXPECT_EQ(drawn.shape.width, 20 * 11);
  for (const int64_t y : {5 * 11, 5 * 11 + 10})
    for (const int64_t x : {7 * 11, 7 * 11 + 10}) EXPECT_EQ(at(drawn, y, x), (Pixel{200, 200, 200}));
  EXPECT_EQ(at(drawn, 5 * 11 - 1, 7 * 11), (Pixel{0, 0, 0}));
  EXPECT_EQ(at(drawn, 5 * 11, 8 * 11), (Pixel{0, 0, 0}));

  const Image framed = draw_boxes(image, std::vector<LabelledBox>{{"a", 0.5, {4, 10, 8, 8}}}, {"a"});
  EXPECT_EQ(at(framed, 18 * 11 - 1, 8 * 11), kRed) << "boxes are enlarged, too";
  EXPECT_EQ(at(framed, 14 * 11, 4 * 11), kRed);
  EXPECT_NE(at(framed, 14 * 11, 4 * 11 - 1), kRed);
  EXPECT_NE(at(framed, 18 * 11, 8 * 11), kRed);
}

TEST(DrawBoxes, FramesAndTextGrowWithThePicture) {
  const Image drawn = draw_boxes(plain(3, 1200, 2400, 90),
                                 std::vector<LabelledBox>{{"a", 0.5, {1000, 400, 600, 600}}}, {"a"});
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(at(drawn, 999 - i, 1300), kRed) << i;
  EXPECT_EQ(at(drawn, 993, 1300), (Pixel{90, 90, 90}));
  EXPECT_EQ(at(drawn, 400 - 38, 1001), kRed) << "the ground of letters of 3 * 13 pixels";
}

// Each text has a ground of its colour, all of which must be seen.
TEST(DrawBoxes, TextsDoNotCoverEachOther) {
  const std::vector<std::string> labels{"a", "b", "c", "d"};
  const auto n_pixels = [&](const std::vector<LabelledBox>& objects, const Pixel& color) {
    const Image drawn = draw_boxes(plain(3, 400, 400, 90), objects, labels);
    int64_t n = 0;
    for (int64_t y = 0; y < 400; ++y)
      for (int64_t x = 0; x < 400; ++x) n += at(drawn, y, x) == color;
    return n;
  };
  // A box of one pixel has little of a frame.
  const Box box{100, 200, 1, 1};
  std::vector<LabelledBox> objects;
  for (const auto& label : labels) objects.push_back({label, 0.9, box});
  const auto alone = n_pixels({objects.front()}, kRed);
  EXPECT_GT(alone, 100);
  EXPECT_GE(n_pixels(objects, kRed), alone - 4);
}

// Text as high as the picture would hide it, and its length would take minutes.
TEST(DrawBoxes, TextStaysSmallOnLongPictures) {
  const Image drawn =
      draw_boxes(plain(3, 60, 20'000, 90), std::vector<LabelledBox>{{"a", 0.5, {1000, 30, 600, 25}}}, {"a"});
  EXPECT_EQ(at(drawn, 16, 1010), (Pixel{90, 90, 90}));
  EXPECT_EQ(at(drawn, 17, 1001), kRed) << "the ground of letters of 13 pixels";
}

// Whatever a model says, nothing is written outside the picture.
TEST(DrawBoxes, BoxesOutsideThePictureAreHarmless) {
  constexpr double kFar = 1e300, kInfinity = std::numeric_limits<double>::infinity();
  for (const Box& box : std::vector<Box>{{-50, -50, 1000, 1000},
                                         {500, 500, 10, 10},
                                         {-500, -500, 10, 10},
                                         {-kFar, -kFar, 2 * kFar, 2 * kFar},
                                         {-kInfinity, 0, kInfinity, kInfinity},
                                         {std::numeric_limits<double>::quiet_NaN(), 5, 5, 5},
                                         {40, 40, 0, 0},
                                         {40, 40, -30, -30}}) {
    for (const auto& [height, width] :
         std::vector<std::pair<int64_t, int64_t>>{{310, 310}, {1, 400}, {400, 1}, {1, 1}}) {
      const Image drawn =
          draw_boxes(plain(3, height, width, 90), std::vector<LabelledBox>{{"label", 0.5, box}}, {"label"});
      EXPECT_GE(drawn.shape.height, height);
    }
  }
}

TEST(DrawBoxes, LabelsMayHaveAnyLetters) {
  const std::vector<std::string> labels{"Bär", "猫", "\xFF\xFE", "a\nb\x1B[1m", std::string(5000, 'x'), ""};
  for (const auto& label : labels) {
    const Image drawn = draw_boxes(plain(3, 320, 320, 90),
                                   std::vector<LabelledBox>{{label, 0.5, {10, 100, 200, 100}}}, labels);
    EXPECT_GE(colours_of(drawn).size(), 3U) << "the picture, a frame, and text";
  }
  // A letter of the font is not the question mark that stands for one that the font lacks.
  const auto drawn = [&](const std::string& label) {
    return draw_boxes(plain(3, 320, 320, 90), std::vector<LabelledBox>{{label, 0.5, {10, 100, 200, 100}}}, {})
        .pixels;
  };
  EXPECT_NE(drawn("ä"), drawn("?"));
  EXPECT_NE(drawn("ä"), drawn("a"));
  EXPECT_EQ(drawn("猫"), drawn("?"));
}

}  // namespace
}  // namespace zoo::testing
