#pragma once
// What a model ends in. A head has two halves: `prepare` turns hidden states into features (BERT's transform,
// the pooler), `project` turns features into scores with one matrix product, which a loss may do piece by
// piece.

#include <torch/nn/modules/linear.h>

#include "layers/embedding.h"
#include "layers/norm.h"
#include "models/model.h"

namespace zoo {

class ModelHeadImpl : public torch::nn::Module {
 public:
  /// `token` is the embedding that the output projection is tied to if the configuration says so.
  ModelHeadImpl(const ModelConfig& config, const ModelPurpose& purpose, TokenEmbedding token);
  /// (…, D) → (…, D)
  torch::Tensor prepare(const torch::Tensor& hidden);
  /// (…, D) → (…, V) or (…, C)
  torch::Tensor project(const torch::Tensor& features);
  /// V or C
  int64_t n_outputs() const;

  torch::nn::Linear transform{nullptr};  // masked language modelling: D → D, activation, norm
  Norm norm{nullptr};
  OutputProjection output{nullptr};       // language modelling, masked or not
  torch::nn::Linear pooler{nullptr};      // classification by an encoder: D → D, tanh
  torch::nn::Linear classifier{nullptr};  // D → C

 private:
  Activation activation_;
  double dropout_;
};
TORCH_MODULE(ModelHead);

/// The rows of (B, T, D) where something is predicted: (N, D). `positions` as in Batch; undefined = all of
/// them.
torch::Tensor select_positions(const torch::Tensor& hidden, const torch::Tensor& positions);

}  // namespace zoo
