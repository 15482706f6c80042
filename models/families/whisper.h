#pragma once
// Whisper (Radford et al. 2022): an encoder over the log-mel spectrogram of a recording, and a decoder that
// writes what was said. For own models, too, which read recordings of any length.

#include <optional>

#include "models/embedders/audio_embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

/// The keys of the family, beside `type: whisper`.
struct WhisperConfig {
  int64_t max_frames = 3000;           // two rows of the table of positions for each vector of the encoder
  std::optional<int64_t> n_mels = {};  // default: the data's, or 80
  bool pad_to_max = true;              // every recording is padded to max_frames, and nothing is hidden
};
void describe(ConfigVisitor& v, WhisperConfig& c);

/// Reads the fields "spectrograms" and "frames" of a batch, and as `decoder` the tokens that were said so
/// far. The prompts of its generation are tokens behind the start token, such as Whisper's language and task;
/// they may be empty.
class WhisperModel : public Model, public GenerativeModel {
 public:
  WhisperModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override { return this; }

  DecodingState begin(const Batch& sources) override;
  TokenBatch first_tokens(const TokenBatch& prompts) override;
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override;
  bool continues_prompt() const override { return false; }
  bool sequence_has_prompt() const override { return true; }
  bool reads_recordings() const override { return true; }
  int64_t max_length() const override { return config_.max_positions; }

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  struct Memory {
    torch::Tensor vectors;  // (B, S, D)
    torch::Tensor lengths;  // (B) int64; undefined = all S
  };
  Memory encode(const Batch& batch, std::vector<torch::Tensor>* maps);
  torch::Tensor decode(const Batch& batch, AttentionMaps* maps);

  TokenEmbedding token_embedding_{nullptr};
  AudioEmbedder encoder_embedder_{nullptr};
  Stack encoder_{nullptr};
  TokenEmbedder decoder_embedder_{nullptr};
  Stack decoder_{nullptr};
  ModelHead head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily whisper_family();

}  // namespace zoo
