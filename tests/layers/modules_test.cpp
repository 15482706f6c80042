// Properties of norms, feed-forwards, residual connections, layers and embeddings that hold for all weights.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/named_enum.h"
#include "kernels/dropout.h"
#include "layers/feed_forward.h"
#include "layers/residual.h"
#include "layers/transformer_layer.h"
#include "layers/weights/embedding.h"
#include "layers/weights/norm.h"

namespace zoo {
namespace {

constexpr int64_t kModuleWidth = 12;

int64_t count(const torch::nn::Module& module) {
  int64_t n = 0;
  for (const auto& parameter : module.parameters()) n += parameter.numel();
  return n;
}

constexpr auto kNorms = {NormKind::layer_norm, NormKind::layer_norm_annotated, NormKind::rms_norm,
                         NormKind::rms_norm_outside};
constexpr auto kPlacements = {NormPlacement::pre, NormPlacement::post, NormPlacement::residual_post,
                              NormPlacement::sandwich, NormPlacement::parallel};

TEST(Norm, FreshOnesBringEveryKindToUnitSize) {
  torch::manual_seed(1);
  const auto x = torch::randn({4, 7, 64}) * 5 + 3;
  for (const auto kind : kNorms) {
    for (const bool unit_offset : {false, true}) {
      const bool centred = kind == NormKind::layer_norm || kind == NormKind::layer_norm_annotated;
      Norm norm(NormOptions(64).kind(kind).unit_offset(unit_offset));
      const auto y = norm(x);
      EXPECT_TRUE(torch::allclose(y.square().mean(-1), torch::ones({4, 7}), 0, 0.02));
      EXPECT_EQ(y.mean(-1).abs().max().item<double>() < 1e-5, centred);
      EXPECT_EQ(count(*norm), centred ? 128 : 64);
    }
  }
}

TEST(Norm, OfAConstantVectorIsFinite) {
  for (const auto kind : kNorms) {
    auto x = torch::zeros({2, kModuleWidth}).requires_grad_(true);
    Norm norm{NormOptions(kModuleWidth).kind(kind)};
    const auto y = norm(x);
    EXPECT_EQ(y.abs().max().item<float>(), 0);
    y.sum().backward();
    EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
  }
}

TEST(FeedForward, CountsParameters) {
  const auto parameters = [](Activation activation, GateProjection gate, bool bias) {
    return count(
        *FeedForward(FeedForwardOptions(kModuleWidth, 20).activation(activation).gate(gate).bias(bias)));
  };
  for (const auto gate : {GateProjection::separate, GateProjection::fused}) {
    EXPECT_EQ(parameters(Activation::relu, gate, false), 2 * kModuleWidth * 20);
    EXPECT_EQ(parameters(Activation::relu, gate, true), 2 * kModuleWidth * 20 + 20 + kModuleWidth);
    EXPECT_EQ(parameters(Activation::swiglu, gate, false), 3 * kModuleWidth * 20);
    EXPECT_EQ(parameters(Activation::swiglu, gate, true), 3 * kModuleWidth * 20 + 2 * 20 + kModuleWidth);
  }
}

TEST(FeedForward, WorksOnEachPositionAlone) {
  torch::manual_seed(2);
  const auto x = torch::randn({2, 5, kModuleWidth});
  for (const auto activation : {Activation::gelu, Activation::swiglu}) {
    FeedForward module(FeedForwardOptions(kModuleWidth, 20).activation(activation));
    EXPECT_TRUE(torch::allclose(module(x).select(1, 3), module(x.narrow(1, 3, 1)).squeeze(1), 1e-5, 1e-6));
  }
}

TEST(FeedForward, DropsOnlyInTraining) {
  torch::manual_seed(3);
  FeedForward module(FeedForwardOptions(kModuleWidth, 20).dropout(0.5));
  const auto x = torch::randn({2, 5, kModuleWidth});
  EXPECT_FALSE(torch::equal(module(x), module(x)));
  module->eval();
  EXPECT_TRUE(torch::equal(module(x), module->down(torch::relu(module->up(x)))));
}

TEST(Residual, HasTheNormsOfItsPlacement) {
  const auto names = [](NormPlacement placement) {
    Residual residual(
        ResidualOptions(NormOptions(kModuleWidth).bias(false), {"f", "g"}).placement(placement));
    std::vector<std::string> result;
    for (const auto& item : residual->named_parameters()) result.push_back(item.key());
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(NormPlacement::pre), (Names{"f_norm.weight", "g_norm.weight"}));
  EXPECT_EQ(names(NormPlacement::post), (Names{"f_norm.weight", "g_norm.weight"}));
  EXPECT_EQ(names(NormPlacement::residual_post), (Names{"f_output_norm.weight", "g_output_norm.weight"}));
  EXPECT_EQ(names(NormPlacement::sandwich),
            (Names{"f_norm.weight", "f_output_norm.weight", "g_norm.weight", "g_output_norm.weight"}));
  EXPECT_EQ(names(NormPlacement::parallel), (Names{"norm.weight"}));
}

TEST(Residual, DropsSubLayerOutputsOnlyInTraining) {
  torch::manual_seed(4);
  for (const auto placement : kPlacements) {
    const auto options = ResidualOptions(NormOptions(kModuleWidth), {"f"}).placement(placement);
    for (const auto& dropping :
         {ResidualOptions(options).dropout(0.5), ResidualOptions(options).stochastic_depth(0.5)}) {
      Residual residual(dropping);
      const auto x = torch::randn({20, 5, kModuleWidth});
      const auto f = [](const torch::Tensor& h) { return torch::sin(h); };
      EXPECT_FALSE(torch::equal(residual(x, {f}), residual(x, {f})));
      residual->eval();
      EXPECT_TRUE(torch::equal(residual(x, {f}), residual(x, {f})));
      EXPECT_EQ(residual(x, {f}).sizes(), x.sizes());
    }
  }
}

/// LayerNorm that counts how often it also computes the sum that it reads.
class CountingNorm final : public NormFormula {
 public:
  std::string_view name() const override { return "counting"; }
  bool is_centred() const override { return true; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    return torch::layer_norm(x, weights.gain.sizes(), weights.gain, weights.bias, eps);
  }
  NormedSum of_sum(const PendingSum& pending, const NormWeights& weights, double eps,
                   NormReader reader) const override {
    ++n_sums;
    return NormFormula::of_sum(pending, weights, eps, reader);
  }
  mutable int n_sums = 0;
};

// The sum of a sub-layer is left to the norm that reads it.
TEST(Residual, NormsComputeTheSumsThatTheyRead) {
  torch::manual_seed(8);
  const auto x = torch::randn({2, 5, kModuleWidth});
  const auto f = [](const torch::Tensor& h) { return torch::sin(h); };
  const auto g = [](const torch::Tensor& h) { return torch::cos(h); };
  for (const auto placement : {NormPlacement::pre, NormPlacement::sandwich, NormPlacement::residual_post}) {
    const auto formula = std::make_shared<CountingNorm>();
    Residual residual(ResidualOptions(NormOptions(kModuleWidth).formula(formula), {"f", "g", "h"})
                          .placement(placement)
                          .dropout(0.5));
    const bool reads_norms = placement != NormPlacement::residual_post;
    residual(x, {f, g, f});
    EXPECT_EQ(formula->n_sums, reads_norms ? 2 : 0) << "with dropout";
    residual->eval();
    const auto found = residual(x, {f, g, f});
    EXPECT_EQ(formula->n_sums, reads_norms ? 4 : 0);
    auto wanted = x;
    const std::vector<ResidualImpl::SubLayer> sub_layers = {f, g, f};
    for (size_t i = 0; i < sub_layers.size(); ++i) {
      auto y = sub_layers[i](reads_norms ? residual->norms_in[i](wanted) : wanted);
      if (placement != NormPlacement::pre) y = residual->norms_out[i](y);
      wanted = wanted + y;
    }
    EXPECT_TRUE(torch::equal(found, wanted));
  }
}

TEST(Residual, ASumThatWaitsHasTheTypeOfItsValue) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto x = torch::randn({1, 2, 3}).to(torch::kBFloat16), y = torch::randn({1, 2, 3}).to(type);
    ResidualSum sum(PendingSum{.x = x, .y = y, .p = 0});
    const auto promised = sum.type();
    EXPECT_EQ(promised, type);
    EXPECT_EQ(sum.value().scalar_type(), promised);
  }
}

