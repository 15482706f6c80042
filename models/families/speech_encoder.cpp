// An encoder over the log-mel spectrogram of a recording, with a score of each token, and of none, for each
// of its vectors. Trained with CTC (Graves et al. 2006; tasks/ctc.h).

#include "models/families/speech_encoder.h"

#include <torch/types.h>

#include "models/families/family_model.h"
#include "models/families/recordings.h"

namespace zoo {

void describe(ConfigVisitor& v, SpeechEncoderConfig& c) {
  v.field("max_frames", c.max_frames, "The most frames of a recording.", Limits::between(2, 1 << 20));
  v.field("n_mels", c.n_mels, "Bands of the spectrograms; default: data.audio.n_mels, or 80.",
          Limits::between(1, 1 << 12));
}

namespace {

/// Reads the fields "spectrograms" and "frames" of a batch. Its features are those of all vectors, those of
/// padding included: (B·T, D) with T = ⌈N/2⌉.
class SpeechEncoderModel final : public Cloneable<SpeechEncoderModel, EncodingModel>, public AligningModel {
 public:
  SpeechEncoderModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    make_encoder("embedder", AudioEmbedder(recording_options(config, purpose)).ptr());
    head_ = register_module("head", ModelHead(config, purpose, nullptr));
  }

  torch::Tensor features(const Batch& batch) override {
    return head_->prepare_at(hidden_states(batch), batch.positions);
  }
  const AligningModel* aligning() const override { return this; }
  torch::Tensor n_moments(const Batch& batch) const override { return audio_lengths(batch); }
  int64_t blank() const override { return blank_of(purpose_); }
};

void count_speech_encoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                          const PassShape& shape) {
  const int64_t n_frames = n_frames_of(shape), n_vectors = n_audio_vectors(n_frames);
  count_audio_embedder(account, "embedder", recording_options(config, purpose), shape.batch_size, n_frames);
  count_found_positions(account, account.path("embedder", "found_positions"), config,
                        static_cast<double>(shape.batch_size * n_vectors));
  count_encoder(account, config, shape.batch_size, n_vectors);
  count_head(account, config, purpose, Pooling::none, static_cast<double>(shape.batch_size * n_vectors));
}

void validate_speech_encoder(const ModelConfig& config, const Complain& complain) {
  if (config.position == Position::learned)
    complain("position",
             "of a speech_encoder must be sinusoidal, rotary, alibi, t5, shaw, convolution or none");
  validate_audio_positions(config, complain);
}

}  // namespace

ModelFamily speech_encoder_family() {
  ModelFamily family;
  family.name = "speech_encoder";
  family.doc = "An encoder over the spectrogram of a recording, which is trained with CTC.";
  family.make_options = options_of<SpeechEncoderConfig>();
  family.adds_found_positions = true;
  family.heads = {HeadKind::ctc};
  family.make = makes<SpeechEncoderModel>();
  family.count = count_speech_encoder;
  family.set_defaults = [](ModelConfig& config) { config.position = Position::sinusoidal; };
  family.validate = validate_speech_encoder;
  return family;
}

}  // namespace zoo
