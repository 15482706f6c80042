#pragma once
// The two interfaces through which trainer and generator use a model. Neither depends on the architecture.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch.h"
#include "layers/activation_checkpointing.h"
#include "layers/weights/module.h"
#include "models/config/model_config.h"
#include "models/decoding_state.h"
#include "models/precision.h"

namespace zoo {

/// The attention weights of one forward pass: one (B, H, T, S) tensor per layer.
struct AttentionMaps {
  std::vector<torch::Tensor> encoder;  // self-attention of the encoder
  std::vector<torch::Tensor> decoder;  // self-attention of the decoder
  std::vector<torch::Tensor> cross;    // the decoder's queries over the encoder's memory
};

/// The places of an image over which a model attends: a grid, row by row.
struct PatchGrid {
  int64_t rows = 0, columns = 0;
  int64_t n_before = 0;    // vectors that stand before the places, such as a class token
  int64_t patch_size = 0;  // side of a place in pixels of the batch's images
};

class GenerativeModel;
class DetectingModel;
class AligningModel;

/// A model that can be trained: batch → features → scores. It has two steps, so that a loss can project the
/// features in chunks and never hold all logits.
class Model : public Module {
 public:
  /// (N, D): the final hidden states from which the batch's targets are predicted, in their order.
  virtual torch::Tensor features(const Batch& batch) = 0;
  /// (…, D) → (…, V) token logits, or (…, C) class logits or regressed numbers; the features themselves, if
  /// the model has no head.
  virtual torch::Tensor logits(const torch::Tensor& features) = 0;
  /// The last size of logits(): V or C; D without a head.
  virtual int64_t n_outputs() const = 0;
  /// The final hidden states of every position, (B, T, D); the encoder's if there is one.
  virtual torch::Tensor hidden_states(const Batch& batch) = 0;
  /// Runs the batch and appends the weights of every attention.
  virtual void attention_maps(const Batch& batch, AttentionMaps& maps) = 0;
  /// The places that the encoder makes of each of the batch's images. By default: nothing, for a model that
  /// reads no images.
  virtual std::optional<PatchGrid> patch_grid(const Batch&) const { return std::nullopt; }
  /// This model's interface for generation, or null if it cannot generate.
  virtual GenerativeModel* generative() { return nullptr; }
  /// This model's interface for finding objects, or null if it finds none.
  virtual DetectingModel* detecting() { return nullptr; }
  /// What a model with HeadKind::ctc says of its scores; null for other models.
  virtual const AligningModel* aligning() const { return nullptr; }

  /// Whether the output of a row now depends on the other rows of the batch, as with batch norm in training.
  /// If so, a batch must go through the model as a whole.
  virtual bool mixes_rows() const { return false; }

  /// Sets what training recomputes in the backward pass to save memory; at first nothing. Losses and
  /// gradients do not change.
  void checkpoint_activations(ActivationCheckpointing what);

  /// The format of the residual stream where training runs in bf16; at first fp32.
  void keep_residual_in(ResidualStream format);

  /// The device of the weights.
  torch::Device device() const;
  /// The batch, which is on the CPU, on the model's device. Throws DataError if a token of it has no vector,
  /// or a target no output. A model on a CPU checks them itself; on a GPU they would end all work.
  Batch on_device(const Batch& batch) const;
  /// The same check of tokens that are in no batch yet.
  void check_tokens(std::span<const int64_t> ids) const;

 private:
  /// Throws DataError if the highest of some tokens has no vector.
  void require_vectors(int64_t highest) const;
};

/// Selects the tokens of a call for which the logits of the next token are computed.
class LogitsAt {
 public:
  /// The last token of each row: (B, V). The logits of a row that reads no token are meaningless.
  static LogitsAt last_token() { return LogitsAt(Kind::last_token, {}); }
  /// Every column of every row, padding included: (B·T, V).
  static LogitsAt every_token() { return LogitsAt(Kind::every_token, {}); }
  /// Flat indices b·T + t, (N) int64 on the model's device: (N, V).
  static LogitsAt positions(torch::Tensor flat) { return LogitsAt(Kind::positions, std::move(flat)); }

  /// The selected vectors of the hidden states (B, T, D) of the tokens at `range`.
  torch::Tensor select(const torch::Tensor& hidden, const PositionRange& range) const;

 private:
  enum class Kind { last_token, every_token, positions };
  LogitsAt(Kind kind, torch::Tensor flat) : kind_(kind), flat_(std::move(flat)) {}

  Kind kind_;
  torch::Tensor flat_;
};

/// A model that continues sequences. One call reads any number of new tokens for each row. Greedy search,
/// beam search, prompts in pieces, scoring and speculative decoding can therefore use the same function.
class GenerativeModel {
 public:
  virtual ~GenerativeModel() = default;

