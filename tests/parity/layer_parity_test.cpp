// Norms, feed-forwards, residual connections, whole layers and embeddings against PyTorch and transformers.

#include "layers/feed_forward.h"
#include "layers/residual.h"
#include "layers/transformer_layer.h"
#include "layers/weights/embedding.h"
#include "layers/weights/norm.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr int64_t kModel = 12, kInner = 20;

class LayerParity : public ReferenceTest {
 protected:
  LayerParity() : ReferenceTest("reference_layers.py") {}

  template <class Module>
  void check(const std::string& name, Module module) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    reference.load(*module);
    const auto y = module(reference.input("x"));
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients(module.get());
  }
};

TEST_F(LayerParity, Norms) {
  const NormOptions base(kModel);
  const auto rms = NormOptions(base).kind(NormKind::rms_norm);
  check("layer_norm", Norm(NormOptions(base).eps(1e-3)));
  check("layer_norm_no_bias", Norm(NormOptions(base).bias(false)));
  check("layer_norm_annotated", Norm(NormOptions(base).kind(NormKind::layer_norm_annotated).eps(1e-2)));
  check("rms_norm_llama", Norm(NormOptions(rms).eps(1e-3)));
  check("rms_norm_t5", Norm(NormOptions(rms).eps(1e-6)));
  check("rms_norm_gemma", Norm(NormOptions(rms).eps(1e-3).unit_offset(true)));
  check("rms_norm_outside", Norm(NormOptions(base).kind(NormKind::rms_norm_outside).eps(1e-2)));
}

TEST_F(LayerParity, PlainFeedForwards) {
  const std::vector<std::pair<std::string, Activation>> activations{{"relu", Activation::relu},
                                                                    {"gelu", Activation::gelu},
                                                                    {"gelu_tanh", Activation::gelu_tanh},
                                                                    {"silu", Activation::silu},
                                                                    {"quick_gelu", Activation::quick_gelu}};
  for (const auto& [name, activation] : activations) {
    check("feed_forward_" + name, FeedForward(FeedForwardOptions(kModel, kInner).activation(activation)));
  }
}

TEST_F(LayerParity, GatedFeedForwardsSeparateAndFused) {
  struct Gated {
    std::string name;
    Activation activation;
    bool bias;
  };
  for (const auto& [name, activation, bias] : {Gated{"swiglu", Activation::swiglu, true},
                                               {"geglu", Activation::geglu, true},
                                               {"geglu_tanh", Activation::geglu_tanh, false},
                                               {"reglu", Activation::reglu, true}}) {
    const auto options = FeedForwardOptions(kModel, kInner).activation(activation).bias(bias);
    check("feed_forward_" + name, FeedForward(options));
    check("feed_forward_" + name + "_fused",
          FeedForward(FeedForwardOptions(options).gate(GateProjection::fused)));
  }
}

TEST_F(LayerParity, ResidualPlacements) {
  const std::vector<std::pair<std::string, NormPlacement>> placements{
      {"pre", NormPlacement::pre},
      {"post", NormPlacement::post},
      {"residual_post", NormPlacement::residual_post},
      {"sandwich", NormPlacement::sandwich},
      {"parallel", NormPlacement::parallel},
      {"parallel_norms", NormPlacement::parallel_norms}};
  for (const auto& [name, placement] : placements) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file("residual_" + name));
    Residual residual(ResidualOptions(NormOptions(kModel), {"f", "g"}).placement(placement));
    reference.load(*residual);
    const auto w1 = reference.input("w1"), w2 = reference.input("w2");
    const auto f = [&](const torch::Tensor& h) { return torch::tanh(h.matmul(w1)); };
    const auto g = [&](const torch::Tensor& h) { return torch::relu(h.matmul(w2)); };
    const auto y = residual(reference.input("x"), {f, g});
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients(residual.get());
  }
}

TEST_F(LayerParity, EncoderAndDecoderLayers) {
  for (const auto& [name, placement] :
       {std::pair{std::string("post"), NormPlacement::post}, {std::string("pre"), NormPlacement::pre}}) {
    const auto options = [&](Activation activation) {
      return TransformerLayerOptions(AttentionOptions(kModel, 3),
                                     FeedForwardOptions(kModel, kInner).activation(activation),
                                     NormOptions(kModel))
          .norm_placement(placement);
    };
    check("encoder_layer_" + name, TransformerLayer(options(Activation::gelu)));

    SCOPED_TRACE(name);
    ReferenceCase reference(file("decoder_layer_" + name));
    TransformerLayer layer(options(Activation::relu).cross_attention(AttentionOptions(kModel, 3)));
    reference.load(*layer);
    const auto y = layer(reference.input("x"), {.self = {.mask = Mask::causal()},
                                                .cross = {.mask = Mask::lengths(reference.input("lengths")),
                                                          .memory = reference.input("memory")}});
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients(layer.get());
  }
}

class Embeddings : public torch::nn::Module {
 public:
  Embeddings(int64_t vocab_size, bool tied) {
    embedding = register_module(
        "embedding",
        TokenEmbedding(TokenEmbeddingOptions(vocab_size, kModel).scale(std::sqrt(double{kModel}))));
    const auto options =
        OutputProjectionOptions(kModel, vocab_size).bias(true).scale(1 / std::sqrt(double{kModel}));
    output =
        register_module("output", tied ? OutputProjection(options, embedding) : OutputProjection(options));
  }
  TokenEmbedding embedding{nullptr};
  OutputProjection output{nullptr};
};

TEST_F(LayerParity, EmbeddingsScaledAndTied) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    ReferenceCase reference(file(tied ? "embedding_tied" : "embedding_separate"));
    Embeddings module(11, tied);
    reference.load(module);
    const auto vectors = module.embedding(reference.input("ids"));
    reference.expect_output("vectors", vectors);
    const auto log_p = log_probabilities(module.output(torch::tanh(vectors)));
    reference.expect_output("log_probabilities", log_p);
    reference.backward({{"log_probabilities", log_p}});
    reference.expect_gradients(&module);
  }
}

}  // namespace
}  // namespace zoo::testing
