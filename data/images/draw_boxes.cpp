#include "data/images/draw_boxes.h"

#include <gd.h>
#include <gdfonts.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

struct Color {
  int red = 0, green = 0, blue = 0;
};

using Canvas = std::unique_ptr<gdImage, void (*)(gdImagePtr)>;

Canvas make_canvas(int64_t width, int64_t height) {
  Canvas canvas(gdImageCreateTrueColor(static_cast<int>(width), static_cast<int>(height)), gdImageDestroy);
  if (!canvas) throw SystemError(fmt::format("not enough memory to draw on {} x {} pixels", width, height));
  return canvas;
}

/// The picture with each pixel as a square of `factor` × `factor`.
Canvas enlarged(const Image& image, int64_t factor) {
  const auto& [channels, height, width] = image.shape;
  const int64_t n = height * width, green = channels == 1 ? 0 : n, blue = channels == 1 ? 0 : 2 * n;
  auto canvas = make_canvas(width * factor, height * factor);
  for (int64_t y = 0; y < height * factor; ++y) {
    const uint8_t* const row = image.pixels.data() + y / factor * width;
    int* const to = canvas->tpixels[y];
    for (int64_t x = 0; x < width * factor; ++x) {
      const uint8_t* const pixel = row + x / factor;
      to[x] = gdTrueColor(pixel[0], pixel[green], pixel[blue]);
    }
  }
  return canvas;
}

Image image_of(const gdImage& canvas) {
  const int64_t width = canvas.sx, height = canvas.sy, n = width * height;
  Image image{.shape = {.channels = 3, .height = height, .width = width}, .pixels = {}};
  image.pixels.resize(static_cast<size_t>(3 * n));
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* const to = image.pixels.data() + y * width;
    for (int64_t x = 0; x < width; ++x) {
      const int pixel = canvas.tpixels[y][x];
      to[x] = static_cast<uint8_t>(gdTrueColorGetRed(pixel));
      to[n + x] = static_cast<uint8_t>(gdTrueColorGetGreen(pixel));
      to[2 * n + x] = static_cast<uint8_t>(gdTrueColorGetBlue(pixel));
    }
  }
  return image;
}

/// The colour of label number `index`. Hues follow each other by the golden angle, so any first few of them
/// are far apart (HSV with full saturation).
Color color_of(int64_t index) {
  constexpr double golden = 0.6180339887498949, sextants = 6, white = 255;
  const double hue = sextants * std::fmod(static_cast<double>(index) * golden, 1.0);
  const auto channel = [&](double middle) {  // 1 within a sextant of the middle, 0 beyond two sextants
    const double away = std::abs(std::remainder(hue - middle, sextants));
    return static_cast<int>(std::lround(white * std::clamp(2 - away, 0.0, 1.0)));
  };
  return {.red = channel(0), .green = channel(2), .blue = channel(4)};
}

/// Whether black text on a colour is easier to read than white (luma of ITU-R 601).
bool is_light(const Color& color) {
  return 299 * color.red + 587 * color.green + 114 * color.blue > 128 * 1000;
}

/// One character of UTF-8 as the fonts have it.
std::string in_font(iconv_t conversion, std::string character) {
  std::array<char, 16> bytes{};
  char *from = character.data(), *to = bytes.data();
  size_t n_from = character.size(), n_to = bytes.size();
  iconv(conversion, nullptr, nullptr, nullptr, nullptr);
  if (iconv(conversion, &from, &n_from, &to, &n_to) == static_cast<size_t>(-1)) return "?";
  return {bytes.data(), to};
}

/// Text of one line in ISO 8859-2.
std::string for_font(std::string_view label) {
  const auto conversion = iconv_open("ISO-8859-2//TRANSLIT", "UTF-8");
  if (conversion == reinterpret_cast<iconv_t>(-1))  // NOLINT(*-no-int-to-ptr)
    throw SystemError("iconv knows no ISO 8859-2");
  const std::unique_ptr<void, int (*)(iconv_t)> closed_at_the_end(conversion, iconv_close);
  std::string text;
  for (const char32_t c : decode_utf8(excerpt(label))) text += in_font(conversion, encode_utf8({&c, 1}));
  return text;
}

/// Frames and labels on one canvas.
class Drawing {
 public:
  explicit Drawing(gdImage& canvas) : canvas_(canvas) {
    // The shorter side has a say, too, or the text of a long picture would be higher than the picture.
    constexpr int64_t pixels_of_a_step = 1000, shorter_pixels_of_a_step = 100;
    scale_ = 1 + std::min(std::max(canvas.sx, canvas.sy) / pixels_of_a_step,
                          std::min(canvas.sx, canvas.sy) / shorter_pixels_of_a_step);
  }

  /// `box`: in pixels of the canvas.
  void add_frame(const Box& box, const Color& color) {
    const auto [left, top, right, bottom] = edges_of(box);
    const int64_t line = thickness(right - left, bottom - top);
    fill(left, top, right, top + line - 1, color);
    fill(left, bottom - line + 1, right, bottom, color);
    fill(left, top, left + line - 1, bottom, color);
    fill(right - line + 1, top, right, bottom, color);
  }

