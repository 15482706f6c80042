// DETR (Carion et al. 2020). Its backbone has the names of timm's residual networks, or of transformers' own.

#include "models/families/detr.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

constexpr int64_t kUsualWidth = 64;
constexpr auto kDepths =
    std::to_array({ResnetDepth::layers_18, ResnetDepth::layers_34, ResnetDepth::layers_50,
                   ResnetDepth::layers_101, ResnetDepth::layers_152});

/// The name of a published network in timm.
std::string timm_name(ResnetDepth depth) { return fmt::format("resnet{}", name_of(depth)); }

/// What transformers calls the kind of its blocks.
const char* layer_type(ResnetDepth depth) { return has_bottlenecks(depth) ? "bottleneck" : "basic"; }

/// Whether the backbone is one of timm, whose tensors have other names.
bool has_timm_names(const nlohmann::json& config) {
  const auto backbone = config.find("backbone_config");
  if (backbone != config.end() && backbone->is_object()) {
    const auto type = backbone->find("model_type");
    return type != backbone->end() && *type == "timm_backbone";
  }
  const auto uses_timm = config.find("use_timm_backbone");
  return uses_timm == config.end() || *uses_timm != false;
}

/// The channels that each stage gives.
nlohmann::json widths_of(const ResnetConfig& config) {
  auto widths = nlohmann::json::array();
  for (int64_t stage = 0; stage < kResnetStages; ++stage) widths.push_back(n_outputs_of_stage(config, stage));
  return widths;
}

/// The network of the package timm that the key `backbone` names; it has the published widths.
void read_timm_network(ForeignConfig& from, ResnetConfig& to) {
  // The tag after the name says from where the first weights were.
  const auto name = from.text("backbone", "resnet50");
  const auto* const found = std::ranges::find(kDepths, name.substr(0, name.find('.')), timm_name);
  if (found == kDepths.end())
    from.fail("backbone", "only resnet18, resnet34, resnet50, resnet101 and resnet152 are supported");
  to.depth = *found;
  to.width = kUsualWidth;
}

/// A backbone of timm as a configuration of its own, which transformers 5 writes.
void read_timm_config(ForeignConfig config, int64_t n_channels, ResnetConfig& to) {
  config.require("model_type", "timm_backbone");
  read_timm_network(config, to);
  config.require("num_channels", n_channels);
  config.require("features_only", true);
  config.require("out_features", nlohmann::json::array({"layer4"}));
  const auto strides = config.optional_integer("output_stride");
  if (strides && *strides != 16 && *strides != 32)
    config.fail("output_stride", "only 16 and 32 are supported");
  to.dilation = strides == 16;
  // Maps of which the last one is used; weights that are replaced; norms that are frozen here in any case.
  config.ignore({"out_indices", "stage_names", "use_pretrained_backbone", "freeze_batch_norm_2d",
                 "architectures", "tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id"});
  ignore_common_keys(config);
  ignore_generation_keys(config);
  config.finish();
}

/// A backbone of the package timm.
void read_timm_backbone(ForeignConfig& from, int64_t n_channels, ResnetConfig& to) {
  if (auto config = from.object("backbone_config")) {
    from.ignore({"backbone", "backbone_kwargs", "dilation"});
    return read_timm_config(std::move(*config), n_channels, to);
  }
  read_timm_network(from, to);
  to.dilation = from.flag("dilation", false);
  auto options = from.object("backbone_kwargs");
  if (!options) return;
  options->require("out_indices", nlohmann::json::array({1, 2, 3, 4}));
  options->require("in_chans", n_channels);
  options->require("output_stride", to.dilation ? 16 : 32);
  options->finish();
}

