// Whisper (Radford et al. 2022): an encoder over the log-mel spectrogram of a recording, and a decoder that
// writes what was said. For own models, too, which read recordings of any length.

#include "models/families/whisper.h"

#include <torch/types.h>

#include "models/families/recordings.h"
#include "models/families/two_sided_model.h"

namespace zoo {

void describe(ConfigVisitor& v, WhisperConfig& c) {
  v.field("max_frames", c.max_frames,
          "The most frames of a recording; twice the rows of the encoder's table of positions.",
          Limits::between(2, 1 << 20));
  v.field("n_mels", c.n_mels, "Bands of the spectrograms; default: data.audio.n_mels, or 80.",
          Limits::between(1, 1 << 12));
  v.field("pad_to_max", c.pad_to_max,
          "Every recording is padded with silence to max_frames, and the model reads the silence, as the "
          "published ones do; false: a recording is as long as it is.");
}

namespace {

/// The encoder has sinusoids where the decoder has learned positions, as published.
AudioEmbedderOptions audio_options(const ModelConfig& config, const ModelPurpose& purpose) {
  const bool padded = config.architecture.as<WhisperConfig>().pad_to_max;
  return recording_options(config, purpose).length(padded ? RecordingLength::padded : RecordingLength::own);
}

/// Reads the fields "spectrograms" and "frames" of a batch, and as `decoder` the tokens that were said so
/// far. The prompts of its generation are tokens behind the start token, such as Whisper's language and task;
/// they may be empty.
class WhisperModel final : public Cloneable<WhisperModel, TwoSidedModel> {
 public:
  WhisperModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    make_sides(AudioEmbedder(audio_options(config, purpose)).ptr());
  }

  TokenBatch first_tokens(const TokenBatch& prompts) override {
    const auto start = TwoSidedModel::first_tokens(prompts);
    return {.ids = torch::cat({start.ids, prompts.ids}, 1),
            .lengths = prompts.lengths.defined() ? prompts.lengths + 1 : torch::Tensor()};
  }
  bool sequence_has_prompt() const override { return true; }
  bool reads_recordings() const override { return true; }
};

void count_whisper(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                   const PassShape& shape) {
  const int64_t n_frames = n_frames_of(shape);
  // Without a batch, a token is written for each vector.
  const int64_t n_tokens = shape.decoder_length > 0 ? shape.decoder_length : shape.length;
  count_token_table(account, "token_embedding", config, purpose.vocab_size,
                    static_cast<double>(shape.batch_size * n_tokens));
  count_audio_embedder(account, "encoder_embedder", audio_options(config, purpose), shape.batch_size,
                       n_frames);
  count_sides(account, config, purpose,
              {.batch_size = shape.batch_size,
               .n_source = n_audio_vectors(n_frames),
               .n_target = n_tokens,
               .n_targets = shape.n_targets});
}

}  // namespace

ModelFamily whisper_family() {
  ModelFamily family;
  family.name = "whisper";
  family.doc = "Whisper: an encoder over the spectrogram of a recording, and a decoder over text.";
  family.make_options = options_of<WhisperConfig>();
  family.has_memory = true;
  family.heads = {HeadKind::language_modeling};
  family.make = makes<WhisperModel>();
  family.count = count_whisper;
  family.set_defaults = [](ModelConfig& config) {
    config.max_positions = 448;
    config.key_bias = false;
  };
  family.validate = validate_audio_positions;
  return family;
}

}  // namespace zoo
