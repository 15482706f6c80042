#include "interop/foreign_pictures.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/families/vit.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

/// What a class of image processors does where a file says nothing.
struct ProcessorType {
  std::string_view name;  // without ImageProcessor
  PictureFit fit;         // of a size that is one number
  int64_t size;
  std::optional<int64_t> crop;  // of the middle
  PictureFilter filter;
  std::array<double, 3> mean, deviation;
};

constexpr std::array kHalves = {0.5, 0.5, 0.5};
constexpr std::array kClipMean = {0.48145466, 0.4578275, 0.40821073};
constexpr std::array kClipDeviation = {0.26862954, 0.26130258, 0.27577711};

constexpr auto kSquareTypes = std::to_array<ProcessorType>({
    {"ViT", PictureFit::squeeze, 224, std::nullopt, PictureFilter::bilinear, kHalves, kHalves},
    {"DeiT", PictureFit::squeeze, 256, 224, PictureFilter::bicubic, kHalves, kHalves},
    {"Beit", PictureFit::squeeze, 256, 224, PictureFilter::bicubic, kHalves, kHalves},
    {"CLIP", PictureFit::cut, 224, 224, PictureFilter::bicubic, kClipMean, kClipDeviation},
    {"Siglip", PictureFit::squeeze, 224, std::nullopt, PictureFilter::bicubic, kHalves, kHalves},
    {"Bit", PictureFit::cut, 224, 224, PictureFilter::bicubic, kClipMean, kClipDeviation},
});
constexpr auto kDetectionTypes = std::to_array<ProcessorType>({
    {"Detr",
     PictureFit::cut,
     800,
     std::nullopt,
     PictureFilter::bilinear,
     {0.485, 0.456, 0.406},
     {0.229, 0.224, 0.225}},
});
constexpr int64_t kLongestOfDetr = 1333;