  /// A state for the B rows of `sources`: of its `input`, the prompts (B, T), padded on the right, and of its
  /// fields, if the model reads recordings. No token is read yet, except that an encoder-decoder reads the
  /// prompts, or the recordings, with its encoder.
  virtual DecodingState begin(const Batch& sources) = 0;
  /// The first tokens for forward(): the prompts for a decoder, the start token for an encoder-decoder, and
  /// the start token and the prompts for a model that reads recordings.
  virtual TokenBatch first_tokens(const TokenBatch& prompts) = 0;
  /// Reads further tokens, (B, T) padded on the right; tokens.lengths may differ by row, and be 0. Returns
  /// the logits of the next token at the positions `at`. Throws DataError if a row becomes longer than the
  /// table of learned positions.
  virtual torch::Tensor forward(const TokenBatch& tokens, DecodingState& state,
                                const LogitsAt& at = LogitsAt::last_token()) = 0;
  /// begin(), then forward() on first_tokens(): `state` becomes a state that has read the prompts. Returns
  /// the logits (B, V) of each row's next token.
  torch::Tensor prefill(const Batch& sources, DecodingState& state);

  /// Whether the output continues the prompt. Otherwise it answers the prompt, and the prompt ends with eos.
  virtual bool continues_prompt() const = 0;
  /// The most tokens of a row in generation (max_positions). In a decoder this includes the prompt.
  virtual int64_t max_length() const = 0;
  /// Whether a row's tokens include the prompt: true for every decoder, even one that answers.
  virtual bool sequence_has_prompt() const { return continues_prompt(); }
  /// Whether the model writes what recordings say (fields::kSpectrograms). Its prompts are tokens that stand
  /// behind the start token and before the output; they may be empty.
  virtual bool reads_recordings() const { return false; }
};

/// The predictions of a model that finds objects: one for each of its Q object queries, after each of its L
/// decoder layers.
struct Detections {
  torch::Tensor logits;  // (L, B, Q, C+1): scores of the classes; the last one stands for "no object"
  torch::Tensor boxes;   // (L, B, Q, 4): centre x, centre y, width, height, as shares of the picture's sides
};

/// A model that finds objects in pictures.
class DetectingModel {
 public:
  virtual ~DetectingModel() = default;
  /// Reads the fields kImages and kImageSizes of the batch.
  virtual Detections detect(const Batch& batch) = 0;
  /// The number Q of object queries.
  virtual int64_t n_queries() const = 0;
};

/// A model that scores the tokens of each moment of a recording.
class AligningModel {
 public:
  virtual ~AligningModel() = default;
  /// (B) int64: the vectors of each recording of a batch without those of padding; undefined: all of them.
  virtual torch::Tensor n_moments(const Batch& batch) const = 0;
  /// The class that stands for "no token".
  virtual int64_t blank() const = 0;
};

/// The head of a model.
enum class HeadKind {
  language_modeling,         // scores of the next token
  masked_language_modeling,  // scores of a hidden token
  classification,            // scores of classes, once per row
  token_classification,      // scores of classes, for each token
  regression,                // numbers, once per row
  detection,                 // scores of classes and a box, for each object query
  ctc,                       // scores of the tokens and of the blank, for each vector of a recording
  none,                      // no scores: logits() are the features, once per row with an encoder
};
constexpr auto config_names(HeadKind) {
  return std::to_array<std::string_view>({"language_modeling", "masked_language_modeling", "classification",
                                          "token_classification", "regression", "detection", "ctc", "none"});
}
/// Whether a head scores tokens of the vocabulary.
constexpr bool predicts_tokens(HeadKind head) {
  return head == HeadKind::language_modeling || head == HeadKind::masked_language_modeling;
}
/// Whether a head predicts once per row, not at many positions.
constexpr bool predicts_once(HeadKind head) {
  return !predicts_tokens(head) && head != HeadKind::token_classification && head != HeadKind::ctc;
}

/// Whether a generating decoder continues or answers its prompt. (An encoder-decoder always answers.)
enum class PromptUse { continued, answered };

/// The facts about its task that a model needs.
struct ModelPurpose {
  HeadKind head = HeadKind::language_modeling;
  PromptUse prompt = PromptUse::continued;
  int64_t vocab_size = 0;    // of the tokenizer
  int64_t n_classes = 0;     // classes, without "no object"; regression: outputs; ctc: with the blank
  int64_t start_token = -1;  // encoder_decoder: first input of the decoder
  int64_t pad_token = 0;     // dual_encoder: that fills texts, if their padding is read
  ImageShape image = {};     // of tasks on images
  int64_t n_mels = 0;        // bands of a spectrogram, of tasks on recordings
  std::optional<int64_t> ctc_blank = {};  // ctc: the class of the blank; default: the last one
};

/// The class of the blank, of HeadKind::ctc.
constexpr int64_t blank_of(const ModelPurpose& purpose) {
  return purpose.ctc_blank.value_or(purpose.n_classes - 1);
}

/// Throws the CheckpointError for a model whose logits are NaN.
[[noreturn]] void fail_not_a_number();

}  // namespace zoo
