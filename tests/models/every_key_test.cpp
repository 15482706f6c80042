// Every key of `model:` changes something: the parameters, the outputs, or the outputs in training. Keys that
// have no effect on a model are listed with the reason.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "io/config/config_file.h"
#include "models/config/layer_types.h"
#include "models/families/families.h"
#include "models/families/model_keys.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/families/recordings.h"
#include "models/families/vit.h"
#include "tests/support/key_change.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

/// A model of the test: its keys, and the head that it needs.
struct Subject {
  std::string yaml;
  HeadKind head = HeadKind::language_modeling;
};

const std::string kText = "d_model: 24, n_heads: 4, n_layers: 2, d_ff: 40, max_positions: 16, dropout: 0";

std::vector<Subject> subjects() {
  const auto text = [](const std::string& more) { return "{" + kText + ", " + more + "}"; };
  const std::string encoder = "architecture: encoder, ", decoder = "architecture: decoder, ";
  const auto fill = HeadKind::masked_language_modeling, classify = HeadKind::classification;
  return {
      {text(decoder + "position: learned")},
      {text(decoder +
            "position: sinusoidal, norm_placement: post, activation: swiglu, tie_embeddings: false")},
      {text(decoder + "position: rotary, norm: rms_norm, head_dim: 16, rotary: {scaling: yarn, factor: 4, "
                      "original_max_positions: 4096}")},
      {text(decoder + "position: rotary, rotary: {scaling: llama3, factor: 4, original_max_positions: 8}")},
      {text(decoder + "position: rotary, rotary: {local_theta: 500}, attention: [{type: window, size: 2}, "
                      "full], attention_softcap: 2, logits_softcap: 3")},
      {text(encoder + "position: learned, position_offset: 2"), HeadKind::token_classification},
      {text(encoder + "position: learned, pooler_activation: relu"), HeadKind::none},
      {text(decoder + "position: alibi, norm_placement: sandwich, projection: fused")},
      {text(decoder + "position: t5, relative_buckets: 8, relative_max_distance: 6, init: t5")},
      {text(decoder + "position: shaw, relative_max_distance: 3, norm_placement: parallel")},
      {text(decoder + "position: learned, attention: {type: window, size: 2, global: first}")},
      {text(decoder + "position: rotary, attention: [{type: strided, stride: 3}, {type: fixed, stride: 4}]")},
      {text(decoder + "position: learned, attention: {type: delta}")},
      {text(decoder + "position: rotary, attention: [linear, performer]")},
      {text(encoder + "position: learned, attention: {type: linformer, k: 5}, pooler: false"), fill},
      {text(encoder + "position: learned, attention: {type: linformer, k: 5, share: layer}"), fill},
      {text(encoder + "position: learned, attention: [{type: mlp, length: 16}, "
                      "{type: performer, n_features: 9}], activation: gelu"),
       classify},
      {text(encoder + "position: none, attention: {type: blocks, size: 2, n_random: 1, window: 0, "
                      "full_up_to: 13}"),
       fill},
      {text(encoder + "position: learned, attention: {type: window, size: 1, global: ids, global_ids: [2]}"),
       classify},
      {text(encoder + "position: none, attention: {type: disentangled, buckets: 4, max_distance: 6}"), fill},
      {text(encoder + "position: learned, attention: {type: disentangled, buckets: 4, max_distance: 5, "
                      "share_keys: false, norm: false}"),
       fill},
      {text(encoder + "position: learned, score_position: t5, relative_buckets: 8, relative_max_distance: 6, "
                      "embedding_width: 10, layer_groups: 1"),
       fill},
      {text(encoder + "position: sinusoidal, sinusoid_layout: half_closed, position_offset: 2, first_norm: "
                      "false, pooler_norm: true, text_vector: mean"),
       classify},
      {text("architecture: encoder_decoder, position: learned, n_decoder_layers: 3")},
      {"{architecture: {type: vit, patch_size: 4}, d_model: 24, n_heads: 4, n_layers: 2, dropout: 0}",
       classify},
      {"{architecture: {type: vit, patch_size: 4, stem: convolutions}, d_model: 24, n_heads: 4, n_layers: 2, "
       "dropout: 0, layer_scale: 0.1}",
       classify},
      {"{architecture: {type: vit, patch_size: 4, pooling: class_and_distillation, distillation_token: "
       "true}, "
       "d_model: 24, n_heads: 4, n_layers: 2, dropout: 0}",
       classify},
      {"{architecture: {type: vit, patch_size: 4, pooling: attention, patch_bias: false}, embedding_norm: "
       "true, "
       "d_model: 24, n_heads: 4, n_layers: 2, dropout: 0}",
       classify},
      {text("architecture: {type: dual_encoder, width: 10, text_pooling: end, end_token: 5, image: {d_model: "
            "24, n_heads: 4, n_layers: 2, patch_size: 8}}, position: learned"),
       HeadKind::none},
      {text("architecture: {type: dual_encoder, width: 24, scores: sigmoid, text_attention: bidirectional, "
            "pad_texts: true, image_projection: false, projection_bias: true, image: {d_model: 24, n_heads: "
            "4, "
            "n_layers: 2, patch_size: 8, pooling: attention}}, position: learned"),
       HeadKind::none},
      {"{architecture: {type: resnet, depth: 18, width: 4, stem_stride: 1}}", classify},
      {"{architecture: {type: detr, n_queries: 4, max_places: 9, backbone: {depth: 18, width: 4, "
       "stem_stride: "
       "1, norm: group}}, d_model: 24, n_heads: 4, n_layers: 1, n_decoder_layers: 2, position: learned, "
       "dropout: 0}",
       HeadKind::detection},
      {text("architecture: {type: whisper, max_frames: 22}, position: learned, n_decoder_layers: 3")},
      {text("architecture: {type: whisper, max_frames: 22, pad_to_max: false}, position: rotary")},
      {text("architecture: {type: speech_encoder, max_frames: 22}, position: sinusoidal"), HeadKind::ctc},
      {text("architecture: {type: wave_encoder, conv_widths: [5, 6], conv_kernels: [4, 3], conv_strides: [3, "
            "2], masks: {time_share: 0.3, time_length: 2, feature_share: 0.2, feature_length: 3}}, position: "
            "{type: convolution, kernel_size: 6, groups: 4}"),
       HeadKind::ctc},
      {text(encoder + "position: {type: convolution, kernel_size: 5, groups: 4}"), fill},
      {text(encoder + "position: sinusoidal, stored_sinusoids: true"), fill},
      {"{architecture: {type: vit, patch_size: 8, pooling: patch_mean, pool_norm: true}, final_norm: false, "
       "score_position: grid, score_bias_by_layer: true, d_model: 24, n_heads: 4, n_layers: 2, dropout: 0}",
       classify},
  };
}

