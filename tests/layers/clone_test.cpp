// Clones and printed lines of every kind of layer.

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/kinds/shaw_attention.h"
#include "layers/attention/position_bias.h"
#include "layers/found_positions.h"
#include "layers/transformer_layer.h"
#include "layers/weights/embedding.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kModelWidth = 12, kRowsOfTable = 9;

/// A module, what it computes, and a part of its printed line.
struct Sample {
  std::shared_ptr<Module> module;
  std::function<torch::Tensor(torch::nn::Module& module)> run;
  std::string printed;
};

/// A sample of the holder's type; `run` takes the holder.
template <class Holder, class Run>
Sample sample(const Holder& holder, Run run, std::string printed) {
  return {
      holder.ptr(),
      [run](torch::nn::Module& module) {
        Holder again(std::dynamic_pointer_cast<typename Holder::ContainedType>(module.shared_from_this()));
        return run(again);
      },
      std::move(printed)};
}

TransformerLayerOptions layer_with_memory() {
  return TransformerLayerOptions(AttentionOptions(kModelWidth, 3), FeedForwardOptions(kModelWidth, 20),
                                 NormOptions(kModelWidth))
      .norm_placement(NormPlacement::sandwich)
      .cross_attention(AttentionOptions(kModelWidth, 3).projection(Projection::fused));
}

std::vector<Sample> samples() {
  const auto x = torch::randn({2, 5, kModelWidth}), heads = torch::randn({2, 3, 5, 4});
  const auto ids = torch::randint(kRowsOfTable, {2, 5});
  const auto on_x = [x](auto& module) { return module(x); };
  std::vector<Sample> list;
  list.push_back(
      sample(Linear(LinearOptions(kModelWidth, 7)), on_x, "Linear(n_inputs=12, n_outputs=7, bias=true"));
  for (const auto kind : {NormKind::layer_norm, NormKind::rms_norm})
    list.push_back(sample(Norm(NormOptions(kModelWidth).kind(kind)), on_x, "Norm(size=12, kind="));
  for (const auto gate : {GateProjection::separate, GateProjection::fused}) {
    list.push_back(
        sample(FeedForward(FeedForwardOptions(kModelWidth, 20).activation(Activation::swiglu).gate(gate)),
               on_x, "FeedForward(d_model=12, d_ff=20, activation=swiglu, dropout=0)"));
  }
  const auto network = FeedForwardOptions(kModelWidth, 20).activation(Activation::swiglu);
  list.push_back(sample(Experts(ExpertsOptions(network, 4, 2)
                                    .router_bias(true)
                                    .choice_bias(true)
                                    .shared(network)
                                    .shared_gate(true)),
                        on_x, "Experts(count=4, active=2, d_ff=20, router=softmax)"));
  const auto attention = AttentionOptions(kModelWidth, 6).n_kv_heads(2).dropout(0.1);
  const std::string heads_and_widths = "Attention(d_model=12, n_heads=6, n_kv_heads=2, head_dim=2, ";
  list.push_back(sample(Attention(attention), on_x, heads_and_widths + "projection=separate, dropout=0.1)"));
  list.push_back(sample(Attention(AttentionOptions(attention).projection(Projection::fused)), on_x,
                        heads_and_widths + "projection=fused, dropout=0.1)"));
  list.push_back(sample(ShawAttention(AttentionOptions(attention).qk_norm(NormOptions(2)), 3), on_x,
                        "Shaw" + heads_and_widths + "projection=separate, dropout=0.1, max_distance=3)"));
  list.push_back(sample(
      TransformerLayer(layer_with_memory()),
      [x](auto& layer) { return layer(x, {.cross = {.memory = x.flip(1)}}); },
      "TransformerLayer(d_model=12, norm_placement=sandwich, dropout=0)"));
  list.push_back(sample(
      Residual(ResidualOptions(NormOptions(kModelWidth), {"f"}).dropout(0.5)),
      [x](auto& residual) { return residual(x, {[](const torch::Tensor& h) { return torch::sin(h); }}); },
      "Residual(placement=pre, dropout=0.5)"));
  list.push_back(sample(
      Rotary(RotaryOptions(4).scaling(RotaryScaling::linear).factor(2)),
      [heads](auto& rotary) { return rotary(PositionRange(3, 5), torch::kCPU).apply(heads); },
      "Rotary(head_dim=4, width=4, theta=10000, layout=half, scaling=linear)"));
  list.push_back(sample(
      T5Bias(T5BiasOptions(3).n_buckets(8)), [](auto& bias) { return bias(PositionRange(0, 6)); },
      "T5Bias(n_heads=3, n_buckets=8, max_distance=128, direction=bidirectional)"));
  list.push_back(sample(
      torch::nn::ModuleHolder(
          std::make_shared<GridBiasImpl>(GridBiasOptions(3, {.rows = 2, .columns = 3, .n_before = 1}))),
      [](auto& bias) { return bias->at(PositionRange(0, 7), torch::kCPU); },
      "GridBias(n_heads=3, rows=2, columns=3)"));
  list.push_back(sample(torch::nn::ModuleHolder(std::make_shared<ConvolutionalPositionsImpl>(
                            ConvolutionalPositionsOptions(kModelWidth).kernel_size(4).groups(3))),
                        on_x, "ConvolutionalPositions(d_model=12, kernel_size=4, groups=3)"));
  const TokenEmbedding table(TokenEmbeddingOptions(kRowsOfTable, kModelWidth).scale(2));
  list.push_back(sample(
      table, [ids](auto& embedding) { return embedding(ids); },
      "TokenEmbedding(vocab_size=9, d_model=12, scale=2, format=fp32)"));
  const auto scores = OutputProjectionOptions(kModelWidth, kRowsOfTable).bias(true);
  list.push_back(sample(OutputProjection(scores), on_x,
                        "OutputProjection(d_model=12, vocab_size=9, bias=true, scale=1, tied=false"));
  list.push_back(sample(OutputProjection(scores, table), on_x, "tied=true"));
  return list;
}

