#pragma once
// Models that read with an encoder and write with a decoder, which attends to the encoder's output.

#include <memory>

#include "models/families/family_model.h"

namespace zoo {

/// What the families encoder_decoder and whisper share. A derived class says what the encoder reads, by
/// make_sides(). A batch without a text for the decoder has it read the source.
class TwoSidedModel : public EncodingModel, public GenerativeModel {
 public:
  torch::Tensor features(const Batch& batch) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override {
    return purpose_.head == HeadKind::language_modeling ? this : nullptr;
  }

  DecodingState begin(const Batch& sources) override;
  TokenBatch first_tokens(const TokenBatch& prompts) override;
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override {
    return read_tokens({decoder_embedder_, decoder_, head_}, tokens, state, at);
  }
  bool continues_prompt() const override { return false; }
  int64_t max_length() const override { return config_.max_positions; }

 protected:
  /// Registers the table of tokens.
  TwoSidedModel(const ModelConfig& config, const ModelPurpose& purpose);
  /// Registers everything else; `source` is the encoder's embedder.
  void make_sides(std::shared_ptr<EmbedderImpl> source);

  TokenEmbedding token_embedding_{nullptr};  // of the decoder

 private:
  torch::Tensor decode(const Batch& batch, AttentionMaps* maps);

  TokenEmbedder decoder_embedder_{nullptr};
  Stack decoder_{nullptr};
};

/// The lengths of both sides in one pass.
struct SidesShape {
  int64_t batch_size;  // B
  int64_t n_source;    // S: vectors of the encoder
  int64_t n_target;    // T: tokens of the decoder
  int64_t n_targets;   // N: predictions
};
/// Adds the cost of what make_sides() registers, except for the encoder's embedder.
void count_sides(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                 const SidesShape& shape);

}  // namespace zoo
