// Whole small models against transformers and torch.nn: loss, logits and the gradient of every parameter.

#include "analysis/embeddings.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "models/mixers/blocks.h"
#include "models/mixers/window.h"
#include "tasks/token_cross_entropy.h"
#include "tests/parity/reference.h"
#include "tests/support/small_models.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

class ModelParity : public ReferenceTest {
 protected:
  ModelParity() : ReferenceTest("reference_models.py") {}

  void check(const std::string& name, const ModelConfig& config, ModelPurpose purpose = {},
             double label_smoothing = 0.0) {
    SCOPED_TRACE(name);
    purpose.vocab_size = kVocabulary;
    purpose.start_token = kStartToken;
    const auto model = initialized_model(config, purpose);
    model->train();  // every dropout is 0: this must change nothing
    ReferenceCase reference(file(name));
    reference.load(*model);

    const auto given = reference.names("input/");
    const auto input = [&](const std::string& key) {
      const bool there = std::find(given.begin(), given.end(), key) != given.end();
      return there ? reference.input(key) : torch::Tensor();
    };
    const Batch batch{.input = {input("ids"), input("lengths")},
                      .segments = input("segments"),
                      .decoder = {input("decoder_ids"), input("decoder_lengths")},
                      .targets = input("targets"),
                      .positions = input("positions")};
    reference.expect_output("logits", model->logits(model->features(batch)));
    const auto objective =
        std::make_shared<TokenCrossEntropy>(TokenCrossEntropyOptions{.label_smoothing = label_smoothing});
    // Also as the threads of a processor share the rows.
    for (const int64_t n_parts : {1, 2}) {
      model->zero_grad();
      GradientAccumulator gradients(model, objective, {.n_parts = n_parts});
      reference.expect_output("loss", gradients.differentiate({batch}).sum());
    }
    reference.expect_gradients(model.get());
  }
};

TEST_F(ModelParity, Gpt2) { check("gpt2", small_gpt2()); }

// The shape that Llama, Qwen and Gemma share.
ModelConfig llama_like() {
  auto config = small_config(Architecture::decoder, Position::rotary);
  config.d_model = 32;
  config.n_kv_heads = 2;
  config.d_ff = 44;
  config.max_positions = 64;
  config.activation = Activation::swiglu;
  config.norm = NormKind::rms_norm;
  config.bias = false;
  return config;
}

TEST_F(ModelParity, Llama) {
  auto config = llama_like();
  config.tie_embeddings = false;
  config.rotary.theta = 5000;
  config.rotary.scaling = RotaryScaling::llama3;
  config.rotary.factor = 8;
  config.rotary.original_max_positions = 16;
  check("llama", config);
}

TEST_F(ModelParity, LlamaWithFusedProjections) {
  auto config = llama_like();
  config.projection = Projection::fused;
  config.gate = GateProjection::fused;
  check("llama_fused", config);
}

TEST_F(ModelParity, LlamaWithBiases) {
  auto config = llama_like();
  config.qkv_bias = config.out_bias = true;
  check("llama_attention_bias", config);
  config.qkv_bias = config.out_bias = false;
  config.ff_bias = true;
  check("llama_mlp_bias", config);
}

TEST_F(ModelParity, Qwen) {
  auto config = llama_like();
  config.norm_eps = 1e-6;
  config.rotary.theta = 1e6;
  config.qkv_bias = true;
  check("qwen2", config);
  config.qkv_bias = false;
  config.qk_norm = true;
  config.head_dim = 12;
  config.tie_embeddings = false;
  check("qwen3", config);
}

TEST_F(ModelParity, Olmo2HasNormsBehindItsSubLayers) {
  auto config = llama_like();
  config.norm_eps = 1e-6;
  config.rotary.theta = 5000;
  config.tie_embeddings = false;
  config.norm_placement = NormPlacement::residual_post;
  config.qk_norm = true;
  config.qk_norm_width = QkNormWidth::all_heads;
  check("olmo2", config);
}

TEST_F(ModelParity, MixturesOfExperts) {
  auto config = llama_like();
  config.rotary.theta = 1e6;
  config.tie_embeddings = false;
  config.experts = {
      .count = 5, .active = 3, .router = Router::softmax_after_top_k, .normalize = false, .balance = 0};
  check("mixtral", config);

  config.norm_eps = 1e-6;
  config.rotary.theta = 10000;
  config.tie_embeddings = true;
  config.qkv_bias = true;
  config.experts = {.count = 6,
                    .active = 2,
                    .d_ff = 10,
                    .shared_d_ff = 14,
                    .shared_gate = true,
                    .normalize = false,
                    .balance = 0};
  check("qwen2_moe", config);

  config.qkv_bias = false;
  config.qk_norm = true;
  config.head_dim = 12;
  config.experts = {.count = 6, .active = 2, .d_ff = 10, .balance = 0, .every = 2};
  check("qwen3_moe", config);
}

