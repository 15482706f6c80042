// FLOPs as the trainer counts them against PyTorch's FlopCounterMode, on the same shapes.

#include "models/families/model_cost.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr int64_t kBatch = 3, kLength = 20, kSourceLength = 14;

class FlopsParity : public ReferenceTest {
 protected:
  FlopsParity() : ReferenceTest("reference_flops.py") {}

  void check(const std::string& name, const ModelConfig& config, const ModelPurpose& purpose,
             const PassShape& shape) {
    const double counted = 3 * forward_flops(config, purpose, shape);
    const double expected = ReferenceCase(file(name)).output("flops").item<double>();
    EXPECT_NEAR(counted / expected, 1.0, 0.01) << name << ": " << counted << " against " << expected;
  }

  static ModelConfig config(Architecture architecture) {
    ModelConfig c;
    c.architecture = architecture;
    c.d_model = 48;
    c.n_heads = 4;
    c.n_layers = 3;
    c.d_ff = 112;
    c.max_positions = 64;
    return c;
  }
  static ModelPurpose purpose(HeadKind head) {
    return {.head = head, .vocab_size = 97, .n_classes = 5, .start_token = 0};
  }
};

TEST_F(FlopsParity, Decoders) {
  const PassShape shape{.batch_size = kBatch, .length = kLength, .n_targets = kBatch * kLength};
  auto gpt2 = config(Architecture::decoder);
  check("gpt2", gpt2, purpose(HeadKind::language_modeling), shape);
  auto llama = gpt2;
  llama.activation = Activation::swiglu;
  llama.n_kv_heads = 2;
  llama.tie_embeddings = false;
  check("llama", llama, purpose(HeadKind::language_modeling), shape);
}

TEST_F(FlopsParity, Encoders) {
  const auto bert = config(Architecture::encoder);
  auto masks = bert;
  masks.mlm_transform = true;
  check("bert_masks", masks, purpose(HeadKind::masked_language_modeling),
        {.batch_size = kBatch, .length = kLength, .n_targets = kBatch * kLength});
  auto classes = bert;
  classes.pooler = true;
  check("bert_classes", classes, purpose(HeadKind::classification),
        {.batch_size = kBatch, .length = kLength, .n_targets = kBatch});
}

TEST_F(FlopsParity, EncoderDecoders) {
  auto bart = config(Architecture::encoder_decoder);
  bart.n_decoder_layers = 2;
  check("bart", bart, purpose(HeadKind::language_modeling),
        {.batch_size = kBatch,
         .length = kSourceLength,
         .decoder_length = kLength,
         .n_targets = kBatch * kLength});
}

}  // namespace
}  // namespace zoo::testing