std::string printed(const torch::nn::Module& module) {
  std::ostringstream stream;
  stream << module;
  return stream.str();
}

void expect_same_but_not_shared(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto compare = [](const auto& ours, const auto& theirs) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (const auto& item : ours) {
      const auto* const other = theirs.find(item.key());
      ASSERT_TRUE(other) << item.key();
      EXPECT_TRUE(torch::equal(item.value(), *other)) << item.key();
      EXPECT_EQ(item.value().scalar_type(), other->scalar_type()) << item.key();
      EXPECT_EQ(item.value().requires_grad(), other->requires_grad()) << item.key();
      EXPECT_NE(item.value().const_data_ptr(), other->const_data_ptr()) << item.key();
    }
  };
  compare(a.named_parameters(), b.named_parameters());
  compare(a.named_buffers(), b.named_buffers());
}

void add_to_parameters(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) parameter.add_(0.5);
}

TEST(Clone, ComputesTheSameAndSharesNothing) {
  torch::manual_seed(1);
  for (const auto& [module, run, line] : samples()) {
    SCOPED_TRACE(line);
    module->eval();
    const auto before = run(*module).detach().clone();
    const auto clone = module->clone();
    EXPECT_EQ(typeid(*clone), typeid(*module));
    EXPECT_FALSE(clone->is_training());
    expect_same_but_not_shared(*module, *clone);
    EXPECT_TRUE(torch::equal(run(*clone), before));

    add_to_parameters(*module);
    EXPECT_TRUE(torch::equal(run(*clone), before));
    EXPECT_EQ(torch::equal(run(*module), before), module->parameters().empty());
    add_to_parameters(*clone);
    EXPECT_TRUE(torch::equal(run(*clone), run(*module)));
  }
}

// The matrix of a tied projection belongs to the embedding, which is no part of the projection.
TEST(Clone, OfATiedProjectionHasAMatrixOfItsOwn) {
  torch::manual_seed(2);
  const auto x = torch::randn({3, kModelWidth});
  TokenEmbedding table(TokenEmbeddingOptions(kRowsOfTable, kModelWidth));
  OutputProjection tied(OutputProjectionOptions(kModelWidth, kRowsOfTable), table);
  OutputProjection clone(copy_of(tied.ptr()));
  const auto before = tied(x).detach().clone();
  EXPECT_TRUE(clone->parameters().empty());
  add_to_parameters(*table);
  EXPECT_TRUE(torch::equal(clone(x), before));
  EXPECT_FALSE(torch::equal(tied(x), before));
  EXPECT_TRUE(torch::equal(OutputProjection(copy_of(tied.ptr(), torch::kCPU))(x), tied(x)));
}