TEST_F(ModelParity, Gemma2HasSandwichNorms) {
  auto config = llama_like();
  config.norm_eps = 1e-6;
  config.norm_unit_offset = true;
  config.norm_placement = NormPlacement::sandwich;
  config.activation = Activation::geglu_tanh;
  config.head_dim = 12;
  config.attention_scale = 1 / std::sqrt(10.0);
  config.scale_embeddings = true;
  check("gemma2", config);
}

TEST_F(ModelParity, Gemma2CapsScoresAndLogits) {
  auto config = llama_like();
  config.norm_eps = 1e-6;
  config.norm_unit_offset = true;
  config.norm_placement = NormPlacement::sandwich;
  config.activation = Activation::geglu_tanh;
  config.head_dim = 12;
  config.attention_scale = 1 / std::sqrt(10.0);
  config.attention_softcap = 1.5;
  config.logits_softcap = 3;
  config.scale_embeddings = true;
  config.attention = {Selection("window", WindowConfig{.size = 3}), Selection("full")};
  check("gemma2_soft_caps", config);
}

TEST_F(ModelParity, MistralHasSlidingWindows) {
  auto config = llama_like();
  config.tie_embeddings = false;
  config.attention = {Selection("window", WindowConfig{.size = 3})};
  check("mistral", config);
}

TEST_F(ModelParity, Gemma3MixesWindowsAndFullAttention) {
  auto config = llama_like();
  config.norm_eps = 1e-6;
  config.norm_unit_offset = true;
  config.norm_placement = NormPlacement::sandwich;
  config.activation = Activation::geglu_tanh;
  config.head_dim = 12;
  config.qk_norm = true;
  config.attention_scale = 1 / std::sqrt(10.0);
  config.scale_embeddings = true;
  config.attention = {Selection("window", WindowConfig{.size = 3}), Selection("full")};
  config.rotary.theta = 5e5;
  config.rotary.local_theta = 1e4;
  config.rotary.scaling = RotaryScaling::linear;
  config.rotary.factor = 4;
  check("gemma3", config);
}

TEST_F(ModelParity, PhiHasParallelSubLayersAndPartialRotary) {
  auto config = llama_like();
  config.n_kv_heads.reset();
  config.norm = NormKind::layer_norm;
  config.norm_placement = NormPlacement::parallel;
  config.activation = Activation::gelu_tanh;
  config.bias = true;
  config.rotary.fraction = 0.5;
  config.tie_embeddings = false;
  config.output_bias = true;
  check("phi", config);
}

TEST_F(ModelParity, MptHasAlibiForThreeHeads) {
  auto config = small_config(Architecture::decoder, Position::alibi);
  config.n_heads = 3;
  config.d_ff = 96;
  config.projection = Projection::fused;
  config.bias = false;
  check("mpt", config);
}

ModelConfig bert() {
  auto config = small_config(Architecture::encoder);
  config.norm_eps = 1e-12;
  config.norm_placement = NormPlacement::post;
  config.embedding_norm = true;
  config.n_segments = 2;
  config.output_bias = true;
  return config;
}

TEST_F(ModelParity, BertMaskedLanguageModel) {
  check("bert_masked", bert(), {.head = HeadKind::masked_language_modeling});
}

TEST_F(ModelParity, LongformerHasWindowsAndGlobalTokens) {
  auto config = bert();
  const auto layer = [](int64_t size, GlobalTokens global, std::vector<int64_t> ids) {
    return Selection(
        "window",
        WindowConfig{
            .size = size, .global = global, .global_ids = std::move(ids), .global_projections = true});
  };
  const ModelPurpose purpose{.head = HeadKind::masked_language_modeling};
  config.attention = {layer(2, GlobalTokens::class_token, {}), layer(3, GlobalTokens::class_token, {})};
  check("longformer", config, purpose);
  config.attention = {layer(2, GlobalTokens::ids, {3, 7}), layer(3, GlobalTokens::ids, {7, 3})};
  check("longformer_ids", config, purpose);
}