/// The class that a file names, of those that are known; the first one if it names none.
const ProcessorType& processor_type_of(ForeignConfig& from, std::span<const ProcessorType> types) {
  const auto newer = from.optional_text("image_processor_type");
  const auto older = from.optional_text("feature_extractor_type");
  if (!newer && !older) return types.front();
  auto name = std::string_view(newer ? *newer : *older);
  for (const std::string_view ending : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  const auto found = std::ranges::find(types, name, &ProcessorType::name);
  if (found != types.end()) return *found;
  std::vector<std::string> known;
  for (const auto& type : types) known.push_back(fmt::format("{}ImageProcessor", type.name));
  from.fail(newer ? "image_processor_type" : "feature_extractor_type",
            fmt::format("known for this family are {}", fmt::join(known, ", ")));
}

struct PictureSize {
  PictureFit fit;
  int64_t side;
};

/// As transformers takes it, null switches a step off.
bool is_on(ForeignConfig& from, std::string_view key, bool otherwise) {
  const bool is_null = from.json().contains(key) && !from.has(key);
  return !is_null && from.flag(key, otherwise);
}

/// A step that is on needs these values: null is none, while a key that is missing has its usual one.
void refuse_null(const ForeignConfig& from, std::initializer_list<std::string_view> keys,
                 std::string_view step) {
  for (const auto key : keys) {
    if (from.json().contains(key) && !from.has(key)) from.fail(key, fmt::format("{} needs it", step));
  }
}

/// A key that is one number, a list of height and width, or an object with the shorter side or with two equal
/// sides.
PictureSize read_size(ForeignConfig& from, std::string_view key, PictureSize otherwise) {
  if (from.has(key) && from.json()[key].is_array()) {
    const auto sides = from.integers(key);
    if (sides.size() != 2 || sides[0] != sides[1])
      from.fail(key, "height and width differ: only square inputs are supported");
    return {PictureFit::squeeze, sides[0]};
  }
  if (!from.has(key) || !from.json()[key].is_object())
    return {otherwise.fit, from.integer(key, otherwise.side)};
  auto size = *from.object(key);
  PictureSize result{PictureFit::cut, 0};
  if (size.has("shortest_edge")) {
    result.side = size.integer("shortest_edge");
  } else {
    result = {PictureFit::squeeze, size.integer("height")};
    if (size.integer("width") != result.side)
      from.fail(key, "height and width differ: only square inputs are supported");
  }
  size.finish();
  return result;
}

PictureFilter read_filter(ForeignConfig& from, PictureFilter otherwise) {
  const int64_t number = from.integer("resample", static_cast<int64_t>(otherwise));
  if (number < 0 || number > static_cast<int64_t>(PictureFilter::hamming))
    from.fail("resample", "expected a number of Pillow's filters, 0 to 5");
  return static_cast<PictureFilter>(number);
}

/// One number for each channel.
std::vector<double> read_numbers(ForeignConfig& from, std::string_view key,
                                 const std::array<double, 3>& otherwise, int64_t n_channels) {
  const auto n = static_cast<size_t>(n_channels);
  auto numbers = from.number_or_numbers(key);
  if (numbers.empty()) numbers.assign(otherwise.begin(), otherwise.begin() + n_channels);
  if (from.has(key) && from.json()[key].is_number()) numbers = std::vector(n, from.number(key));
  if (numbers.size() != n) from.fail(key, fmt::format("expected a number for each of {} channels", n));
  return numbers;
}

/// do_rescale, do_normalize and their numbers, as statistics of pixels from 0 to 1.
PixelStatistics read_statistics(ForeignConfig& from, const ProcessorType& type, int64_t n_channels) {
  constexpr double white = 255;
  const double factor = from.number("rescale_factor", 1 / white);
  const bool rescales = is_on(from, "do_rescale", true), normalizes = is_on(from, "do_normalize", true);
  if (rescales) refuse_null(from, {"rescale_factor"}, "do_rescale");
  if (normalizes) refuse_null(from, {"image_mean", "image_std"}, "do_normalize");
  const double scale = rescales ? white * factor : white;
  PixelStatistics pixels{.mean = read_numbers(from, "image_mean", type.mean, n_channels),
                         .deviation = read_numbers(from, "image_std", type.deviation, n_channels)};
  if (!normalizes) {
    std::ranges::fill(pixels.mean, 0);
    std::ranges::fill(pixels.deviation, 1);
  }
  for (double& mean : pixels.mean) mean /= scale;
  for (double& deviation : pixels.deviation) deviation /= scale;
  if (!can_normalize(pixels, n_channels)) {
    throw CheckpointError(fmt::format(
        "{}: image_mean, image_std and rescale_factor are not a mean and a positive deviation for each of {} "
        "channels",
        from.place(), n_channels));
  }
  return pixels;
}

/// What all processors have.
PixelStatistics read_common(ForeignConfig& from, const ProcessorType& type, ImageConfig& images) {
  images.filter = read_filter(from, type.filter);
  images.transparency = Transparency::dropped;
  if (from.flag("do_convert_rgb", false) && images.channels != 3)
    from.fail("do_convert_rgb", fmt::format("the model reads {} channels", images.channels));
  // They are about annotations, devices and other forms of input.
  from.ignore({"do_reduce_labels", "reduce_labels", "processor_class", "_processor_class",
               "_valid_processor_keys", "return_tensors", "data_format", "input_data_format", "device",
               "disable_grouping", "backend"});
  return read_statistics(from, type, images.channels);
}

}  // namespace

PixelStatistics read_square_pictures(ForeignConfig& from, ImageConfig& images) {
  const auto& type = processor_type_of(from, kSquareTypes);
  const bool is_square = from.flag("default_to_square", type.fit == PictureFit::squeeze);
  const auto size = read_size(from, "size", {is_square ? PictureFit::squeeze : PictureFit::cut, type.size});
  const auto crop = read_size(from, "crop_size", {PictureFit::squeeze, type.crop.value_or(224)});
  const bool resizes = is_on(from, "do_resize", true);
  const bool crops = is_on(from, "do_center_crop", type.crop.has_value());
  if (resizes) refuse_null(from, {"resample", "size"}, "do_resize");
  if (resizes && !crops && size.fit == PictureFit::cut)
    from.fail("size",
              "without do_center_crop the inputs are no squares: only height and width are supported");
  const int64_t side = crops ? crop.side : resizes ? size.side : images.size;
  if (side != images.size) {
    from.fail(crops ? "crop_size" : "size", fmt::format("pictures become {} x {} pixels, and the model reads "
                                                        "{} x {}",
                                                        side, side, images.size, images.size));
  }
  images.fit = resizes ? size.fit : crops ? PictureFit::middle : PictureFit::exact;
  images.resize_to = resizes && size.side != side ? std::optional(size.side) : std::nullopt;
  // Squares of one size need no padding.
  from.ignore({"do_pad"});
  from.require("pad_size", nullptr);
  auto pixels = read_common(from, type, images);
  from.finish();
  return pixels;
}

