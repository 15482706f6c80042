#pragma once
// The output heads of models. A head has two halves. `prepare` turns hidden states into features (BERT's
// transform, the pooler). `project` turns features into scores with one matrix product; a loss may project
// features in chunks.

#include <string_view>

#include "layers/weights/embedding.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"
#include "models/model.h"

namespace zoo {

/// Whether a head has a pooler: dense and an activation on the class token (BERT), or on the vector that a
/// classifier reads.
enum class Pooling { none, pooler };

/// What a head with scores of classes, or with numbers, reads of each row: a vector; two vectors side by side
/// as one of twice the width (DINOv2: Oquab et al. 2023); or two vectors with a classifier each, whose scores
/// are averaged (the joint classifiers of DeiT: Touvron et al. 2021, section 4).
enum class ClassifierInput { vector, joined_pair, separate_pair };

class ModelHeadImpl : public Cloneable<ModelHeadImpl> {
 public:
  /// `token` is the embedding whose matrix a tied output projection uses. It may be null if the head does not
  /// predict tokens.
  ModelHeadImpl(const ModelConfig& config, const ModelPurpose& purpose, const TokenEmbedding& token,
                Pooling pooling = Pooling::none, ClassifierInput input = ClassifierInput::vector);
  /// (…, D) → (…, D); a pair, (…, 2D), stays one. Dropout counts rows of the batch by the first dimension.
  torch::Tensor prepare(const torch::Tensor& hidden);
  /// The features of hidden (B, T, D) at `positions`, as select_positions(): (N, D). Dropout draws the same
  /// for a row, however many positions other rows have.
  torch::Tensor prepare_at(const torch::Tensor& hidden, const torch::Tensor& positions);
  /// (…, D) → (…, V) or (…, C); a pair: (…, 2D) → (…, C); the features themselves without a head
  torch::Tensor project(const torch::Tensor& features);
  /// V or C; D without a head
  int64_t n_outputs() const;
  auto arguments() const { return std::tie(config_, purpose_, token_, pooling_, input_); }
  void pretty_print(std::ostream& stream) const override;

  Linear transform{
      nullptr};  // masked language modelling: D → E, activation, norm; otherwise E differs: D → E
  Norm norm{nullptr};
  OutputProjection output{nullptr};  // language modelling, masked or not
  Linear pooler{nullptr};            // D → D, model.pooler_activation
  Norm pooler_norm{nullptr};
  Linear classifier{nullptr};               // classification, of tokens too, and regression: D → C, or 2D → C
  Linear distillation_classifier{nullptr};  // D → C, of the second vector of a separate pair

 private:
  ModelConfig config_;
  ModelPurpose purpose_;
  std::shared_ptr<TokenEmbeddingImpl> token_;  // not registered here: the model owns it; may be null
  Pooling pooling_;
  ClassifierInput input_;
};
TORCH_MODULE(ModelHead);

/// Whether a parameter of a model belongs to the last layer of a classifier (ModelHead::classifier).
bool is_of_classifier(std::string_view parameter);

/// Adds the cost of a head with path "head" for `n_targets` predictions.
void count_head(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose, Pooling pooling,
                double n_targets, ClassifierInput input = ClassifierInput::vector);

/// The vectors of (B, T, D) at `positions`: (N, D). `positions` as in Batch; undefined = all.
torch::Tensor select_positions(const torch::Tensor& hidden, const torch::Tensor& positions);

/// The vector of (B, T, D) at each row's last token: (B, D). `lengths`: (B) int64; undefined = all T.
torch::Tensor last_of_rows(const torch::Tensor& hidden, const torch::Tensor& lengths);

}  // namespace zoo
