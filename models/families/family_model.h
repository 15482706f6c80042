#pragma once
// What the library's model families share. A program's family may derive from these classes, too.

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "models/embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

/// A model that ends in a ModelHead. Printed, it shows the main keys of its configuration.
class FamilyModel : public Model {
 public:
  FamilyModel(const ModelConfig& config, const ModelPurpose& purpose) : config_(config), purpose_(purpose) {}

  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  void pretty_print(std::ostream& stream) const override;
  auto arguments() const { return std::tie(config_, purpose_); }

 protected:
  /// The class's own name: "DecoderModel".
  std::string type_name() const;

  ModelConfig config_;
  ModelPurpose purpose_;
  ModelHead head_{nullptr};  // a derived class registers it
};

/// A model with an encoder over what an embedder makes of a batch.
class EncodingModel : public FamilyModel {
 public:
  using FamilyModel::FamilyModel;

  torch::Tensor hidden_states(const Batch& batch) override { return encode(batch).vectors; }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override { encode(batch, &maps.encoder); }
  bool mixes_rows() const override { return embedder_->mixes_rows(); }

 protected:
  /// Registers the embedder, under `name`, and the encoder.
  void make_encoder(const std::string& name, std::shared_ptr<EmbedderImpl> embedder);
  /// What the embedder returns, with the encoder's output in place of its vectors. Weights of attention are
  /// appended to `maps`.
  Embedded encode(const Batch& batch, std::vector<torch::Tensor>* maps = nullptr);

  std::shared_ptr<EmbedderImpl> embedder_;
  Stack encoder_{nullptr};
};

/// Hides the padding of an embedder's vectors as keys.
Mask padding_mask(const Embedded& embedded);

/// The modules of a decoder that writes.
struct DecoderModules {
  TokenEmbedder embedder;
  Stack stack;
  ModelHead head;
};
/// Reads `tokens` into `state`, as GenerativeModel::forward().
torch::Tensor read_tokens(DecoderModules modules, const TokenBatch& tokens, DecodingState& state,
                          const LogitsAt& at);

/// Adds the cost of an encoder with the path "encoder" for `batch_size` rows of `n_vectors`.
void count_encoder(CostAccount& account, const ModelConfig& config, int64_t batch_size, int64_t n_vectors);
/// The shape of the images in the field kImages, or `usual` without that field.
ImageShape image_shape(const PassShape& shape, const ImageShape& usual);

}  // namespace zoo
