// Whisper (Radford et al. 2022). What it differs in from BART: an encoder over spectrograms, norms before the
// sub-layers and after the last one, and keys without a bias.

#include "models/families/whisper.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/embedders/audio_embedder.h"

namespace zoo {
namespace {

void read_whisper(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  WhisperConfig audio;
  audio.max_frames = 2 * from.integer("max_source_positions", 1500);
  audio.n_mels = from.integer("num_mel_bins", 80);
  model.architecture = Selection("whisper", audio);
  model.vocab_size = from.integer("vocab_size", 51865);
  read_bart_keys(from, {.d_model = 384, .n_layers = 4, .n_heads = 6, .d_ff = 1536, .dropout = 0}, model);
  model.max_positions = from.integer("max_target_positions", 448);
  model.position = Position::learned;
  model.norm_placement = NormPlacement::pre;
  model.key_bias = false;
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  from.require("scale_embedding", false);
  // They are for training, for a classifier of recordings, and for the times of words.
  from.ignore({"use_weighted_layer_sum", "classifier_proj_size", "apply_spec_augment", "mask_time_prob",
               "mask_time_length", "mask_time_min_masks", "mask_feature_prob", "mask_feature_length",
               "mask_feature_min_masks", "median_filter_width"});
  if (!to.generation.max_new_tokens && !to.generation.max_length)
    to.generation.max_new_tokens = model.max_positions;
  auto& data = to.data.audio;
  data.n_mels = *audio.n_mels;
  data.padding = RecordingPadding::longest;
  data.max_seconds = static_cast<double>(audio.max_frames * data.hop) / static_cast<double>(data.sample_rate);
}

void write_whisper(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto& audio = model.architecture.as<WhisperConfig>();
  to["max_source_positions"] = n_audio_vectors(audio.max_frames);
  to["num_mel_bins"] = audio.n_mels.value_or(from.data.audio.n_mels);
  write_bart_keys(model, to);
  to["max_target_positions"] = model.max_positions;
  to["scale_embedding"] = false;
}

TensorRules whisper_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  TensorRules rules;
  rules.layers(std::max(model.n_layers, model.decoder_layers()));
  rules.module("encoder_embedder.first", "model.encoder.conv1");
  rules.module("encoder_embedder.second", "model.encoder.conv2");
  rules.tensor("encoder_embedder.positions", "model.encoder.embed_positions.weight");
  rules.module("token_embedding", "model.decoder.embed_tokens");
  rules.module("decoder_embedder.position_embedding", "model.decoder.embed_positions");
  for (const std::string side : {"encoder", "decoder"}) {
    add_bart_layers(side, rules);
    rules.module(side + ".final_norm", "model." + side + ".layer_norm");
  }
  rules.tensor("head.output.weight", "proj_out.weight");
  if (model.tie_embeddings) rules.tied("proj_out.weight", "model.decoder.embed_tokens.weight");
  return rules;
}

}  // namespace

ForeignFamily whisper_foreign() {
  return {.model_type = "whisper",
          .doc = "Whisper (Radford et al. 2022): what is said in a recording",
          .classes = {{"WhisperForConditionalGeneration", "speech_recognition"}},
          .read = read_whisper,
          .write = write_whisper,
          .rules = whisper_rules};
}

}  // namespace zoo