constexpr ImageShape kImage{.channels = 3, .height = 32, .width = 32};

ModelPurpose purpose_for(HeadKind head) {
  return {.head = head,
          .vocab_size = kVocabulary,
          .n_classes = 3,
          .start_token = kStartToken,
          .image = kImage,
          .n_mels = 6};
}

bool reads_images(const ModelConfig& config) {
  return shape_of(config) == FamilyShape::other && !reads_recordings(config);
}

int64_t channels_of(const ModelConfig& config) {
  const auto picture = compares_pictures(config) ? picture_encoder(config) : config;
  if (picture.architecture.type != "vit") return kImage.channels;
  return picture.architecture.as<VitConfig>().n_channels.value_or(kImage.channels);
}

Batch batch_for(const ModelConfig& config) {
  torch::manual_seed(5);
  Batch batch;
  if (reads_images(config)) {
    const bool has_grid = config.architecture.type == "vit" &&
                          (config.score_position == Position::grid || config.position == Position::grid);
    const int64_t side =
        has_grid ? config.architecture.as<VitConfig>().image_size.value_or(kImage.height) : kImage.height;
    batch.fields = {{"images", torch::randn({4, channels_of(config), side, side})}};
    if (compares_pictures(config)) batch.input.ids = tokens(4, 14);
    return batch;
  }
  if (recording_input(config) == RecordingInput::samples) {
    batch.fields = {{fields::kSamples, torch::randn({4, 60})},
                    {fields::kSampleCounts, torch::tensor({60, 57, 30, 20}, torch::kInt64)}};
    return batch;
  }
  if (reads_recordings(config)) {
    const int64_t n = most_frames(config);
    batch.fields = {{fields::kSpectrograms, torch::randn({4, n_mels_of(config, purpose_for({})), n})},
                    {fields::kFrames, torch::tensor({n, n - 3, n / 2, n / 3}, torch::kInt64)}};
    batch.decoder.ids = tokens(4, 9);
    return batch;
  }
  batch.input.ids = tokens(4, 14);
  batch.segments = config.n_segments > 1 ? torch::ones({4, 14}, torch::kInt64) : torch::Tensor();
  if (shape_of(config) == FamilyShape::encoder_decoder) batch.decoder.ids = tokens(4, 9);
  return batch;
}

