// wav2vec 2.0 (Baevski et al. 2020) and HuBERT (Hsu et al. 2021), which are the same where they write down
// what is said: convolutions over samples, an encoder with convolutional positions, a score of each
// character.

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/config/layer_types.h"
#include "models/families/wave_encoder.h"

namespace zoo {
namespace {

/// The longest recording that is read at once: the first convolution keeps 6.5 MB of each second.
constexpr double kMostSeconds = 120;

const WaveEncoderConfig& keys_of(const ModelConfig& model) {
  return model.architecture.as<WaveEncoderConfig>();
}

std::vector<int64_t> integers_or(ForeignConfig& from, std::string_view key, std::vector<int64_t> otherwise) {
  return from.has(key) ? from.integers(key) : std::move(otherwise);
}

/// What training hides. The model has a vector for it if one of the shares is more than zero.
std::optional<FeatureMasks> read_masks(ForeignConfig& from) {
  FeatureMasks masks;
  masks.active = from.flag("apply_spec_augment", true);
  masks.time_share = from.number("mask_time_prob", 0.05);
  masks.time_length = from.integer("mask_time_length", 10);
  masks.least_time_masks = from.integer("mask_time_min_masks", 2);
  masks.feature_share = from.number("mask_feature_prob", 0);
  masks.feature_length = from.integer("mask_feature_length", 10);
  masks.least_feature_masks = from.integer("mask_feature_min_masks", 0);
  if (masks.time_share <= 0 && masks.feature_share <= 0) return std::nullopt;
  return masks;
}

void read_transformer(ForeignConfig& from, ModelConfig& to) {
  to.d_model = from.integer("hidden_size", 768);
  to.n_layers = from.integer("num_hidden_layers", 12);
  to.n_heads = from.integer("num_attention_heads", 12);
  to.d_ff = from.integer("intermediate_size", 3072);
  to.activation = read_activation(from, "hidden_act", "gelu");
  to.norm_eps = from.number("layer_norm_eps", 1e-5);
  to.dropout = from.number("hidden_dropout", 0.1);
  to.attention_dropout = from.number("attention_dropout", 0.1);
  to.activation_dropout = from.number("activation_dropout", 0.1);
  const bool is_pre = from.flag("do_stable_layer_norm", false);
  to.norm_placement = is_pre ? NormPlacement::pre : NormPlacement::post;
  to.embedding_norm = !is_pre;
  to.position = Selection(
      "convolution", ConvolutionPositionConfig{.kernel_size = from.integer("num_conv_pos_embeddings", 128),
                                               .groups = from.integer("num_conv_pos_embedding_groups", 16)});
}

void read_wav2vec2(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  const WaveEncoderConfig usual;
  WaveEncoderConfig wave;
  wave.conv_widths = integers_or(from, "conv_dim", usual.conv_widths);
  wave.conv_kernels = integers_or(from, "conv_kernel", usual.conv_kernels);
  wave.conv_strides = integers_or(from, "conv_stride", usual.conv_strides);
  wave.conv_bias = from.flag("conv_bias", false);
  const auto norm = from.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer") from.fail("feat_extract_norm", "known are group and layer");
  wave.conv_norm = norm == "group" ? WaveNorm::first : WaveNorm::each;
  wave.feature_norm = from.flag("feat_proj_layer_norm", true);
  wave.feature_dropout = from.number("feat_proj_dropout", 0);
  wave.masks = read_masks(from);
  model.architecture = Selection("wave_encoder", wave);
  model.vocab_size = from.integer("vocab_size", 32);
  model.ctc_blank = CtcBlank::padding;
  read_transformer(from, model);
  from.require("feat_extract_activation", "gelu");
  from.require("num_feat_extract_layers", wave.conv_widths.size());
  from.require("add_adapter", false);
  from.require("adapter_attn_dim", nullptr);
  from.require("conv_pos_batch_norm", false);
  // They are for training, the first training without texts, and classifiers of recordings, or are about
  // embeddings, which there are none of.
  from.ignore({"tie_word_embeddings",
               "final_dropout",
               "layerdrop",
               "ctc_loss_reduction",
               "ctc_zero_infinity",
               "feat_quantizer_dropout",
               "feat_extract_dropout",
               "hidden_dropout_prob",
               "freeze_feat_extract_train",
               "num_codevectors_per_group",
               "num_codevector_groups",
               "contrastive_logits_temperature",
               "num_negatives",
               "codevector_dim",
               "proj_codevector_dim",
               "diversity_loss_weight",
               "use_weighted_layer_sum",
               "classifier_proj_size",
               "tdnn_dim",
               "tdnn_kernel",
               "tdnn_dilation",
               "xvector_output_dim",
               "adapter_kernel_size",
               "adapter_stride",
               "num_adapter_layers",
               "output_hidden_size"});
  // Masks under the names of the first versions, of which only those above are read.
  from.ignore({"mask_channel_length", "mask_channel_min_space", "mask_channel_other", "mask_channel_prob",
               "mask_channel_selection", "mask_time_min_space", "mask_time_other", "mask_time_selection",
               "no_mask_channel_overlap", "no_mask_time_overlap", "tokenizer_class"});
  to.data.audio.max_seconds = kMostSeconds;
}

void write_wav2vec2(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto& wave = keys_of(model);
  if (model.ctc_blank != CtcBlank::padding)
    throw CheckpointError("has the padding token for the blank of CTC (model.ctc_blank)");
  to["hidden_size"] = model.d_model;
  to["output_hidden_size"] = model.d_model;
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["intermediate_size"] = model.feed_forward_width();
  to["hidden_act"] = foreign_name(model.activation);
  to["layer_norm_eps"] = model.norm_eps;
  to["hidden_dropout"] = to["final_dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
  to["activation_dropout"] = model.activation_dropout;
  to["layerdrop"] = 0.0;
  to["do_stable_layer_norm"] = model.norm_placement == NormPlacement::pre;
  if (model.position == Position::convolution) {
    const auto& positions = model.position.as<ConvolutionPositionConfig>();
    to["num_conv_pos_embeddings"] = positions.kernel_size;
    to["num_conv_pos_embedding_groups"] = positions.groups;
  }
  to["conv_dim"] = wave.conv_widths;
  to["conv_kernel"] = wave.conv_kernels;
  to["conv_stride"] = wave.conv_strides;
  to["num_feat_extract_layers"] = wave.conv_widths.size();
  to["conv_bias"] = wave.conv_bias;
  to["feat_extract_norm"] = wave.conv_norm == WaveNorm::first ? "group" : "layer";
  to["feat_proj_dropout"] = wave.feature_dropout;
  const auto masks = wave.masks.value_or(FeatureMasks{.time_share = 0});
  to["apply_spec_augment"] = masks.active;
  to["mask_time_prob"] = masks.time_share;
  to["mask_time_length"] = masks.time_length;
  to["mask_time_min_masks"] = masks.least_time_masks;
  to["mask_feature_prob"] = masks.feature_share;
  to["mask_feature_length"] = masks.feature_length;
  to["mask_feature_min_masks"] = masks.least_feature_masks;
  to["ctc_zero_infinity"] = true;  // as the loss is here
  to["ctc_loss_reduction"] = "mean";
}

void write_hubert(const Experiment& from, nlohmann::json& to) {
  write_wav2vec2(from, to);
  to["feat_proj_layer_norm"] = keys_of(from.model).feature_norm;
}

/// `body`: what the names of all tensors but those of the head begin with.
TensorRules speech_rules(const Experiment& experiment, const std::string& body) {
  const auto& model = experiment.model;
  const auto& wave = keys_of(model);
  TensorRules rules;
  rules.layers(model.n_layers);
  for (size_t i = 0; i < wave.conv_widths.size(); ++i) {
    const auto ours = fmt::format("embedder.convolutions.{}", i);
    const auto theirs = fmt::format("{}feature_extractor.conv_layers.{}.", body, i);
    rules.module(ours, theirs + "conv");
    if (wave.conv_norm == WaveNorm::each)
      rules.module(fmt::format("embedder.norms.{}", i), theirs + "layer_norm");
    else if (i == 0)
      rules.module("embedder.first_norm", theirs + "layer_norm");
  }
  rules.module("embedder.feature_norm", body + "feature_projection.layer_norm");
  rules.module("embedder.projection", body + "feature_projection.projection");
  if (wave.masks) {
    rules.tensor("embedder.mask_vector", body + "masked_spec_embed");
    rules.absent(body + "masked_spec_embed", [n = model.d_model] { return torch::zeros({n}); });
  } else {
    rules.ignore(body + "masked_spec_embed");
  }
  const auto positions = body + "encoder.pos_conv_embed.conv.";
  const auto& keys = model.position.as<ConvolutionPositionConfig>();
  // The two numbers of weight norm, which PyTorch calls so since version 2.1.
  rules.tensor("embedder.found_positions.gain", positions + "parametrizations.weight.original0",
               Move::reshaped, {1, 1, keys.kernel_size});
  rules.tensor("embedder.found_positions.direction", positions + "parametrizations.weight.original1");
  rules.tensor("embedder.found_positions.bias", positions + "bias");
  rules.renamed("weight_g", "parametrizations.weight.original0");
  rules.renamed("weight_v", "parametrizations.weight.original1");
  const std::string norm = body + "encoder.layer_norm";
  rules.module("embedder.embedding_norm", norm);
  if (model.norm_placement == NormPlacement::pre) rules.module("encoder.final_norm", norm);
  const std::string ours = "encoder.layers.{}.", theirs = body + "encoder.layers.{}.";
  for (const std::string part : {"q", "k", "v"})
    rules.module(ours + "self_attention." + part, theirs + "attention." + part + "_proj");
  rules.module(ours + "self_attention.out", theirs + "attention.out_proj");
  rules.module(ours + "feed_forward.up", theirs + "feed_forward.intermediate_dense");
  rules.module(ours + "feed_forward.down", theirs + "feed_forward.output_dense");
  rules.module(ours + "residual.self_attention_norm", theirs + "layer_norm");
  rules.module(ours + "residual.feed_forward_norm", theirs + "final_layer_norm");
  rules.module("head.classifier", "lm_head");
  // The first training without texts has its own parts.
  rules.ignore("quantizer.*").ignore("project_q.*").ignore("project_hid.*");
  return rules;
}

TensorRules wav2vec2_rules(const Experiment& experiment) { return speech_rules(experiment, "wav2vec2."); }
TensorRules hubert_rules(const Experiment& experiment) { return speech_rules(experiment, "hubert."); }

}  // namespace

ForeignFamily wav2vec2_foreign() {
  return {.model_type = "wav2vec2",
          .doc = "wav2vec 2.0 (Baevski et al. 2020): what is said in a recording, by CTC",
          .classes = {{"Wav2Vec2ForCTC", "speech_recognition"}},
          .read = read_wav2vec2,
          .write = write_wav2vec2,
          .rules = wav2vec2_rules};
}

ForeignFamily hubert_foreign() {
  return {.model_type = "hubert",
          .doc = "HuBERT (Hsu et al. 2021): what is said in a recording, by CTC",
          .classes = {{"HubertForCTC", "speech_recognition"}},
          .read = read_wav2vec2,
          .write = write_hubert,
          .rules = hubert_rules};
}

}  // namespace zoo