/// A backbone of transformers.
void read_own_backbone(ForeignConfig& from, int64_t n_channels, ResnetConfig& to) {
  from.require("dilation", false);
  from.require("backbone", nullptr);
  from.require("backbone_kwargs", nullptr);
  to.depth = ResnetDepth::layers_50;
  to.width = kUsualWidth;
  auto config = from.object("backbone_config");
  if (!config) return;
  config->require("model_type", "resnet");
  const auto type = config->text("layer_type", "bottleneck");
  const auto depths = config->integers("depths");
  const auto fits = [&](ResnetDepth depth) {
    const bool same_depths =
        depths.empty() ? depth == ResnetDepth::layers_50 : std::ranges::equal(depths, blocks_of(depth));
    return same_depths && type == layer_type(depth);
  };
  const auto* const found = std::ranges::find_if(kDepths, fits);
  if (found == kDepths.end())
    config->fail("depths", "only those of ResNet-18, 34, 50, 101 and 152 are supported");
  to.depth = *found;
  to.width = config->integer("embedding_size", kUsualWidth);
  if (!config->has("hidden_sizes") && to.width != kUsualWidth) config->fail("embedding_size", "is not 64");
  config->require("hidden_sizes", widths_of(to));
  config->require("num_channels", n_channels);
  config->require("hidden_act", "relu");
  config->require("downsample_in_first_stage", false);
  config->require("downsample_in_bottleneck", false);
  config->require("out_features", nlohmann::json::array({"stage4"}));
  config->require("out_indices", nlohmann::json::array({kResnetStages}));
  config->require("add_cross_attention", false);
  config->ignore({"stage_names", "architectures", "tie_word_embeddings", "bos_token_id", "eos_token_id",
                  "pad_token_id", "decoder_start_token_id"});
  ignore_common_keys(*config);
  ignore_generation_keys(*config);
  config->finish();
}

void read_detr(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  auto& images = to.data.images;
  images.channels = from.integer("num_channels", 3);
  DetrConfig detr{.n_queries = from.integer("num_queries", 100)};
  detr.backbone.norm = ChannelNormKind::frozen_batch;
  from.ignore({"use_timm_backbone"});
  if (has_timm_names(from.json())) {
    read_timm_backbone(from, images.channels, detr.backbone);
  } else {
    read_own_backbone(from, images.channels, detr.backbone);
  }
  model.architecture = Selection("detr", detr);
  read_bart_keys(from, {.d_model = 256, .n_layers = 6, .n_heads = 8, .d_ff = 2048, .activation = "relu"},
                 model);
  model.norm_placement = NormPlacement::post;
  model.init = Initialization::detr;
  const auto positions = from.text("position_embedding_type", "sine");
  if (positions != "sine" && positions != "learned")
    from.fail("position_embedding_type", "only sine and learned are supported");
  model.position = positions == "sine" ? Position::sinusoidal : Position::learned;
  // They are of the training, or follow from others.
  from.ignore({"auxiliary_loss", "use_pretrained_backbone", "class_cost", "bbox_cost", "giou_cost",
               "mask_loss_coefficient", "dice_loss_coefficient", "bbox_loss_coefficient",
               "giou_loss_coefficient", "eos_coefficient", "init_xavier_std", "scale_embedding",
               "classifier_dropout", "max_position_embeddings", "tie_word_embeddings"});
}

void write_detr(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto& detr = model.architecture.as<DetrConfig>();
  to["num_channels"] = from.data.images.channels;
  to["num_queries"] = detr.n_queries;
  to["use_timm_backbone"] = false;
  to["use_pretrained_backbone"] = false;
  to["backbone"] = to["backbone_kwargs"] = to["dilation"] = nullptr;
  to["backbone_config"] = {{"model_type", "resnet"},
                           {"layer_type", layer_type(detr.backbone.depth)},
                           {"depths", blocks_of(detr.backbone.depth)},
                           {"embedding_size", detr.backbone.width},
                           {"hidden_sizes", widths_of(detr.backbone)},
                           {"num_channels", from.data.images.channels},
                           {"out_features", nlohmann::json::array({"stage4"})}};
  write_bart_keys(model, to);
  to["position_embedding_type"] = model.position == Position::learned ? "learned" : "sine";
}

/// The two forms of names of a residual network.
enum class BackboneNames { timm, transformers };