/// Parameters, buffers, outputs of random weights, and the same in training. Throws ConfigError.
Made made_by(const ModelConfig& config, HeadKind head) {
  check_model(config, purpose_for(head));
  Made made;
  torch::manual_seed(1);
  const auto model = initialized_model(config, purpose_for(head));
  const torch::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) made.emplace_back(item.key(), item.value().clone());
  for (const auto& item : model->named_buffers()) made.emplace_back(item.key(), item.value().clone());
  torch::manual_seed(2);
  for (auto& parameter : model->parameters()) parameter.normal_(parameter.dim() == 1 ? 0.5 : 0.0, 0.3);
  const auto batch = batch_for(config);
  for (const bool training : {false, true}) {
    model->train(training);
    const RandomScope random({3});
    if (auto* const detecting = model->detecting()) {
      const auto found = detecting->detect(batch);
      made.emplace_back("logits", found.logits);
      made.emplace_back("boxes", found.boxes);
    } else if (auto* const comparing = comparing_of(*model)) {
      made.emplace_back("scores",
                        comparing->scores(comparing->image_vectors(batch), comparing->text_vectors(batch)));
    } else {
      made.emplace_back("logits", model->logits(model->features(batch)));
    }
  }
  return made;
}

/// Why a key has no effect on a model; nullptr: it has one.
const char* no_effect(const std::string& key, const ModelConfig& config, HeadKind head) {
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return key == name; });
  };
  const auto begins = [&](const char* prefix) { return key.starts_with(prefix); };
  const auto& rotary = config.rotary;
  const bool is_token_head =
      head == HeadKind::language_modeling || head == HeadKind::masked_language_modeling;
  if (config.architecture.type == "resnet" && !begins("architecture.") &&
      !is({"dropout", "init", "init_std", "classifier_bias"}))
    return "a residual network has no layers of a transformer";
  const bool only_delta = config.attention.size() == 1 && config.attention.front() == "delta";
  if (only_delta && is({"n_kv_heads", "qk_norm"}))
    return "delta has key_heads, and makes all queries and keys equally long";
  if (config.attention.front() == "disentangled" && is({"n_kv_heads"}))
    return "there are as many heads of keys as of queries";
  if (is({"key_bias"}) && config.projection == Projection::fused) return "a fused map has one bias for all";
  const bool reads_samples = config.architecture.type == "wave_encoder";
  if ((config.architecture.type == "speech_encoder" || reads_samples) &&
      is({"vocab_size", "scale_embeddings", "embedding_scale", "embedding_width"}))
    return "recordings have no tokens";
  if (is({"embedding_map"}) && !config.embedding_width) return "there is no map";
  if (is({"embedding_norm"}) && config.architecture.type == "speech_encoder")
    return "recordings have no tokens";
  if (is({"ctc_blank"})) return "the task chooses the classes";
  if (is({"architecture.stem_norm"}) && config.architecture.as<VitConfig>().stem == VitStem::patches)
    return "patches have no convolutions";
  if (is({"architecture.image.stem_norm"})) return "patches have no convolutions";
  if (begins("rotary.") && config.position != Position::rotary) return "other positions do not rotate";
  if (is({"rotary.original_max_positions"}) && rotary.scaling == RotaryScaling::none)
    return "nothing is scaled";
  if (is({"rotary.beta_fast", "rotary.beta_slow", "rotary.attention_factor"}) &&
      rotary.scaling != RotaryScaling::yarn)
    return "for yarn";
  if (is({"rotary.low_frequency_factor", "rotary.high_frequency_factor"}) &&
      rotary.scaling != RotaryScaling::llama3)
    return "for llama3";
  if (is({"rotary.rounded"}) && rotary.scaling != RotaryScaling::yarn) return "for yarn";
  const bool has_buckets = config.position == Position::t5 || config.score_position == Position::t5;
  if (is({"relative_buckets"}) && !has_buckets) return "for t5";
  if (is({"relative_max_distance"}) && !has_buckets && config.position != Position::shaw)
    return "for t5 and shaw";
  if (is({"gate"}) && !activation_of(config)->is_gated()) return "the activation has no gate";
  if (is({"max_positions"}) && config.position != Position::learned && !config.stored_sinusoids)
    return "limits what is generated, and tables of learned positions";
  if (reads_images(config) && !compares_pictures(config) &&
      is({"vocab_size", "tie_embeddings", "scale_embeddings", "embedding_scale", "embedding_width",
          "embedding_map", "max_positions", "output_bias", "output_scale", "logits_softcap"}))
    return "images have no tokens";
  if (reads_images(config) && !compares_pictures(config) && config.architecture.type != "vit" &&
      is({"embedding_norm"}))
    return "only patches and tokens are embedded";
  if (is({"tie_embeddings", "output_bias", "output_scale", "logits_softcap"}) && !is_token_head)
    return "classes are not tokens";
  if (is({"classifier_bias"}) && (is_token_head || head == HeadKind::none)) return "nothing is classified";
  if (is({"mlm_transform"}) && head != HeadKind::masked_language_modeling) return "nothing is masked";
  const bool pools = head == HeadKind::classification || head == HeadKind::none;
  if (is({"pooler", "pooler_activation", "pooler_norm"}) && (!pools || reads_images(config)))
    return "only encoders of texts pool";
  if (is({"text_vector"}) && (!pools || reads_images(config))) return "each token has an output of its own";
  if (is({"head_bias"}) && head != HeadKind::masked_language_modeling && (!pools || reads_images(config)))
    return "the head has no dense map";
  if (is({"init_std", "init_residual_scaling"}) && config.init != Initialization::normal)
    return "for init: normal";
  return nullptr;
}

