#pragma once
// Tokens to vectors, and vectors to scores over the vocabulary.

#include <optional>
#include <string>

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include "layers/weights/cost.h"
#include "layers/weights/weights.h"

namespace zoo {

struct TokenEmbeddingOptions {
  TokenEmbeddingOptions(int64_t vocab_size, int64_t d_model) : vocab_size_(vocab_size), d_model_(d_model) {}
  TORCH_ARG(int64_t, vocab_size);
  TORCH_ARG(int64_t, d_model);
  /// Factor on the vectors: √D in the original Transformer.
  TORCH_ARG(double, scale) = 1.0;
};

/// A table of one vector per token: the parameter weight (V, D).
class TokenEmbeddingImpl : public Cloneable<TokenEmbeddingImpl, MatrixModule> {
 public:
  explicit TokenEmbeddingImpl(const TokenEmbeddingOptions& options);
  /// (B, T) int64 → (B, T, D). Throws DataError for an id without a row, if the ids are on the CPU. For ids
  /// on a GPU, which it would have to wait for, see Model::on_device().
  torch::Tensor forward(const torch::Tensor& ids);
  /// Throws DataError if the highest of some ids has no row.
  void check(int64_t highest) const;
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  TokenEmbeddingOptions options;
};
TORCH_MODULE(TokenEmbedding);

/// A small table (rows, width) for positions, segments or buckets.
torch::nn::Embedding make_table(int64_t rows, int64_t width);

struct OutputProjectionOptions {
  OutputProjectionOptions(int64_t d_model, int64_t vocab_size) : d_model_(d_model), vocab_size_(vocab_size) {}
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(int64_t, vocab_size);
  TORCH_ARG(bool, bias) = false;
  /// Factor on the hidden states before the product: D^-0.5 in T5 with tied embeddings.
  TORCH_ARG(double, scale) = 1.0;
  /// c: the logits become c·tanh(logits/c) (Gemma 2); default: they stay.
  TORCH_ARG(std::optional<double>, softcap) = std::nullopt;
};

/// xWᵀ + b over the vocabulary. Tied: W is the matrix of the token embedding (Press & Wolf 2017), which saves
/// V·D parameters. The embedding then owns the matrix, and a checkpoint has it once.
class OutputProjectionImpl : public Cloneable<OutputProjectionImpl, MatrixModule> {
 public:
  /// With the matrix of `tied`, or, if that is null, with its own.
  explicit OutputProjectionImpl(const OutputProjectionOptions& options, const TokenEmbedding& tied = nullptr);
  /// (…, D) → logits (…, V)
  torch::Tensor forward(const torch::Tensor& hidden);
  void visit_weights(const WeightVisitor& visit) const override;
  auto arguments() const { return std::tie(options, tied_); }
  void pretty_print(std::ostream& stream) const override;

  OutputProjectionOptions options;
  torch::Tensor bias;  // (V) or undefined

 private:
  std::shared_ptr<TokenEmbeddingImpl> tied_;  // not registered here: the model owns it
};
TORCH_MODULE(OutputProjection);

/// Log softmax over the last dimension in float32, as in the generator of "The Annotated Transformer".
torch::Tensor log_probabilities(const torch::Tensor& logits);

/// A table of `rows` vectors, whose path is `name`. `n_tokens` looked-up vectors are kept for the backward
/// pass. `n_sides` as in CostEntry.
void count_table(CostAccount& account, std::string name, int64_t rows, int64_t width, double n_tokens = 0,
                 int64_t n_sides = 1);

}  // namespace zoo