void add_backbone_rules(BackboneNames names, ResnetDepth depth, TensorRules& rules) {
  const auto n_blocks = blocks_of(depth);
  const int64_t n_convolutions = has_bottlenecks(depth) ? 3 : 2;  // of a block
  const std::string ours = "embedder.backbone.", theirs = "model.backbone.conv_encoder.model.";
  const bool is_timm = names == BackboneNames::timm;
  const auto add = [&](const std::string& our_name, const std::string& convolution, const std::string& norm) {
    rules.module(ours + our_name + ".convolution", theirs + convolution);
    rules.module(ours + our_name + ".norm", theirs + norm);
  };
  const auto add_own = [&](const std::string& our_name, const std::string& name) {
    add(our_name, name + ".convolution", name + ".normalization");
  };
  is_timm ? add("stem", "conv1", "bn1") : add_own("stem", "embedder.embedder");
  for (int64_t stage = 0; stage < kResnetStages; ++stage) {
    for (int64_t block = 0; block < n_blocks[static_cast<size_t>(stage)]; ++block) {
      const auto our_block = fmt::format("stages.{}.{}.", stage, block);
      const auto their_block = is_timm ? fmt::format("layer{}.{}.", stage + 1, block)
                                       : fmt::format("encoder.stages.{}.layers.{}.", stage, block);
      for (int64_t i = 0; i < n_convolutions; ++i) {
        const auto our_layer = fmt::format("{}layers.{}", our_block, i);
        is_timm ? add(our_layer, fmt::format("{}conv{}", their_block, i + 1),
                      fmt::format("{}bn{}", their_block, i + 1))
                : add_own(our_layer, fmt::format("{}layer.{}", their_block, i));
      }
      is_timm ? add(our_block + "shortcut", their_block + "downsample.0", their_block + "downsample.1")
              : add_own(our_block + "shortcut", their_block + "shortcut");
    }
  }
  rules.ignore(theirs + "*.num_batches_tracked");
}

TensorRules detr_rules(const Experiment& experiment, const nlohmann::json& config) {
  const auto names = has_timm_names(config) ? BackboneNames::timm : BackboneNames::transformers;
  const auto& model = experiment.model;
  const auto& detr = model.architecture.as<DetrConfig>();
  TensorRules rules;
  rules.layers(std::max(model.n_layers, model.decoder_layers()));
  add_backbone_rules(names, detr.backbone.depth, rules);
  const int64_t n_features = n_outputs_of_stage(detr.backbone, kResnetStages - 1);
  // A convolution of single pixels there, a linear map here.
  rules.tensor("embedder.projection.weight", "model.input_projection.weight", Move::reshaped,
               {model.d_model, n_features, 1, 1});
  rules.tensor("embedder.projection.bias", "model.input_projection.bias");
  // Each version of transformers knows its own name only.
  std::string positions = "model.position_embedding.", of_others = "model.backbone.position_embedding.";
  if (config.value("transformers_version", std::string()).starts_with("4.")) std::swap(positions, of_others);
  rules.renamed(of_others, positions);
  rules.tensor("embedder.row_table", positions + "row_embeddings.weight");
  rules.tensor("embedder.column_table", positions + "column_embeddings.weight");
  rules.tensor("queries", "model.query_position_embeddings.weight");
  for (const char* const side : {"encoder", "decoder"}) add_bart_layers(side, rules);
  rules.module("decoder_norm", "model.decoder.layernorm");
  rules.module("head.classifier", "class_labels_classifier");
  constexpr auto boxes = std::to_array<std::string_view>({"first", "second", "last"});
  for (size_t i = 0; i < boxes.size(); ++i)
    rules.module(fmt::format("box_head.{}", boxes[i]), fmt::format("bbox_predictor.layers.{}", i));
  rules.live("_attn.out_proj", "_attn.o_proj").live(".fc1", ".mlp.fc1").live(".fc2", ".mlp.fc2");
  rules.live("backbone.conv_encoder.model.", "backbone.model.");
  return rules;
}

}  // namespace

ForeignFamily detr_foreign() {
  return {.model_type = "detr",
          .doc = "DETR (Carion et al. 2020)",
          .classes = {{"DetrForObjectDetection", "object_detection"}},
          .read = read_detr,
          .write = write_detr,
          .rules_of_file = detr_rules};
}

}  // namespace zoo
