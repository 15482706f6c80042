// DETR (Carion et al. 2020, "End-to-End Object Detection with Transformers"): a convolutional network reads a
// picture, an encoder its feature map, and a decoder turns object queries into classes and boxes. As
// transformers' DetrForObjectDetection, but the auxiliary outputs are those of the authors' code: the
// decoder's norm is on the outputs alone, not on what the next layer reads.

#include "models/families/detr.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <torch/types.h>

#include "layers/weights/construction.h"
#include "models/embedders/feature_map_embedder.h"
#include "models/families/family_model.h"

namespace zoo {
namespace {

const DetrConfig& detr_config(const ModelConfig& config) { return config.architecture.as<DetrConfig>(); }

FeatureMapEmbedderOptions feature_map_options(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& detr = detr_config(config);
  return FeatureMapEmbedderOptions(config.d_model, ResnetOptions(purpose.image.channels, detr.backbone))
      .position(config.position.kind().value_or(Position::none))
      .max_places(detr.max_places);
}

/// The head has one class more: "no object".
ModelPurpose head_purpose(ModelPurpose purpose) {
  ++purpose.n_classes;
  return purpose;
}

/// The maps of a box head from the first to the last.
std::array<LinearOptions, 3> box_options(int64_t d_model) {
  return {LinearOptions(d_model, d_model), LinearOptions(d_model, d_model),
          linear_options(d_model, 4, WeightUse::scores)};
}

void validate_detr(const ModelConfig& config, const Complain& complain) {
  if (config.position != Position::sinusoidal && config.position != Position::learned) {
    complain("position",
             fmt::format("of a detr must be sinusoidal or learned, not {}: places have two coordinates",
                         config.position.type));
  }
  if (config.d_model % 2 != 0)
    complain("d_model", "must be even: positions on a grid have a half for rows and one for columns");
  if (!std::ranges::all_of(config.attention, [](const auto& type) { return type == "full"; }))
    complain("attention", "of a detr must be full: object queries have no order");
}

/// Throws ConfigError if the largest pictures have more places than the tables of learned positions.
void require_positions(const FeatureMapEmbedderOptions& options, const ImageShape& image) {
  if (options.position() != Position::learned) return;
  const auto map = resnet_output(options.backbone(), image.height, image.width);
  if (std::max(map.height, map.width) <= options.max_places()) return;
  throw ConfigError(fmt::format(
      "model.architecture.max_places: {} is less than the {} × {} places of pictures of {} × {} pixels",
      options.max_places(), map.height, map.width, image.height, image.width));
}

}  // namespace

void describe(ConfigVisitor& v, DetrConfig& c) {
  v.field("n_queries", c.n_queries, "Object queries (Q), the most objects that are found in a picture.",
          Limits::between(1, 1 << 14));
  v.field("max_places", c.max_places,
          "Rows, and columns, of the largest feature map, if model.position is learned.",
          Limits::between(1, 1 << 14));
  v.field("backbone", c.backbone, "The convolutional network that reads pictures.");
}

namespace {

/// Turns vectors into boxes with three linear maps and ReLU between them.
class BoxHeadImpl : public Cloneable<BoxHeadImpl> {
 public:
  explicit BoxHeadImpl(int64_t d_model) {
    const auto maps = box_options(d_model);
    first = register_module("first", Linear(maps[0]));
    second = register_module("second", Linear(maps[1]));
    last = register_module("last", Linear(maps[2]));
  }
  /// (…, D) → (…, 4) float, from 0 to 1
  torch::Tensor forward(const torch::Tensor& hidden) {
    return last(second(first(hidden).relu()).relu()).to(torch::kFloat).sigmoid();
  }
  auto arguments() const { return std::tuple(first->n_inputs()); }

