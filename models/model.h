#pragma once
// What trainer and generator know of a model: two small interfaces. Neither ever asks which architecture it
// holds.

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "layers/activation_checkpointing.h"
#include "layers/kv_cache.h"
#include "models/batch.h"
#include "models/model_config.h"

namespace zoo {

/// The attention weights of one forward pass: one (B, H, T, S) tensor a layer.
struct AttentionMaps {
  std::vector<torch::Tensor> encoder;  // self-attention of the encoder
  std::vector<torch::Tensor> decoder;  // self-attention of the decoder
  std::vector<torch::Tensor> cross;    // the decoder's queries over the encoder's memory
};

class GenerativeModel;

/// A model that can be trained: batch → hidden states where something is to be predicted → logits. Two steps,
/// so that a loss may project the hidden states piece by piece and never hold all logits.
class Model : public torch::nn::Module {
 public:
  /// (N, D): the final hidden states at the batch's targets, in their order.
  virtual torch::Tensor features(const Batch& batch) = 0;
  /// (…, D) → (…, V) token logits or (…, C) class logits.
  virtual torch::Tensor logits(const torch::Tensor& features) = 0;
  /// The last size of logits(): V or C.
  virtual int64_t n_outputs() const = 0;
  /// The final hidden states of every position, (B, T, D): the encoder's where there is one.
  virtual torch::Tensor hidden_states(const TokenBatch& input) = 0;
  /// Runs the batch and appends the weights of every attention.
  virtual void attention_maps(const Batch& batch, AttentionMaps& maps) = 0;
  /// The generative side of this model, or null if it has none.
  virtual GenerativeModel* generative() { return nullptr; }

  /// What training computes again in the backward pass to save memory; none at first. Losses and gradients
  /// stay what they are.
  void checkpoint_activations(ActivationCheckpointing what);

  /// The device of the weights.
  torch::Device device() const;
};

/// What a generation has read so far: opaque to its users, who pass it from step to step.
struct DecodingState {
  KvCache cache;
  torch::Tensor starts;          // (B) left padding of each row in the cache; undefined = none
  torch::Tensor memory;          // (B, S, D) encoder output; undefined in a decoder
  torch::Tensor memory_lengths;  // (B); undefined = no padding

  /// Tokens in the cache, padding included.
  int64_t length() const { return cache.length(); }
  /// Row i becomes what row rows[i] was; rows: (B') int64 on the model's device.
  void reorder(const torch::Tensor& rows);
};

/// A model that continues sequences, one token at a time.
class GenerativeModel {
 public:
  virtual ~GenerativeModel() = default;
  /// Reads B prompts of unequal length (for an encoder-decoder: the sources; its decoder then starts with the
  /// start token). Returns the logits (B, V) of each row's next token. `state` must be fresh.
  virtual torch::Tensor prefill(const TokenBatch& prompts, DecodingState& state) = 0;
  /// Appends one token to each row, tokens: (B) int64, and returns the logits (B, V) of the next.
  virtual torch::Tensor step(const torch::Tensor& tokens, DecodingState& state) = 0;
  /// Whether what is generated goes on from the prompt or answers it; a prompt to be answered ends with eos.
  virtual bool continues_prompt() const = 0;
  /// The most tokens that a sequence under generation may hold (max_positions), prompt included for a
  /// decoder.
  virtual int64_t max_length() const = 0;
  /// Whether the prompt is part of that sequence, as it is for a decoder even where it answers.
  virtual bool sequence_has_prompt() const { return continues_prompt(); }
};

/// What the model ends in.
enum class Head { language_modeling, masked_language_modeling, classification };

/// What a prompt is to a decoder that generates. (To an encoder-decoder it is always something to answer.)
enum class PromptUse { continued, answered };

/// What a model must know about its task.
struct ModelPurpose {
  Head head = Head::language_modeling;
  PromptUse prompt = PromptUse::continued;
  int64_t vocab_size = 0;    // of the tokenizer
  int64_t n_classes = 0;     // classification
  int64_t start_token = -1;  // encoder_decoder: first input of the decoder
};

/// Throws ConfigError where config and purpose do not fit: a masked language model on a decoder, a vocabulary
/// smaller than the tokenizer's, and all that validate() finds.
void check_model(const ModelConfig& config, const ModelPurpose& purpose);

/// Builds and initialises a model on the CPU (weights drawn from the default generator: torch::manual_seed).
/// Throws ConfigError where config and purpose do not fit, e.g. a masked language model on a decoder.
std::shared_ptr<Model> make_model(const ModelConfig& config, const ModelPurpose& purpose);

}  // namespace zoo