// Each sum draws its random numbers before the next sub-layer draws its own.
TEST(Residual, ParallelSumsDrawTheirNumbersInTurn) {
  const torch::NoGradGuard no_grad;
  const auto f = [](const torch::Tensor& h) { return dropout(torch::sin(h), 0.25); };
  const auto g = [](const torch::Tensor& h) { return dropout(torch::cos(h), 0.25); };
  Residual residual(
      ResidualOptions(NormOptions(kModuleWidth), {"f", "g"}).placement(NormPlacement::parallel).dropout(0.5));
  const auto x = torch::randn({2, 5, kModuleWidth});
  torch::manual_seed(9);
  const auto found = residual->forward(x, {f, g});
  torch::manual_seed(9);
  const auto read = Norm(NormOptions(kModuleWidth))->for_products(x);
  const auto with_f = add_dropout(x, f(read), 0.5);
  EXPECT_TRUE(torch::equal(found, add_dropout(with_f, g(read), 0.5)));
}

// The last sum of one residual connection is left to the first norm of the next one. Random numbers are drawn
// in the same order as if each sum were computed at once.
TEST(Residual, TheLastSumIsLeftToTheNextReader) {
  const auto f = [](const torch::Tensor& h) { return dropout(torch::sin(h), 0.25); };
  const auto g = [](const torch::Tensor& h) { return dropout(torch::cos(h), 0.25); };
  std::vector<NormPlacement> placements = kPlacements;
  placements.push_back(NormPlacement::parallel_norms);
  for (const auto placement : placements) {
    SCOPED_TRACE(name_of(placement));
    torch::manual_seed(8);
    const auto x = torch::randn({2, 5, kModuleWidth});
    const auto formula = std::make_shared<CountingNorm>();
    const auto options = ResidualOptions(NormOptions(kModuleWidth).formula(formula), {"f", "g"})
                             .placement(placement)
                             .dropout(0.5);
    Residual first(options), second(options);
    Norm last(options.norm());
    const auto run = [&](const auto& computed) {
      torch::manual_seed(9);
      const auto leaf = x.detach().requires_grad_();
      auto y = computed(second->advance(computed(first->advance(ResidualSum(leaf), {f, g})), {f, g}));
      const auto normed = y.normed_by(last, NormReader::any);
      (normed * normed * y.value()).sum().backward();
      return std::vector{normed, y.value(), leaf.grad()};
    };
    const auto wanted = run([](ResidualSum y) { return ResidualSum(y.value()); });
    const int n_within = std::exchange(formula->n_sums, 0);
    const auto found = run([](ResidualSum y) { return y; });
    const bool waits = placement != NormPlacement::post;
    EXPECT_EQ(formula->n_sums, n_within + (placement == NormPlacement::residual_post ? 1 : waits ? 2 : 0));
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(torch::equal(found[i], wanted[i])) << i;
  }
}

