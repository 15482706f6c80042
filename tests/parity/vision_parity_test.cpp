// Whole small vision models against transformers: loss, logits and the gradient of every parameter.

#include <algorithm>

#include <fmt/format.h>

#include "data/images/annotated_image.h"
#include "data/images/detection_batches.h"
#include "data/images/image_batches.h"
#include "data/images/image_file.h"
#include "interop/foreign_preprocessor.h"
#include "io/config/config_file.h"
#include "models/families/detr.h"
#include "models/families/families.h"
#include "models/families/model_keys.h"
#include "models/families/vit.h"
#include "tasks/token_cross_entropy.h"
#include "tests/parity/reference.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

/// The shape of reference_vision.py.
ModelConfig small_vit() {
  ModelConfig config;
  config.architecture = Selection("vit", VitConfig{.patch_size = 4, .image_size = 12});
  config.d_model = 24;
  config.n_layers = 2;
  config.n_heads = 4;
  config.d_ff = 40;
  config.norm_eps = 1e-12;
  config.dropout = 0;
  return config;
}

class VisionParity : public ReferenceTest {
 protected:
  VisionParity() : ReferenceTest("reference_vision.py") {}

  /// Loss, logits and gradients of a model are those of the case `name`.
  void check(const std::string& name, const ModelConfig& config) {
    SCOPED_TRACE(name);
    const ModelPurpose purpose{.head = HeadKind::classification,
                               .n_classes = 5,
                               .image = {.channels = 3, .height = 12, .width = 12}};
    const auto model = initialized_model(config, purpose);
    model->train();  // every dropout is 0: this must change nothing
    ReferenceCase reference(file(name));
    reference.load(*model);
    const Batch batch{.targets = reference.input("targets"),
                      .fields = {{"images", reference.input("images")}}};
    reference.expect_output("logits", model->logits(model->features(batch)));
    // Also as the threads of a processor share the rows.
    for (const int64_t n_parts : {1, 2}) {
      model->zero_grad();
      GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(), {.n_parts = n_parts});
      reference.expect_output("loss", gradients.differentiate({batch}).sum());
    }
    reference.expect_gradients(model.get());
  }
};

TEST_F(VisionParity, VitAtThreeSizesOfImages) {
  for (const char* const name : {"vit", "vit_larger", "vit_smaller"}) check(name, small_vit());
}

TEST_F(VisionParity, DeitAtThreeSizesOfImages) {
  auto config = small_vit();
  for (const auto& [pooling, name] : {std::pair(ImagePooling::class_token, "deit"),
                                      {ImagePooling::class_and_distillation, "deit_teacher"}}) {
    config.architecture = Selection(
        "vit", VitConfig{.patch_size = 4, .image_size = 12, .pooling = pooling, .distillation_token = true});
    for (const char* const size : {"", "_larger", "_smaller"}) check(std::string(name) + size, config);
  }
}

TEST_F(VisionParity, Dinov2AtThreeSizesOfImages) {
  auto config = small_vit();
  config.architecture =
      Selection("vit", VitConfig{.patch_size = 4, .image_size = 12, .pooling = ImagePooling::class_and_mean});
  config.d_ff = 2 * config.d_model;
  config.layer_scale = 1;
  for (const char* const size : {"", "_larger", "_smaller"}) check(std::string("dinov2") + size, config);
}

TEST_F(VisionParity, VitWithoutAHead) {
  const auto model = initialized_model(
      small_vit(), {.head = HeadKind::none, .image = {.channels = 3, .height = 12, .width = 12}});
  ReferenceCase reference(file("vit_headless"));
  reference.load(*model);
  const Batch batch{.fields = {{"images", reference.input("images")}}};
  const auto pooled = model->features(batch);
  reference.expect_output("pooled", pooled);
  reference.expect_output("hidden", model->hidden_states(batch));
  pooled.square().sum().backward();
  reference.expect_gradients(model.get());
}

TEST_F(VisionParity, MlpMixer) {
  auto config = small_vit();
  config.architecture =
      Selection("vit", VitConfig{.patch_size = 4, .image_size = 12, .pooling = ImagePooling::mean});
  config.position = Position::none;
  ConfigFile::parse("attention: {type: mlp, length: 9, d_tokens: 7}", "test").read(config);
  check("mixer", config);
}

// 16 bits, palettes, CMYK, progressive JPEG, transparency on white, pictures that Exif turns: pixels as PIL
// reads them. JPEG allows small differences.
TEST_F(VisionParity, ImageFilesAsPilReadsThem) {
  const ReferenceCase reference(file("image_files"));
  for (const auto& name : reference.names("files/")) {
    if (name.ends_with("webp") && !reads_webp()) continue;
    const auto bytes = reference.get("files/" + name);
    const std::string_view content(reinterpret_cast<const char*>(bytes.const_data_ptr()),
                                   static_cast<size_t>(bytes.numel()));
    for (const auto& [kind, n_channels] : {std::pair("grey/", 1), {"rgb/", 3}}) {
      SCOPED_TRACE(kind + name);
      auto image = decode_image(content, name, n_channels);
      const auto expected = reference.get(kind + name).to(torch::kFloat);
      const auto found = torch::from_blob(image.pixels.data(),
                                          {n_channels, image.shape.height, image.shape.width}, torch::kUInt8)
                             .to(torch::kFloat);
      ASSERT_EQ(found.sizes(), expected.sizes());
      const double most = name.ends_with("jpg") ? 4 : 1;  // grey is rounded differently
      EXPECT_LE((found - expected).abs().max().item<double>(), most);
    }
  }
}