TEST(Clone, KeepsModesAndFormats) {
  torch::manual_seed(3);
  const auto x = torch::randn({2, 5, kModelWidth});
  for (const auto format :
       {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::fp16, WeightFormat::int8, WeightFormat::int4}) {
    FeedForward module(FeedForwardOptions(kModelWidth, 20));
    module->down->bias.requires_grad_(false);
    module->up->eval();
    store_weights(*module, format);
    FeedForward clone(copy_of(module.ptr()));
    expect_same_but_not_shared(*module, *clone);
    EXPECT_TRUE(torch::equal(clone(x), module(x)));
    EXPECT_EQ(clone->up->matrix().format(), format);
    EXPECT_TRUE(clone->is_training() && clone->down->is_training() && !clone->up->is_training());
  }
  Linear half(LinearOptions(kModelWidth, 7));
  half->to(torch::kBFloat16);
  const Linear clone(copy_of(half.ptr()));
  EXPECT_EQ(clone->bias.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(clone->matrix().parameter().scalar_type(), torch::kBFloat16);
}

TEST(Clone, CanBeTrained) {
  torch::manual_seed(4);
  Attention module(AttentionOptions(kModelWidth, 3));
  Attention clone(copy_of(module.ptr()));
  clone(torch::randn({2, 5, kModelWidth})).square().sum().backward();
  for (const auto& item : clone->named_parameters())
    EXPECT_TRUE(item.value().grad().defined() && item.value().is_leaf()) << item.key();
  for (const auto& parameter : module->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST(Clone, DrawsNoRandomNumbers) {
  const Attention module(AttentionOptions(kModelWidth, 3));
  torch::manual_seed(5);
  const auto expected = torch::rand({4});
  torch::manual_seed(5);
  module->clone();
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
}

/// A module as programs write them with LibTorch's own means.
struct PairImpl : torch::nn::Cloneable<PairImpl> {
  PairImpl() { reset(); }
  void reset() override {
    attention = register_module("attention", Attention(AttentionOptions(kModelWidth, 3)));
    norm = register_module("norm", Norm(NormOptions(kModelWidth)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return attention(norm(x)); }

  Attention attention{nullptr};
  Norm norm{nullptr};
};

TEST(Clone, WorksWithinACloneableOfLibTorch) {
  torch::manual_seed(6);
  const auto x = torch::randn({2, 5, kModelWidth});
  PairImpl pair;
  add_to_parameters(pair);
  const auto clone = std::dynamic_pointer_cast<PairImpl>(pair.clone());
  const auto before = pair.forward(x).detach().clone();
  expect_same_but_not_shared(pair, *clone);
  EXPECT_TRUE(torch::equal(clone->forward(x), before));
  add_to_parameters(pair);
  EXPECT_TRUE(torch::equal(clone->forward(x), before));
}

/// A mixer that does not say how to construct another one.
struct Silence : MixerImpl {
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext&) override { return x * weight; }
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override {
    return std::make_unique<KeyValueState>(n_rows);
  }
  torch::Tensor weight = register_parameter("weight", torch::ones({1}));
};

// A layer makes its mixer again by itself.
TEST(Clone, OfALayerNeedsNothingOfItsMixer) {
  torch::manual_seed(7);
  const auto x = torch::randn({2, 5, kModelWidth});
  const MakeMixer make = [] { return std::make_shared<Silence>(); };
  TransformerLayer layer(
      TransformerLayerOptions(make, FeedForwardOptions(kModelWidth, 20), NormOptions(kModelWidth)));
  add_to_parameters(*layer);
  TransformerLayer clone(copy_of(layer.ptr()));
  expect_same_but_not_shared(*layer, *clone);
  EXPECT_TRUE(torch::equal(clone(x), layer(x)));
  EXPECT_THROW(Silence().clone(), c10::Error);
}

TEST(Print, NamesSizesAndRates) {
  torch::manual_seed(8);
  for (const auto& sample : samples()) EXPECT_THAT(printed(*sample.module), HasSubstr(sample.printed));
  EXPECT_EQ(printed(*Attention(AttentionOptions(512, 8).scale(1))),
            "Attention(d_model=512, n_heads=8, n_kv_heads=8, head_dim=64, projection=separate, scale=1, "
            "dropout=0)(\n"
            "  (q): Linear(n_inputs=512, n_outputs=512, bias=true, format=fp32)\n"
            "  (k): Linear(n_inputs=512, n_outputs=512, bias=true, format=fp32)\n"
            "  (v): Linear(n_inputs=512, n_outputs=512, bias=true, format=fp32)\n"
            "  (out): Linear(n_inputs=512, n_outputs=512, bias=true, format=fp32)\n"
            ")");
  EXPECT_THAT(printed(*TransformerLayer(layer_with_memory())),
              AllOf(HasSubstr("(cross_attention): Attention("), HasSubstr("(residual): Residual(")));
}

}  // namespace
}  // namespace zoo