PixelStatistics read_detected_pictures(ForeignConfig& from, ImageConfig& images) {
  const auto& type = processor_type_of(from, kDetectionTypes);
  from.require("do_resize", true);
  from.ignore({"default_to_square"});
  if (from.json().contains("do_resize") && !from.has("do_resize"))
    from.fail("do_resize", "only true is supported");
  refuse_null(from, {"resample"}, "do_resize");
  if (from.has("size") && from.json()["size"].is_object()) {
    auto size = *from.object("size");
    images.size = size.integer("shortest_edge");
    images.max_size = size.integer("longest_edge");
    size.finish();
    from.ignore({"max_size"});
  } else {  // older files
    images.size = from.integer("size", type.size);
    images.max_size = from.integer("max_size", kLongestOfDetr);
  }
  const bool pads = from.flag("do_pad", from.flag("pad_and_return_pixel_mask", true));
  if (auto square = from.object("pad_size"); square && pads) {
    const bool fits =
        square->integer("height") == images.max_size && square->integer("width") == images.max_size;
    if (!fits) from.fail("pad_size", "only squares with the longest side are supported");
    square->finish();
    images.padding = PicturePadding::square;
  }
  from.ignore({"format", "do_convert_annotations", "return_segmentation_masks", "masks_path"});
  auto pixels = read_common(from, type, images);
  from.finish();
  return pixels;
}

nlohmann::ordered_json picture_processor_of(const Experiment& experiment, const PixelStatistics& pixels) {
  const auto& images = experiment.data.images;
  if (images.channels != 3) {
    throw ConfigError(
        fmt::format("data.images.channels is {}: the pipelines of transformers give every picture three "
                    "channels: train with 3 to export the model",
                    images.channels));
  }
  const auto square_of = [](int64_t side) {
    return nlohmann::ordered_json{{"height", side}, {"width", side}};
  };
  nlohmann::ordered_json config = {{"do_resize", true},
                                   {"resample", static_cast<int64_t>(images.filter)},
                                   {"do_rescale", true},
                                   {"rescale_factor", 1.0 / 255},
                                   {"do_normalize", true},
                                   {"image_mean", pixels.mean},
                                   {"image_std", pixels.deviation}};
  if (task_type(experiment).predicts == PredictionKind::objects) {
    config["image_processor_type"] = "DetrImageProcessor";
    config["size"] = {{"shortest_edge", images.size}, {"longest_edge", images.longest_side()}};
    config["do_pad"] = true;
    if (images.padding == PicturePadding::square) config["pad_size"] = square_of(images.longest_side());
    config["format"] = "coco_detection";
    return config;
  }
  const bool compares = compares_pictures(experiment.model);
  const auto encoder = compares ? picture_encoder(experiment.model) : experiment.model;
  const auto& vit = encoder.architecture.as<VitConfig>();
  const int64_t wanted = vit.image_size.value_or(images.size);
  const bool has_any_size = vit.pooling == ImagePooling::class_and_mean;  // DINOv2 there
  if (images.size != wanted && !has_any_size) {
    throw ConfigError(fmt::format(
        "transformers reads pictures of one size: data.images.size is {}, and the model's image_size {}",
        images.size, wanted));
  }
  config["do_convert_rgb"] = images.channels == 3;
  const bool crops = images.fit == PictureFit::cut || images.fit == PictureFit::middle || images.resize_to;
  if (images.fit == PictureFit::cut) {
    config["size"] = {{"shortest_edge", images.resized_side()}};
  } else {
    config["size"] = square_of(images.resized_side());
  }
  config["do_resize"] = images.fit == PictureFit::cut || images.fit == PictureFit::squeeze;
  if (crops) {
    config["do_center_crop"] = true;
    config["crop_size"] = square_of(images.size);
  }
  config["image_processor_type"] = images.fit == PictureFit::cut ? "CLIPImageProcessor"
                                   : crops                       ? "DeiTImageProcessor"
                                   : compares                    ? "SiglipImageProcessor"
                                                                 : "ViTImageProcessor";
  return config;
}

}  // namespace zoo