/// Whether a key changes numbers by rounding at most, which depends on the processor: causal attention sees
/// no padding behind the token that stands for the text.
bool changes_rounding_only(const std::string& key, const ModelConfig& config) {
  if (key != "architecture.pad_texts" || config.architecture.type != "dual_encoder") return false;
  const auto& dual = config.architecture.as<DualEncoderConfig>();
  return dual.text_attention == TextAttention::causal && dual.text_pooling != TextPooling::last;
}

class EveryKey : public ::testing::TestWithParam<size_t> {};

TEST_P(EveryKey, ChangesSomething) {
  const auto subject = subjects()[GetParam()];
  ModelConfig config;
  ConfigFile::parse(subject.yaml, "test").read(config);
  SCOPED_TRACE(subject.yaml);
  const auto make = [&](const ModelConfig& changed) { return made_by(changed, subject.head); };
  const auto before = make(config);
  ASSERT_TRUE(are_equal(make(config), before)) << "the same keys make the same";
  KeyChange all;
  auto copy = config;
  describe(all, copy);
  ASSERT_GT(all.keys().size(), 40U);
  for (const auto& key : all.keys()) {
    if (changes_rounding_only(key, config)) continue;
    const auto effect = effect_of(key, config, before, make);
    if (const char* const reason = no_effect(key, config, subject.head)) {
      EXPECT_EQ(effect.other, 0) << key << " has an effect, but: " << reason;
      continue;
    }
    const bool expected = effect.is_choice ? effect.same == 0 : effect.other > 0 || effect.same == 0;
    EXPECT_TRUE(expected) << key << ": of its changes, " << effect.other << " change something, "
                          << effect.same << " nothing, " << effect.refused << " are refused";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryKey, ::testing::Range<size_t>(0, subjects().size()));

}  // namespace
}  // namespace zoo::testing