  Linear first{nullptr}, second{nullptr}, last{nullptr};
};
TORCH_MODULE(BoxHead);

void count_box_head(CostAccount& account, int64_t d_model, double n_boxes) {
  constexpr std::array<std::string_view, 3> names = {"first", "second", "last"};
  const auto maps = box_options(d_model);
  for (size_t i = 0; i < maps.size(); ++i)
    count_linear(account, account.path("box_head", names[i]), "linear", maps[i], n_boxes);
}

class DetrModel final : public Cloneable<DetrModel, EncodingModel>,
                        public DetectingModel,
                        public WeightOwner {
 public:
  DetrModel(const ModelConfig& config, const ModelPurpose& purpose);

  /// (B·Q, D): the decoder's last output.
  torch::Tensor features(const Batch& batch) override {
    return decode(batch, nullptr).select(0, -1).flatten(0, 1);
  }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override { decode(batch, &maps); }
  std::optional<PatchGrid> patch_grid(const Batch& batch) const override;
  DetectingModel* detecting() override { return this; }
  Detections detect(const Batch& batch) override;
  int64_t n_queries() const override { return queries_.size(0); }

  void visit_weights(const WeightVisitor& visit) const override {
    visit({queries_, 0, queries_.size(0), WeightUse::object_table});
  }

 private:
  /// (L, B, Q, D): the outputs of all decoder layers.
  torch::Tensor decode(const Batch& batch, AttentionMaps* maps);

  Stack decoder_{nullptr};
  torch::Tensor queries_;       // (Q, D)
  Norm decoder_norm_{nullptr};  // if the decoder has no final norm of its own
  BoxHead box_head_{nullptr};   // beside a head_ of C + 1 classes
};

DetrModel::DetrModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
  const auto embedder = feature_map_options(config, purpose);
  require_positions(embedder, purpose.image);
  make_encoder("embedder", FeatureMapEmbedder(embedder).ptr());
  queries_ = register_parameter("queries", drawn_tensor({detr_config(config).n_queries, config.d_model},
                                                        [](torch::Tensor& q) { q.normal_(); }));
  decoder_ = register_module("decoder", Stack(config, StackRole::decoder_with_memory));
  if (!wants_final_norm(config.norm_placement))
    decoder_norm_ = register_module("decoder_norm", Norm(norm_options(config, config.d_model)));
  head_ = register_module("head", ModelHead(config, head_purpose(purpose), nullptr));
  box_head_ = register_module("box_head", BoxHead(config.d_model));
}

torch::Tensor DetrModel::decode(const Batch& batch, AttentionMaps* maps) {
  const auto memory = encode(batch, maps ? &maps->encoder : nullptr);
  const auto queries = queries_.unsqueeze(0).to(memory.vectors.scalar_type());  // (1, Q, D)
  std::vector<torch::Tensor> outputs;
  decoder_({.x = torch::zeros_like(queries).repeat({memory.vectors.size(0), 1, 1}),
            .layer_positions = queries,
            .memory = memory.vectors,
            .memory_mask = padding_mask(memory),
            .memory_positions = memory.layer_positions,
            .layer_outputs = &outputs,
            .self_maps = maps ? &maps->decoder : nullptr,
            .cross_maps = maps ? &maps->cross : nullptr});
  const auto all = torch::stack(outputs);
  return decoder_norm_ ? decoder_norm_(all) : all;
}

Detections DetrModel::detect(const Batch& batch) {
  const auto hidden = decode(batch, nullptr);
  return {.logits = head_->project(hidden), .boxes = box_head_(hidden)};
}

std::optional<PatchGrid> DetrModel::patch_grid(const Batch& batch) const {
  const auto& images = batch.field(fields::kImages);
  const auto backbone = feature_map_options(config_, purpose_).backbone();
  const auto map = resnet_output(backbone, images.size(2), images.size(3));
  return PatchGrid{.rows = map.height, .columns = map.width, .patch_size = backbone.stride()};
}

void count_detr(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                const PassShape& shape) {
  const auto embedder = feature_map_options(config, purpose);
  const auto image = image_shape(shape, purpose.image);
  const int64_t B = shape.batch_size, Q = detr_config(config).n_queries;
  const auto map = resnet_output(embedder.backbone(), image.height, image.width);
  const int64_t length = map.height * map.width;
  const double n_outputs = static_cast<double>(B * Q) * static_cast<double>(config.decoder_layers());
  count_feature_map_embedder(account, "embedder", embedder, B, image.height, image.width);
  count_encoder(account, config, B, length);
  count_table(account, "queries", Q, config.d_model);
  count_stack(account, "decoder", config, StackRole::decoder_with_memory,
              {.batch_size = B, .n_queries = Q, .n_keys = length});
  if (!wants_final_norm(config.norm_placement))
    count_norms(account, "decoder_norm", norm_options(config, config.d_model), 1, n_outputs);
  count_head(account, config, head_purpose(purpose), Pooling::none, n_outputs);
  count_box_head(account, config.d_model, n_outputs);
}

}  // namespace

ModelFamily detr_family() {
  ModelFamily family;
  family.name = "detr";
  family.doc = "DETR: finds objects in pictures with a convolutional network, an encoder and a decoder.";
  family.make_options = options_of<DetrConfig>();
  family.has_memory = true;
  family.heads = {HeadKind::detection};
  family.make = makes<DetrModel>();
  family.count = count_detr;
  family.input_length = [](const ModelConfig& config, const ModelPurpose& purpose) {
    const auto map = resnet_output(feature_map_options(config, purpose).backbone(), purpose.image.height,
                                   purpose.image.width);
    return map.height * map.width;
  };
  family.set_defaults = [](ModelConfig& config) {
    config.activation = Activation::relu;
    config.position = Position::sinusoidal;
    config.init = Initialization::detr;
  };
  family.validate = validate_detr;
  return family;
}

}  // namespace zoo
