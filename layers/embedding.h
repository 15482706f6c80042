#pragma once
// Tokens to vectors, and vectors to scores over the vocabulary.

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace zoo {

struct TokenEmbeddingOptions {
  TokenEmbeddingOptions(int64_t vocab_size, int64_t d_model) : vocab_size_(vocab_size), d_model_(d_model) {}
  TORCH_ARG(int64_t, vocab_size);
  TORCH_ARG(int64_t, d_model);
  /// Factor on the vectors: √D in the original Transformer.
  TORCH_ARG(double, scale) = 1.0;
};

/// A table of one vector a token.
class TokenEmbeddingImpl : public torch::nn::Module {
 public:
  explicit TokenEmbeddingImpl(const TokenEmbeddingOptions& options);
  /// (B, T) int64 → (B, T, D)
  torch::Tensor forward(const torch::Tensor& ids);

  TokenEmbeddingOptions options;
  torch::Tensor weight;  // (V, D)
};
TORCH_MODULE(TokenEmbedding);

struct OutputProjectionOptions {
  OutputProjectionOptions(int64_t d_model, int64_t vocab_size) : d_model_(d_model), vocab_size_(vocab_size) {}
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(int64_t, vocab_size);
  TORCH_ARG(bool, bias) = false;
  /// Factor on the hidden states before the product: D^-0.5 in T5 with tied embeddings.
  TORCH_ARG(double, scale) = 1.0;
};

/// xWᵀ + b over the vocabulary. Tied: W is the token embedding's own table (Press & Wolf 2017), which saves
/// V·D parameters; that table stays the embedding's, and appears once in a checkpoint.
class OutputProjectionImpl : public torch::nn::Module {
 public:
  /// A projection with a matrix of its own.
  explicit OutputProjectionImpl(const OutputProjectionOptions& options);
  /// A projection with the matrix of `tied`.
  OutputProjectionImpl(const OutputProjectionOptions& options, const TokenEmbedding& tied);
  /// (…, D) → logits (…, V)
  torch::Tensor forward(const torch::Tensor& hidden);

  OutputProjectionOptions options;
  torch::Tensor weight;  // (V, D); undefined when tied
  torch::Tensor bias;    // (V) or undefined

 private:
  std::shared_ptr<TokenEmbeddingImpl> tied_;
};
TORCH_MODULE(OutputProjection);

/// The probability view of "The Annotated Transformer"'s generator: log softmax over the last dimension, in
/// float32.
torch::Tensor log_probabilities(const torch::Tensor& logits);

}  // namespace zoo