TEST(Residual, WantsAsManyFunctionsAsNames) {
  Residual residual(ResidualOptions(NormOptions(kModuleWidth), {"f", "g"}));
  const auto f = [](const torch::Tensor& h) { return h; };
  EXPECT_THROW(residual(torch::zeros({1, 1, kModuleWidth}), {f}), c10::Error);
}

TEST(TransformerLayer, KeepsShapesInEveryPlacementAndGivesGradientsToEveryParameter) {
  torch::manual_seed(5);
  for (const auto placement : kPlacements) {
    for (const bool cross : {false, true}) {
      auto options = TransformerLayerOptions(AttentionOptions(kModuleWidth, 3),
                                             FeedForwardOptions(kModuleWidth, 20), NormOptions(kModuleWidth))
                         .norm_placement(placement);
      if (cross) options.cross_attention(AttentionOptions(kModuleWidth, 3));
      TransformerLayer layer(options);
      LayerContext context;
      if (cross) context.cross.memory = torch::randn({2, 4, kModuleWidth});
      const auto y = layer(torch::randn({2, 5, kModuleWidth}), context);
      EXPECT_EQ(y.sizes(), (torch::IntArrayRef{2, 5, kModuleWidth}));
      y.square().mul(torch::rand_like(y)).sum().backward();
      for (const auto& item : layer->named_parameters()) {
        ASSERT_TRUE(item.value().grad().defined()) << item.key();
        EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
      }
    }
  }
}

TEST(Embedding, TyingSavesOneTable) {
  torch::manual_seed(6);
  TokenEmbedding embedding(TokenEmbeddingOptions(50, kModuleWidth));
  const auto options = OutputProjectionOptions(kModuleWidth, 50);
  OutputProjection separate(options), tied(options, embedding);
  EXPECT_EQ(count(*separate) - count(*tied), 50 * kModuleWidth);
  EXPECT_EQ(count(*tied), 0);
  const auto hidden = torch::randn({2, 3, kModuleWidth});
  EXPECT_TRUE(torch::equal(tied(hidden), hidden.matmul(embedding->matrix().parameter().t())));
  tied(hidden).sum().backward();
  EXPECT_TRUE(embedding->matrix().parameter().grad().defined());
}

TEST(Embedding, ScalesItsVectors) {
  TokenEmbedding embedding(TokenEmbeddingOptions(50, 16).scale(4.0));
  EXPECT_TRUE(
      torch::equal(embedding(torch::tensor({{7}})).view({16}), embedding->matrix().parameter()[7] * 4));
}

TEST(Embedding, LogProbabilitiesSumToOneInFloat) {
  const auto p = log_probabilities(torch::randn({3, 50}).to(torch::kBFloat16));
  EXPECT_EQ(p.scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::allclose(p.exp().sum(-1), torch::ones({3}), 0, 1e-5));
}

}  // namespace
}  // namespace zoo
