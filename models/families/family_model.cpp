#include "models/families/family_model.h"

#include <utility>

#include <torch/types.h>

#include "layers/weights/description.h"

namespace zoo {

std::string FamilyModel::type_name() const {
  const auto& scoped = name();
  return scoped.substr(scoped.rfind(':') + 1);
}

void FamilyModel::pretty_print(std::ostream& stream) const {
  Description description(type_name());
  description.add("head", purpose_.head).add("d_model", config_.d_model).add("n_layers", config_.n_layers);
  if (model_families().at(config_.architecture).has_memory)
    description.add("n_decoder_layers", config_.decoder_layers());
  stream << description.add("n_heads", config_.n_heads)
                .add("n_kv_heads", config_.kv_heads())
                .add("d_ff", config_.feed_forward_width())
                .add("position", config_.position.type)
                .add("tie_embeddings", config_.tie_embeddings)
                .add("dropout", config_.dropout);
}

void EncodingModel::make_encoder(const std::string& name, std::shared_ptr<EmbedderImpl> embedder) {
  embedder_ = register_module(name, std::move(embedder));
  encoder_ = register_module("encoder", Stack(config_, StackRole::encoder));
}

Embedded EncodingModel::encode(const Batch& batch, std::vector<torch::Tensor>* maps) {
  auto embedded = embedder_->forward(batch);
  embedded.vectors = encoder_({.x = embedded.vectors,
                               .mask = padding_mask(embedded),
                               .ids = embedded.ids,
                               .layer_positions = embedded.layer_positions,
                               .self_maps = maps});
  return embedded;
}

void count_encoder(CostAccount& account, const ModelConfig& config, int64_t batch_size, int64_t n_vectors) {
  count_stack(account, "encoder", config, StackRole::encoder,
              {.batch_size = batch_size, .n_queries = n_vectors, .n_keys = n_vectors});
}

Mask padding_mask(const Embedded& embedded) {
  return embedded.visible.defined() ? Mask::keep(embedded.visible.unsqueeze(1).unsqueeze(1))
                                    : Mask::lengths(embedded.lengths);
}

torch::Tensor read_tokens(DecoderModules modules, const TokenBatch& tokens, DecodingState& state,
                          const LogitsAt& at) {
  const auto range = state.read(tokens);
  const auto hidden = modules.stack({.x = modules.embedder({.ids = tokens.ids, .range = range}),
                                     .mask = Mask::causal(),
                                     .state = &state,
                                     .range = range});
  return modules.head->project(modules.head->prepare(at.select(hidden, range)));
}

ImageShape image_shape(const PassShape& shape, const ImageShape& usual) {
  const auto sizes = shape.sizes_of(fields::kImages);
  if (sizes.empty()) return usual;
  return {.channels = sizes[1], .height = sizes[2], .width = sizes[3]};
}

}  // namespace zoo
