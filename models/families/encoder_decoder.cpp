// The encoder-decoder family: the original Transformer (Vaswani et al. 2017), T5 (Raffel et al. 2020), BART
// (Lewis et al. 2020) and Marian shapes.

#include "models/families/two_sided_model.h"

namespace zoo {
namespace {

class EncoderDecoderModel final : public Cloneable<EncoderDecoderModel, TwoSidedModel> {
 public:
  EncoderDecoderModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    auto source = token_embedding_;
    if (!config.share_embeddings)
      source = register_module("source_token_embedding", make_token_embedding(config, purpose.vocab_size));
    make_sides(TokenEmbedder(config, source).ptr());
  }
};

void count_encoder_decoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                           const PassShape& shape) {
  // Without a text of its own the decoder reads the source, see TwoSidedModel.
  const int64_t decoder_length = shape.decoder_length > 0 ? shape.decoder_length : shape.length;
  const auto n_source = static_cast<double>(shape.batch_size * shape.length),
             n_target = static_cast<double>(shape.batch_size * decoder_length);
  if (config.share_embeddings) {
    count_token_table(account, "token_embedding", config, purpose.vocab_size, n_source + n_target,
                      /*n_sides=*/2);
  } else {
    count_token_table(account, "token_embedding", config, purpose.vocab_size, n_target);
    count_token_table(account, "source_token_embedding", config, purpose.vocab_size, n_source);
  }
  count_token_embedder(account, "encoder_embedder", config, n_source);
  count_sides(account, config, purpose,
              {.batch_size = shape.batch_size,
               .n_source = shape.length,
               .n_target = decoder_length,
               .n_targets = shape.n_targets});
}

}  // namespace

ModelFamily encoder_decoder_family() {
  ModelFamily family;
  family.name = name_of(Architecture::encoder_decoder);
  family.doc = "The original Transformer, T5 and similar models: reads one sequence and writes another.";
  family.shape = FamilyShape::encoder_decoder;
  family.has_memory = true;
  family.heads = {HeadKind::language_modeling, HeadKind::classification, HeadKind::regression,
                  HeadKind::none};
  family.make = makes<EncoderDecoderModel>();
  family.count = count_encoder_decoder;
  return family;
}

}  // namespace zoo
