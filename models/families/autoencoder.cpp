// Texts through one vector, as MAD's task of compression has it (Poli et al. 2024): causal layers read a
// text, and the vector of its last token alone says all tokens. At each place, maps without any look at other
// places read the sum of this vector and a sinusoidal position.

#include "models/families/autoencoder.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>

#include "layers/attention/added_positions.h"
#include "models/families/family_model.h"

namespace zoo {
namespace {

int64_t n_maps(const ModelConfig& config) { return config.architecture.as<AutoencoderConfig>().maps; }

LinearOptions map_options(const ModelConfig& config) { return {config.d_model, config.d_model}; }

class AutoencoderModel final : public Cloneable<AutoencoderModel, FamilyModel> {
 public:
  AutoencoderModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
    embedder_ = register_module("decoder_embedder", TokenEmbedder(config, token_embedding_));
    reader_ = register_module("decoder", Stack(config, StackRole::decoder));
    norms_ = register_module("norms", torch::nn::ModuleList());
    maps_ = register_module("maps", torch::nn::ModuleList());
    for (int64_t i = 0; i < n_maps(config); ++i) {
      norms_->push_back(Norm(norm_options(config, config.d_model)));
      maps_->push_back(Linear(map_options(config)));
    }
    final_norm_ = register_module("final_norm", Norm(norm_options(config, config.d_model)));
    positions_ = register_module(
        "positions", std::make_shared<SinusoidalPositionsImpl>(
                         SinusoidalPositionsOptions(config.d_model).layout(SinusoidLayout::half)));
    head_ = register_module("head", ModelHead(config, purpose, token_embedding_));
  }

  torch::Tensor features(const Batch& batch) override {
    return head_->prepare_at(hidden_states(batch), batch.positions);
  }
  /// (B, T, D): what the maps say.
  torch::Tensor hidden_states(const Batch& batch) override {
    const auto embedded = embedder_->forward(batch);
    const auto read = reader_({.x = embedded.vectors, .mask = Mask::causal()});
    const auto last = last_of_rows(read, embedded.lengths).unsqueeze(1);  // (B, 1, D)
    const auto places =
        positions_->forward(PositionRange(0, read.size(1)), read.device()).to(read.scalar_type());
    auto x = last + places;
    for (size_t i = 0; i < maps_->size(); ++i)
      x = torch::gelu(maps_->at<LinearImpl>(i).forward(norms_->at<NormImpl>(i).forward(x)));
    return final_norm_(x);
  }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override {
    const auto embedded = embedder_->forward(batch);
    reader_({.x = embedded.vectors,
             .mask = Mask::causal() & Mask::lengths(embedded.lengths),
             .self_maps = &maps.decoder});
  }

 private:
  TokenEmbedding token_embedding_{nullptr};
  TokenEmbedder embedder_{nullptr};
  Stack reader_{nullptr};
  torch::nn::ModuleList norms_{nullptr}, maps_{nullptr};
  Norm final_norm_{nullptr};
  std::shared_ptr<SinusoidalPositionsImpl> positions_;
};

void count_autoencoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                       const PassShape& shape) {
  const auto n_tokens = static_cast<double>(shape.batch_size * shape.length);
  count_token_table(account, "token_embedding", config, purpose.vocab_size, n_tokens);
  count_token_embedder(account, "decoder_embedder", config, n_tokens);
  count_stack(account, "decoder", config, StackRole::decoder,
              {.batch_size = shape.batch_size, .n_queries = shape.length, .n_keys = shape.length});
  for (int64_t i = 0; i < n_maps(config); ++i) {
    count_norms(account, fmt::format("norms.{}", i), norm_options(config, config.d_model), 1, n_tokens);
    count_linear(account, fmt::format("maps.{}", i), "maps", map_options(config), n_tokens);
  }
  count_norms(account, "final_norm", norm_options(config, config.d_model), 1, n_tokens);
  count_head(account, config, purpose, Pooling::none, static_cast<double>(shape.n_targets));
}

}  // namespace

void describe(ConfigVisitor& v, AutoencoderConfig& c) {
  constexpr double most = 100;
  v.field(
      "maps", c.maps,
      "Maps (norm, linear, GELU) that turn the vector of the last token and a place into what stands there.",
      Limits::between(1, most));
}

ModelFamily autoencoder_family() {
  ModelFamily family;
  family.name = "autoencoder";
  family.doc = "A decoder whose last vector alone says the label of every token: a text through one vector.";
  family.make_options = options_of<AutoencoderConfig>();
  family.shape = FamilyShape::decoder;
  family.heads = {HeadKind::token_classification};
  family.make = makes<AutoencoderModel>();
  family.count = count_autoencoder;
  return family;
}

}  // namespace zoo
