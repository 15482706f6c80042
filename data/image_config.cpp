#include "data/image_config.h"

#include <cmath>

#include <fmt/format.h>

namespace zoo {

void describe(ConfigVisitor& v, RandAugmentConfig& c) {
  constexpr double most_operations = 14, largest = 30;
  v.field("n", c.n, "Operations for an image, each drawn from 14.", Limits::between(1, most_operations));
  v.field("magnitude", c.magnitude, "Strength of each operation.", Limits::between(0, largest));
}

void describe(ConfigVisitor& v, AugmentConfig& c) {
  constexpr double most_padding = 1 << 12, largest_alpha = 4;
  v.field("crop_padding", c.crop_padding,
          "Frame the image by so many black pixels, and cut out a part of its former size.",
          Limits::between(0, most_padding));
  v.field("min_crop_area", c.min_crop_area,
          "Cut out a part with at least this share of the area and resize it; default: do not.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("min_scale", c.min_scale,
          "object_detection: the shorter side becomes min_scale x size to size pixels; 1 = always size.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("flip", c.flip, "Probability of exchanging left and right.", Limits::between(0, 1));
  v.field("rand_augment", c.rand_augment,
          "image_classification: operations on colours and shapes (RandAugment); default: none.");
  v.field("erasing", c.erasing, "Probability of erasing a rectangle.", Limits::between(0, 1));
  v.field("mixup", c.mixup, "Mix in another image with a share from Beta(mixup, mixup); 0 = never.",
          Limits::between(0, largest_alpha));
  v.field("cutmix", c.cutmix,
          "Paste in a rectangle of another image, with an area from Beta(cutmix, cutmix); 0 = never.",
          Limits::between(0, largest_alpha));
}

void describe(ConfigVisitor& v, ImageConfig& c) {
  constexpr double largest = 1 << 13;
  v.field(
      "size", c.size,
      "Side of the inputs in pixels. Other images are resized to it at their shorter side, and the middle is "
      "cut out, unless fit says something else.",
      Limits::between(1, largest));
  v.field(
      "fit", c.fit,
      "cut: the shorter side becomes resize_to, and the middle is cut out; squeeze: both sides become "
      "resize_to; middle: images are not resized, and the middle is cut out; exact: images of other sizes "
      "are an error.");
  v.field("resize_to", c.resize_to, "Pixels of a side before the middle is cut out; default: size.",
          Limits::between(1, largest));
  v.field("filter", c.filter, "How images are resized, as Pillow does it.");
  v.field(
      "transparency", c.transparency,
      "white: transparent parts are put on white; dropped: their colours are taken as they are in the file.");
  v.field("max_size", c.max_size,
          "object_detection: most pixels of the longer side; default 5/3 of size. There, size is the shorter "
          "side, and nothing is cut off.",
          Limits::between(1, 2 * largest));
  v.field(
      "padding", c.padding,
      "object_detection: batch: pictures are padded to the largest of their batch; square: all to max_size x "
      "max_size, so that a model sees the same whatever else is in the batch.");
  v.field("channels", c.channels, "Numbers of a pixel: 1 = grey, 3 = colours.", Limits::between(1, 3));
  v.field("label_names", c.label_names, "Names of the labels 0, 1, ... of IDX files; default: the numbers.");
  v.field("augment", c.augment, "Random changes of training images.");
}

void validate(const ImageConfig& c, const Complain& complain) {
  if (c.channels == 2) complain("channels", "must be 1 (grey) or 3 (colours)");
  if (c.augment.crop_padding > 0 && c.augment.min_crop_area)
    complain("augment.crop_padding",
             "and augment.min_crop_area are two ways of cutting out a part: choose one");
  if (std::llround(static_cast<double>(c.size) * c.augment.min_scale) < 1) {
    complain("augment.min_scale",
             fmt::format("{} of size {} is less than a pixel: make it larger", c.augment.min_scale, c.size));
  }
  if (c.resize_to && (c.fit == PictureFit::middle || c.fit == PictureFit::exact))
    complain("resize_to", "is for fit cut or squeeze: leave it out");
  if (c.resized_side() < c.size)
    complain("resize_to", fmt::format("{} is less than size {}", *c.resize_to, c.size));
  if (c.max_size && *c.max_size < c.size)
    complain("max_size", fmt::format("{} is less than size {}", *c.max_size, c.size));
}

void validate_for_boxes(const ImageConfig& c, const Complain& complain) {
  const auto augment = complain_under("augment", complain);
  const auto refuse = [&](bool is_set, std::string_view key) {
    if (is_set) augment(key, "does not fit boxes: leave it out");
  };
  if (c.fit != PictureFit::cut || c.resize_to)
    complain("fit", "and resize_to are for square inputs: leave them out");
  refuse(c.augment.crop_padding > 0, "crop_padding");
  refuse(c.augment.rand_augment.has_value(), "rand_augment");
  refuse(c.augment.erasing > 0, "erasing");
  refuse(c.augment.mixup > 0, "mixup");
  refuse(c.augment.cutmix > 0, "cutmix");
}

void validate_without_boxes(const ImageConfig& c, const Complain& complain) {
  const auto refuse = [&](bool is_set, std::string_view key) {
    if (is_set) complain(key, "is for object_detection: leave it out");
  };
  refuse(c.max_size.has_value(), "max_size");
  refuse(c.padding != PicturePadding::batch, "padding");
  refuse(c.augment.min_scale != 1, "augment.min_scale");
}

}  // namespace zoo
