#include "models/families/model_description.h"

#include "models/families/families.h"

namespace zoo {

Description describe_model(std::string_view type, const ModelConfig& config, const ModelPurpose& purpose) {
  Description description(type);
  description.add("head", purpose.head).add("d_model", config.d_model).add("n_layers", config.n_layers);
  if (model_families().at(config.architecture).has_memory)
    description.add("n_decoder_layers", config.decoder_layers());
  return description.add("n_heads", config.n_heads)
      .add("n_kv_heads", config.kv_heads())
      .add("d_ff", config.feed_forward_width())
      .add("position", config.position)
      .add("tie_embeddings", config.tie_embeddings)
      .add("dropout", config.dropout);
}

}  // namespace zoo