TEST_F(ModelParity, BigBirdHasBlocks) {
  auto config = bert();
  config.activation = Activation::gelu_tanh;
  config.attention = {Selection("blocks", BlocksConfig{.size = 2, .n_random = 2})};
  check("big_bird", config, {.head = HeadKind::masked_language_modeling});
}

TEST_F(ModelParity, BertClassifier) {
  check("bert_classifier", bert(), {.head = HeadKind::classification, .n_classes = 5});
}

TEST_F(ModelParity, BertTokenClassifier) {
  check("bert_tokens", bert(), {.head = HeadKind::token_classification, .n_classes = 5});
}

// Segments take part in vectors, maps and gradients.
TEST_F(ModelParity, BertWithoutAHead) {
  const auto model = initialized_model(bert(), {.head = HeadKind::none, .vocab_size = kVocabulary});
  ReferenceCase reference(file("bert_headless"));
  reference.load(*model);
  const Batch batch{.input = {reference.input("ids"), reference.input("lengths")},
                    .segments = reference.input("segments")};
  const auto pooled = model->features(batch);
  reference.expect_output("pooled", pooled);
  reference.expect_output("pooled", model->logits(pooled));
  EXPECT_EQ(model->n_outputs(), kWidth);
  reference.expect_output("hidden", model->hidden_states(batch));
  AttentionMaps maps;
  model->attention_maps(batch, maps);
  ASSERT_EQ(maps.encoder.size(), 2U);
  for (size_t i = 0; i < 2; ++i) reference.expect_output("map_" + std::to_string(i), maps.encoder[i]);
  pooled.square().sum().backward();
  reference.expect_gradients(model.get());
}

TEST_F(ModelParity, DistilBertClassifierHasRelu) {
  auto config = bert();
  config.n_segments = 0;
  config.pooler_activation = PoolerActivation::relu;
  check("distilbert_classifier", config, {.head = HeadKind::classification, .n_classes = 5});
}

TEST_F(ModelParity, BertEmbeddings) {
  const auto model = initialized_model(
      bert(), {.head = HeadKind::classification, .vocab_size = kVocabulary, .n_classes = 5});
  ReferenceCase reference(file("bert_classifier"));
  reference.load(*model);
  const InferenceScope scope(*model);
  const Batch batch{.input = {reference.input("ids"), reference.input("lengths")},
                    .segments = reference.input("segments")};
  for (const auto pooling :
       {EmbeddingPooling::mean, EmbeddingPooling::cls, EmbeddingPooling::last, EmbeddingPooling::pooler})
    reference.expect_output(std::string(name_of(pooling)), pooled_states(*model, batch, {pooling}));
}

TEST_F(ModelParity, OriginalTransformer) {
  auto config = small_config(Architecture::encoder_decoder, Position::sinusoidal);
  config.activation = Activation::relu;
  config.norm_placement = NormPlacement::post;
  config.scale_embeddings = true;
  check("transformer_post", config, {}, /*label_smoothing=*/0.1);
  config.norm_placement = NormPlacement::pre;
  check("transformer_pre", config, {}, /*label_smoothing=*/0.1);
}

TEST_F(ModelParity, T5) {
  auto config = small_config(Architecture::encoder_decoder, Position::t5);
  config.n_decoder_layers = 3;
  config.head_dim = 10;
  config.activation = Activation::relu;
  config.norm = NormKind::rms_norm;
  config.norm_eps = 1e-6;
  config.attention_scale = 1;
  config.bias = false;
  config.output_scale = 1 / std::sqrt(static_cast<double>(config.d_model));
  check("t5_v1_0", config);
  config.activation = Activation::geglu_tanh;
  config.tie_embeddings = false;
  config.output_scale.reset();
  check("t5_v1_1", config);
}

TEST_F(ModelParity, Bart) { check("bart", small_bart()); }

TEST_F(ModelParity, BartClassifier) {
  check("bart_classifier", small_bart(), {.head = HeadKind::classification, .n_classes = 5});
}

TEST_F(ModelParity, BartWithItsWholeTableOfPositions) {
  auto config = small_bart();
  config.position_offset = 2;
  check("bart_offset", config);
}

TEST_F(ModelParity, RobertaHasPositionsFromTwoOn) {
  auto config = bert();
  config.n_segments = 1;
  config.position_offset = 2;
  check("roberta", config, {.head = HeadKind::masked_language_modeling});
}

}  // namespace
}  // namespace zoo::testing