  /// Writes above the box, or within it where the picture ends above; beside or below other texts where it
  /// would cover them and there is room.
  void add_text(const Box& box, const Color& color, const std::string& text) {
    const gdFont& font = *gdFontGetSmall();
    constexpr int margin = 2, margins = 2 * margin;
    const auto room = std::max<int64_t>(0, (canvas_.sx / scale_ - margins) / font.w);
    std::string shown = text.substr(0, static_cast<size_t>(room));
    const int width = static_cast<int>(shown.size()) * font.w + margins, height = font.h;
    const auto sign = make_canvas(width, height);
    gdImageFilledRectangle(sign.get(), 0, 0, width - 1, height - 1,
                           gdTrueColor(color.red, color.green, color.blue));
    const int ink = is_light(color) ? gdTrueColor(0, 0, 0) : gdTrueColor(255, 255, 255);
    gdImageString(sign.get(), gdFontGetSmall(), margin, 0, reinterpret_cast<unsigned char*>(shown.data()),
                  ink);
    const auto [x, y] = place_for(edges_of(box), width * scale_, height * scale_);
    gdImageCopyResized(&canvas_, sign.get(), static_cast<int>(x), static_cast<int>(y), 0, 0,
                       static_cast<int>(width * scale_), static_cast<int>(height * scale_), width, height);
  }

 private:
  /// A coordinate of a box that may reach out of the picture.
  static int64_t within(double at, int size) {
    return static_cast<int64_t>(std::lround(std::clamp(std::isfinite(at) ? at : 0.0, 0.0, double(size))));
  }
  /// Two pixels, but one for a box of which the frame would leave little.
  int64_t thickness(int64_t width, int64_t height) const {
    constexpr int64_t share = 16;
    return scale_ * (std::min(width, height) > share * scale_ ? 2 : 1);
  }
  void fill(int64_t left, int64_t top, int64_t right, int64_t bottom, const Color& color) {
    gdImageFilledRectangle(&canvas_, static_cast<int>(left), static_cast<int>(top), static_cast<int>(right),
                           static_cast<int>(bottom), gdTrueColor(color.red, color.green, color.blue));
  }
  /// The first and the last column and row of a box.
  struct Edges {
    int64_t left, top, right, bottom;
  };
  Edges edges_of(const Box& box) const {
    const int64_t left = within(box.x, canvas_.sx), top = within(box.y, canvas_.sy);
    return {.left = left,
            .top = top,
            .right = std::max(left, within(box.x + box.width, canvas_.sx) - 1),
            .bottom = std::max(top, within(box.y + box.height, canvas_.sy) - 1)};
  }

  struct Place {
    int64_t x, y;
  };
  /// A place for a text of this size at a box, free if there is one among some.
  Place place_for(const Edges& box, int64_t width, int64_t height) {
    constexpr int64_t most_steps = 20;
    const int64_t x = std::clamp<int64_t>(box.left, 0, std::max<int64_t>(0, canvas_.sx - width));
    const auto at = [&](int64_t y) {
      return Place{x, std::clamp<int64_t>(y, 0, std::max<int64_t>(0, canvas_.sy - height))};
    };
    const int64_t above = box.top - height;
    const Place first = at(above >= 0 ? above : box.top);
    std::vector<Place> places{first, at(box.top), at(box.bottom + 1)};
    for (int64_t step = 1; step <= most_steps; ++step) {
      places.push_back(at(box.top + step * height));
      places.push_back(at(above - step * height));
    }
    const auto is_free = [&](const Place& place) {
      return std::ranges::none_of(texts_, [&](const Edges& text) {
        return place.x <= text.right && text.left < place.x + width && place.y <= text.bottom &&
               text.top < place.y + height;
      });
    };
    const auto found = std::ranges::find_if(places, is_free);
    const Place place = found == places.end() ? first : *found;
    texts_.push_back({place.x, place.y, place.x + width - 1, place.y + height - 1});
    return place;
  }

  gdImage& canvas_;
  int64_t scale_ = 1;         // of lines and text
  std::vector<Edges> texts_;  // that are written
};

}  // namespace

Image draw_boxes(const Image& image, std::span<const LabelledBox> objects,
                 const std::vector<std::string>& labels) {
  constexpr int64_t least_side = 300;
  const int64_t side = std::max(image.shape.height, image.shape.width);
  const int64_t factor = side < least_side ? (least_side + side - 1) / side : 1;
  const auto canvas = enlarged(image, factor);
  Drawing drawing(*canvas);
  const auto f = static_cast<double>(factor);
  const auto on_canvas = [f](const Box& box) {
    return Box{.x = box.x * f, .y = box.y * f, .width = box.width * f, .height = box.height * f};
  };
  const auto color = [&](const std::string& label) {
    return color_of(std::ranges::find(labels, label) - labels.begin());
  };
  for (const auto& object : std::views::reverse(objects))
    drawing.add_frame(on_canvas(object.box), color(object.label));
  for (const auto& [label, score, box, query] : objects)
    drawing.add_text(on_canvas(box), color(label), fmt::format("{} {:.2f}", for_font(label), score));
  return image_of(*canvas);
}

}  // namespace zoo
