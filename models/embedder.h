#pragma once
// Turns the inputs of a batch into the vectors that a stack reads. This file has the embedder of tokens.
// Other inputs, such as patches or feature maps, have embedders of their own.

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "data/batch.h"
#include "layers/attention/activation_observer.h"
#include "layers/attention/added_positions.h"
#include "layers/attention/positions.h"
#include "layers/found_positions.h"
#include "layers/weights/embedding.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"
#include "models/config/model_config.h"

namespace zoo {

/// The result of an embedder.
struct Embedded {
  torch::Tensor vectors = {};  // (B, T, D)
  torch::Tensor lengths = {};  // (B) int64: vectors of each row without padding; undefined = all T
  torch::Tensor visible = {};  // (B, T) bool: false = padding that is not only at the end; undefined = none
  torch::Tensor ids = {};      // (B, T) int64: the token ids, if the vectors are tokens
  /// (B or 1, T, D): positions that every layer adds to its queries and keys, as in DETR. Undefined if the
  /// vectors already include positions, or have none.
  torch::Tensor layer_positions = {};
};

/// Turns the input of a batch into vectors. A model family with another input has its own embedder.
class EmbedderImpl : public Module {
 public:
  virtual Embedded forward(const Batch& batch) = 0;
  /// As Model::mixes_rows().
  virtual bool mixes_rows() const { return false; }
};

/// Sequences of tokens and their positions.
struct TokenInput {
  torch::Tensor ids;            // (B, T) int64
  torch::Tensor segments = {};  // (B, T) int64; undefined = all 0
  torch::Tensor lengths = {};   // (B) int64: tokens of each row without padding; undefined = all T
  PositionRange range = {};     // positions of the tokens
};

/// Sees the vectors of tokens, to which nothing is added yet, and may replace them.
class TokenVectorObserver {
 public:
  virtual ~TokenVectorObserver() = default;
  /// `vectors`: (B, T, E), with the factor of the table. Returns what the pass goes on with, of this shape.
  virtual torch::Tensor on(StackSide side, const torch::Tensor& vectors) = 0;
};

/// Embeds tokens, their absolute positions and segments; then a norm, dropout, and a map to D. The
/// configuration says which of these exist.
class TokenEmbedderImpl : public Cloneable<TokenEmbedderImpl, EmbedderImpl>, public WeightOwner {
 public:
  /// The model owns `token`, and may share it between embedders and with the output projection.
  TokenEmbedderImpl(const ModelConfig& config, const TokenEmbedding& token);
  /// Embeds the tokens of batch.input, from position 0 on.
  Embedded forward(const Batch& batch) override;
  /// (B, T, D). Throws DataError if a sequence is longer than the table of learned positions.
  torch::Tensor forward(const TokenInput& input);
  void visit_weights(const WeightVisitor& visit) const override;
  /// The table of token vectors.
  const TokenEmbeddingImpl& table() const { return *token_; }
  /// Later calls show the vectors of tokens to `observer`; null: to nobody. Use TokenVectorScope
  /// (models/observation_scope.h). A copy is not observed.
  void observe(TokenVectorObserver* observer, StackSide side);
  bool is_observed() const { return observer_ != nullptr; }
  auto arguments() const { return std::tie(config_, token_); }
  void pretty_print(std::ostream& stream) const override;

  std::shared_ptr<AddedPositionsImpl> position_embedding;  // null: there are no such positions
  std::shared_ptr<FoundPositionsImpl> found_positions;     // null: there are no such positions
  torch::nn::Embedding segment_embedding{nullptr};         // (n_segments, E)
  Norm embedding_norm{nullptr};
  Linear embedding_map{nullptr};  // E → D, if tables have a width of their own

 private:
  ModelConfig config_;
  std::shared_ptr<TokenEmbeddingImpl> token_;  // not registered here: the model owns it
  TokenVectorObserver* observer_ = nullptr;
  StackSide side_ = StackSide::only;
};

class TokenEmbedder : public torch::nn::ModuleHolder<TokenEmbedderImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = TokenEmbedderImpl;
  /// As forward(), for a braced argument as in Attention: embedder({.ids = ids}).
  torch::Tensor operator()(const TokenInput& input) { return get()->forward(input); }
};

/// (B, T, 1): the factors of ESM's token dropout (Lin et al. 2023; EsmEmbeddings of transformers) on the
/// vectors of tokens. 0 for the token `mask`; for the others 0.88 / (1 - share of the row's tokens that are
/// masks), where 0.88 is the share of tokens that ESM's training does not mask.
torch::Tensor token_dropout_factors(const TokenInput& input, int64_t mask);

/// The table of token vectors for a configuration. It has config.vocab_size rows if that is set, otherwise
/// `vocab_size`.
TokenEmbedding make_token_embedding(const ModelConfig& config, int64_t vocab_size);

/// Adds the cost of such a table with path `name`, as count_table().
void count_token_table(CostAccount& account, const std::string& name, const ModelConfig& config,
                       int64_t vocab_size, double n_tokens, int64_t n_sides = 1);

/// Adds the cost of the tables and the norm of a TokenEmbedder with path `name`.
void count_token_embedder(CostAccount& account, const std::string& name, const ModelConfig& config,
                          double n_tokens);

}  // namespace zoo
