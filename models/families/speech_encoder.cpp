#include "models/families/speech_encoder.h"

#include <torch/types.h>

#include "models/families/model_description.h"
#include "models/families/recordings.h"

namespace zoo {
namespace {

AudioEmbedderOptions recording_options(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& keys = config.architecture.as<SpeechEncoderConfig>();
  return AudioEmbedderOptions(config.d_model, n_mels_of(config, purpose))
      .max_frames(keys.max_frames)
      .length(RecordingLength::own)
      .positions(audio_positions_for(config.position))
      .dropout(config.dropout);
}

void count_speech_encoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                          const PassShape& shape) {
  const auto spectrograms = shape.fields.find(fields::kSpectrograms);
  const int64_t n_frames =
      spectrograms == shape.fields.end() ? 2 * shape.length : spectrograms->second.back();
  const int64_t n_vectors = n_audio_vectors(n_frames);
  count_audio_embedder(account, "embedder", recording_options(config, purpose), shape.batch_size, n_frames);
  count_stack(account, "encoder", config, StackRole::encoder,
              {.batch_size = shape.batch_size, .n_queries = n_vectors, .n_keys = n_vectors});
  count_head(account, config, purpose, Pooling::none, static_cast<double>(shape.batch_size * n_vectors));
}

void validate_speech_encoder(const ModelConfig& config, const Complain& complain) {
  if (config.position == Position::learned)
    complain("position", "of a speech_encoder must be sinusoidal, rotary, alibi, t5, shaw or none");
  validate_audio_positions(config, complain);
}

}  // namespace

void describe(ConfigVisitor& v, SpeechEncoderConfig& c) {
  v.field("max_frames", c.max_frames, "The most frames of a recording.", Limits::between(2, 1 << 20));
  v.field("n_mels", c.n_mels, "Bands of the spectrograms; default: data.audio.n_mels, or 80.",
          Limits::between(1, 1 << 12));
}

SpeechEncoderModel::SpeechEncoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : config_(config), purpose_(purpose) {
  embedder_ = register_module("embedder", AudioEmbedder(recording_options(config, purpose)));
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder));
  head_ = register_module("head", ModelHead(config, purpose, nullptr));
}

torch::Tensor SpeechEncoderModel::encode(const Batch& batch, std::vector<torch::Tensor>* maps) {
  const auto embedded = embedder_->forward(batch);
  return encoder_({.x = embedded.vectors, .mask = Mask::lengths(embedded.lengths), .self_maps = maps});
}

torch::Tensor SpeechEncoderModel::features(const Batch& batch) {
  return head_->prepare_at(encode(batch, nullptr), batch.positions);
}

std::shared_ptr<torch::nn::Module> SpeechEncoderModel::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<SpeechEncoderModel>(config_, purpose_);
}

void SpeechEncoderModel::pretty_print(std::ostream& stream) const {
  stream << describe_model("SpeechEncoderModel", config_, purpose_);
}

ModelFamily speech_encoder_family() {
  ModelFamily family;
  family.name = "speech_encoder";
  family.doc = "An encoder over the spectrogram of a recording, which is trained with CTC.";
  family.make_options = options_of<SpeechEncoderConfig>();
  family.heads = {HeadKind::ctc};
  family.make = [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<SpeechEncoderModel>(config, purpose);
  };
  family.count = count_speech_encoder;
  family.set_defaults = [](ModelConfig& config) { config.position = Position::sinusoidal; };
  family.validate = validate_speech_encoder;
  return family;
}

}  // namespace zoo