/// An image of a tensor (C, H, W) of bytes.
Image image_of(const torch::Tensor& pixels) {
  const auto flat = pixels.flatten().contiguous();
  const auto* const first = flat.const_data_ptr<uint8_t>();
  return {.shape = {.channels = pixels.size(0), .height = pixels.size(1), .width = pixels.size(2)},
          .pixels = {first, first + flat.numel()}};
}

TEST_F(VisionParity, PicturesAreResizedAsPillowDoes) {
  const ReferenceCase reference(file("resized"));
  const bool is_newest = reference.get("is_newest").item<bool>();
  int64_t n = 0;
  for (const auto& from : reference.names("pictures/")) {
    const Image image = image_of(reference.get("pictures/" + from));
    for (size_t number = 0; number < config_names(PictureFilter{}).size(); ++number) {
      const auto filter = static_cast<PictureFilter>(number);
      const auto group = fmt::format("{}/{}/", name_of(filter), from);
      for (const auto& to : reference.names(group)) {
        SCOPED_TRACE(group + to);
        const auto expected = image_of(reference.get(group + to));
        const auto found =
            resized(image, whole(image.shape), expected.shape.height, expected.shape.width, filter);
        ++n;
        if (is_newest) {
          EXPECT_EQ(found.pixels, expected.pixels);
          continue;
        }
        for (size_t i = 0; i < found.pixels.size(); ++i)
          EXPECT_NEAR(found.pixels[i], expected.pixels.at(i), 1);
      }
    }
  }
  EXPECT_EQ(n, 6 * 6 * 5);
}

/// The bytes of a tensor.
std::string text_of(const torch::Tensor& bytes) {
  const auto* const first = bytes.const_data_ptr<uint8_t>();
  return {first, first + bytes.numel()};
}

/// The picture as a model that was opened with this preprocessor_config.json reads it.
torch::Tensor prepared(const std::string& config, const std::string& picture) {
  const bool detects = config.find("Detr") != config.npos;
  Experiment experiment;
  experiment.task = Selection(detects ? "object_detection" : "image_classification");
  experiment.model = small_vit();
  if (detects) experiment.model.architecture = Selection("detr", DetrConfig{});
  experiment.data.images.size = 16;
  const auto pixels = read_preprocessor("", {{"preprocessor_config.json", config}}, experiment);
  const auto& images = experiment.data.images;
  const auto image = decode_image(picture, "picture", 3, {}, images.transparency);
  if (detects) {
    return batch_of_pictures({resized_to_fit(image, images.size, images)}, images, *pixels)
        .field(fields::kImages)[0];
  }
  auto numbers = torch::empty({3, images.size, images.size});
  write_normalised(fitted(image, images), *pixels, numbers.mutable_data_ptr<float>());
  return numbers;
}

TEST_F(VisionParity, PicturesNeedWhatTheirStepsNeed) {
  const auto picture = text_of(ReferenceCase(file("processors")).get("pictures/same"));
  for (const auto* const config : {R"({"size": 16, "resample": null})", R"({"size": 16, "image_mean": null})",
                                   R"({"size": 16, "rescale_factor": null})",
                                   R"({"size": 16, "default_to_square": false})", R"({"size": [16, 17]})"})
    EXPECT_THROW(prepared(config, picture), CheckpointError) << config;
}

TEST_F(VisionParity, PicturesArePreparedAsTransformersDoes) {
  const ReferenceCase reference(file("processors"));
  const bool is_newest = reference.get("is_newest").item<bool>();
  ASSERT_GE(reference.names("configs/").size(), 22U);
  for (const auto& name : reference.names("configs/")) {
    const auto config = text_of(reference.get("configs/" + name));
    for (const auto& picture : reference.names("pictures/")) {
      SCOPED_TRACE(fmt::format("{} {}", name, picture));
      const auto expected = reference.get(fmt::format("pixels/{}/{}", name, picture));
      const auto found = prepared(config, text_of(reference.get("pictures/" + picture)));
      ASSERT_EQ(found.sizes(), expected.sizes());
      const auto away = (found - expected).abs().max().item<double>();
      const double largest = std::max(1.0, expected.abs().max().item<double>());
      // Without the newest Pillow a pixel may differ by 1 of 255, which is at most 0.04 after the deviation.
      EXPECT_LE(away / largest, is_newest ? 2e-6 : 0.04);
    }
  }
}

}  // namespace
}  // namespace zoo::testing
