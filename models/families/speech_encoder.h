#pragma once
// An encoder over the log-mel spectrogram of a recording, with a score of each token, and of none, for each
// of its vectors. Trained with CTC (Graves et al. 2006; tasks/ctc.h).

#include <optional>

#include "models/embedders/audio_embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

/// The keys of the family, beside `type: speech_encoder`.
struct SpeechEncoderConfig {
  int64_t max_frames = 3000;
  std::optional<int64_t> n_mels = {};  // default: the data's, or 80
};
void describe(ConfigVisitor& v, SpeechEncoderConfig& c);

/// Reads the fields "spectrograms" and "frames" of a batch. Its features are those of all vectors, those of
/// padding included: (B·T, D) with T = ⌈N/2⌉. Its scores are V tokens and, last, the blank.
class SpeechEncoderModel : public Model {
 public:
  SpeechEncoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override { return encode(batch, nullptr); }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override { encode(batch, &maps.encoder); }

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  torch::Tensor encode(const Batch& batch, std::vector<torch::Tensor>* maps);

  AudioEmbedder embedder_{nullptr};
  Stack encoder_{nullptr};
  ModelHead head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily speech_encoder_family();

}  // namespace zoo
