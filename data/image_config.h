#pragma once
// `data.images:`, how images become inputs of a model.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"

namespace zoo {

/// Operations on colours and shapes that are drawn at random (RandAugment, Cubuk et al. 2020).
struct RandAugmentConfig {
  int64_t n = 2;          // operations for an image
  int64_t magnitude = 9;  // of each: 0 … 30
};
void describe(ConfigVisitor& v, RandAugmentConfig& c);

/// Random changes of training images. Each is a function of (training.seed, epoch, image) alone.
struct AugmentConfig {
  /// The image is framed by so many black pixels, and a part of the former size is cut out.
  int64_t crop_padding = 0;
  /// A part with an area of this share or more, and sides of 3:4 to 4:3, is cut out and resized (Szegedy et
  /// al. 2015); default: the image is not resized.
  std::optional<double> min_crop_area = {};
  /// The shorter side becomes min_scale · size to size pixels; object_detection only.
  double min_scale = 1;
  double flip = 0;                                     // probability of exchanging left and right
  std::optional<RandAugmentConfig> rand_augment = {};  // default: no such operations
  /// Probability of erasing a rectangle of 2 % to 33 % of the area (Zhong et al. 2020).
  double erasing = 0;
  /// Another image is mixed in with a share from Beta(mixup, mixup) (Zhang et al. 2018); 0 = never.
  double mixup = 0;
  /// A rectangle of another image is pasted in, its area from Beta(cutmix, cutmix) (Yun et al. 2019); 0 =
  /// never. If there is mixup, too, one of both happens.
  double cutmix = 0;

  bool mixes() const { return mixup > 0 || cutmix > 0; }
};
void describe(ConfigVisitor& v, AugmentConfig& c);

/// How the pictures of a batch get one size. What a convolutional network sees at the edge of a picture
/// depends on it.
///   batch   they are padded to the height and width of the largest ones
///   square  they are padded to longest_side() × longest_side(), so that no picture depends on the others
enum class PicturePadding { batch, square };
constexpr auto config_names(PicturePadding) { return std::to_array<std::string_view>({"batch", "square"}); }

/// How an image of another size becomes a square input of `size` × `size`.
///   cut      it is resized until its shorter side has resize_to pixels, and the middle is cut out
///   squeeze  both of its sides are resized to resize_to pixels, and the middle is cut out
///   middle   it is not resized: the middle is cut out, and an image that is smaller gets a black frame
///   exact    it is an error
enum class PictureFit { cut, squeeze, middle, exact };
constexpr auto config_names(PictureFit) {
  return std::to_array<std::string_view>({"cut", "squeeze", "middle", "exact"});
}

/// How a resized pixel is made of those around it, as in Pillow.
enum class PictureFilter { nearest, lanczos, bilinear, bicubic, box, hamming };
constexpr auto config_names(PictureFilter) {
  return std::to_array<std::string_view>({"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"});
}

/// What becomes of transparent parts: they are put on white, or their colours are taken as if they were not
/// transparent, as Pillow's convert("RGB") and transformers do.
enum class Transparency { white, dropped };
constexpr auto config_names(Transparency) { return std::to_array<std::string_view>({"white", "dropped"}); }

struct ImageConfig {
  int64_t size = 224;                     // side of the square inputs in pixels
  PictureFit fit = PictureFit::cut;       // for square inputs
  std::optional<int64_t> resize_to = {};  // with cut and squeeze; default: size
  PictureFilter filter = PictureFilter::bilinear;
  Transparency transparency = Transparency::white;
  /// object_detection: the most pixels of the longer side; default 5/3 of size. There, `size` is the shorter
  /// side, and nothing is cut off.
  std::optional<int64_t> max_size = {};
  PicturePadding padding = PicturePadding::batch;  // object_detection
  int64_t channels = 3;                            // 1 = grey, 3 = red, green, blue
  /// Names of the labels 0, 1, … of an IDX file; default: the numbers.
  std::vector<std::string> label_names = {};
  AugmentConfig augment = {};

  int64_t longest_side() const { return max_size.value_or(size * 5 / 3); }
  int64_t resized_side() const { return resize_to.value_or(size); }
};
void describe(ConfigVisitor& v, ImageConfig& c);
/// Checks across keys.
void validate(const ImageConfig& c, const Complain& complain);
/// Complains about changes of images that do not fit boxes, and about those that only fit boxes.
void validate_for_boxes(const ImageConfig& c, const Complain& complain);
void validate_without_boxes(const ImageConfig& c, const Complain& complain);

}  // namespace zoo
