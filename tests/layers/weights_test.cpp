// Matrices of weights: products with parts of them, the uses that they report, and other storage formats.

#include "layers/weights/weights.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/attention.h"
#include "layers/attention/kinds/shaw_attention.h"
#include "layers/attention/position_bias.h"
#include "layers/feed_forward.h"
#include "layers/transformer_layer.h"
#include "layers/weights/embedding.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"

namespace zoo {
namespace {

constexpr auto kFormats = {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::fp16, WeightFormat::int8,
                           WeightFormat::int4};
constexpr auto kStoredFormats = {WeightFormat::bf16, WeightFormat::fp16, WeightFormat::int8,
                                 WeightFormat::int4};
constexpr int64_t kInputs = 72, kTableRows = 50;

/// Maps of 24, 8 and 8 outputs, whose rows are of very different sizes.
Linear stacked_map(bool bias = true) {
  Linear map(LinearOptions(kInputs, {{24, WeightUse::query}, {8}, {8}}).bias(bias));
  const torch::NoGradGuard no_grad;
  map->named_parameters()["weight"].normal_().mul_(torch::logspace(-3, 2, 40).unsqueeze(1));
  return map;
}

/// How far stored weights may be from the weights, as a share of their norms.
double storage_error(WeightFormat format) {
  switch (format) {
    case WeightFormat::fp32:
      return 0;
    case WeightFormat::bf16:
      return 1.0 / 256;
    case WeightFormat::fp16:
      return 1.0 / 2048;
    case WeightFormat::int8:
      return 0.01;
    case WeightFormat::int4:
      return 0.15;
  }
  return 0;
}

/// How far products with exact inputs may be from those that inputs in whole numbers of 8 bits give.
double input_error(WeightFormat format) {
  return format == WeightFormat::int8 || format == WeightFormat::int4 ? 0.01 : 0;
}

/// Compares products x Wᵀ with products of the stored values in float64, and these values with the weights.
void expect_product(const torch::Tensor& product, const torch::Tensor& x, const torch::Tensor& weight,
                    const WeightMatrix& matrix) {
  const auto values = matrix.values();
  ASSERT_EQ(values.sizes(), weight.sizes());
  const auto row_errors = (values - weight).norm(2, 1);
  EXPECT_TRUE(row_errors.le((storage_error(matrix.format()) + 1e-7) * weight.norm(2, 1)).all().item<bool>())
      << row_errors / weight.norm(2, 1);
  const auto exact = torch::matmul(x.to(torch::kDouble), values.to(torch::kDouble).t());
  ASSERT_EQ(product.sizes(), exact.sizes());
  const auto of_output = [](const torch::Tensor& t) { return t.reshape({-1, t.size(-1)}).norm(2, 0); };
  const auto found = of_output(product - exact), size = of_output(exact);
  EXPECT_TRUE(found.le((input_error(matrix.format()) + 1e-6) * size).all().item<bool>()) << found / size;
}

TEST(LinearMap, PartsAreSlicesOfTheWhole) {
  torch::manual_seed(1);
  for (const auto format : kFormats) {
    for (const bool bias : {false, true}) {
      for (const int64_t n_tokens : {2, 40}) {
        SCOPED_TRACE(::testing::Message() << "format " << static_cast<int>(format) << ", bias " << bias);
        auto map = stacked_map(bias);
        map->convert(format);
        const auto x = torch::randn({3, n_tokens, kInputs});
        const auto whole = map(x);
        ASSERT_EQ(whole.sizes(), (torch::IntArrayRef{3, n_tokens, 40}));

        const auto parts = map->forward_parts(x);
        ASSERT_EQ(parts.size(), 3U);
        EXPECT_EQ(parts[0].size(-1), 24);
        EXPECT_EQ(parts[1].size(-1), 8);
        EXPECT_TRUE(torch::equal(torch::cat(parts, -1), whole));

        // Another product may round its sums differently.
        constexpr double tolerance = 1e-5;
        for (size_t first = 0; first < 3; ++first) {
          for (size_t count = 1; first + count <= 3; ++count) {
            const auto some = map->forward_some(x, {.first = first, .count = count});
            std::vector<torch::Tensor> slices(parts.begin() + static_cast<int64_t>(first),
                                              parts.begin() + static_cast<int64_t>(first + count));
            const auto expected = torch::cat(slices, -1);
            ASSERT_EQ(some.sizes(), expected.sizes());
            const auto error = (some - expected).norm(2, {0, 1}), size = expected.norm(2, {0, 1});
            EXPECT_TRUE(error.le(tolerance * size).all().item<bool>()) << first << ", " << count;
          }
        }
      }
    }
  }
}

TEST(LinearMap, GradientsOfPartsAreThoseOfTheWhole) {
  torch::manual_seed(2);
  auto map = stacked_map();
  const auto x = torch::randn({40, kInputs}).requires_grad_(), upstream = torch::randn({40, 40});
  const std::vector<torch::Tensor> inputs{x, map->matrix().parameter(), map->bias};
  const auto some = [&](size_t first, size_t count) {
    return map->forward_some(x, {.first = first, .count = count});
  };
  const auto whole = torch::autograd::grad({map(x)}, inputs, {upstream});
  const auto pieces = torch::autograd::grad({torch::cat({some(0, 1), some(1, 2)}, -1)}, inputs, {upstream});
  const auto parts = torch::autograd::grad({torch::cat(map->forward_parts(x), -1)}, inputs, {upstream});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_LE((pieces[i] - whole[i]).norm().item<double>(), 1e-5 * whole[i].norm().item<double>()) << i;
    EXPECT_LE((parts[i] - whole[i]).norm().item<double>(), 1e-5 * whole[i].norm().item<double>()) << i;
  }
}

TEST(LinearMap, StartsAsThatOfTorchAndKnowsItsShape) {
  torch::manual_seed(3);
  Linear map(LinearOptions(kInputs, {{24}, {8}, {8}}));
  EXPECT_EQ(map->n_inputs(), kInputs);
  EXPECT_EQ(map->n_outputs(), 40);
  EXPECT_EQ(map->matrix().n_rows(), 40);
  EXPECT_EQ(map->matrix().n_columns(), kInputs);
  torch::manual_seed(3);
  const torch::nn::Linear torchs(kInputs, 40);
  EXPECT_TRUE(torch::equal(map->matrix().parameter(), torchs->weight));
  EXPECT_TRUE(torch::equal(map->bias, torchs->bias));
  EXPECT_FALSE(Linear(LinearOptions(4, 2).bias(false))->bias.defined());
  EXPECT_THROW(Linear(LinearOptions(4, std::vector<LinearPart>{})), c10::Error);
}

/// How many rows below `module` have each use. Every row of a parameter of two and more dimensions must be
/// visited once, and no other parameter.
std::map<WeightUse, int64_t> visited_rows(const torch::nn::Module& module) {
  std::map<WeightUse, int64_t> uses;
  std::map<const void*, torch::Tensor> visits;
  for (const auto& part : module.modules()) {
    const auto* const owner = dynamic_cast<const WeightOwner*>(part.get());
    if (!owner) continue;
    owner->visit_weights([&](const Weight& weight) {
      auto& counts = visits[weight.parameter.unsafeGetTensorImpl()];
      if (!counts.defined()) counts = torch::zeros({weight.parameter.size(0)});
      counts.narrow(0, weight.first, weight.count) += 1;
      EXPECT_GT(weight.count, 0);
      EXPECT_TRUE(torch::equal(weight.rows(), weight.parameter.narrow(0, weight.first, weight.count)));
      uses[weight.use] += weight.count;
    });
  }
  size_t n_matrices = 0;
  for (const auto& item : module.named_parameters()) {
    if (item.value().dim() < 2) continue;
    ++n_matrices;
    const auto found = visits.find(item.value().unsafeGetTensorImpl());
    if (found == visits.end()) {
      ADD_FAILURE() << item.key() << " is not visited";
      continue;
    }
    EXPECT_TRUE(found->second.eq(1).all().item<bool>()) << item.key() << " is not visited once:\n"
                                                        << found->second;
  }
  EXPECT_EQ(visits.size(), n_matrices);
  return uses;
}

TEST(WeightOwners, VisitEveryRowOnceAndKnowItsUse) {
  using Uses = std::map<WeightUse, int64_t>;
  EXPECT_EQ(visited_rows(*stacked_map()), (Uses{{WeightUse::query, 24}, {WeightUse::hidden, 16}}));
  for (const auto projection : {Projection::separate, Projection::fused}) {
    ShawAttention attention(AttentionOptions(24, 4).n_kv_heads(2).projection(projection), 3);
    EXPECT_EQ(visited_rows(*attention), (Uses{{WeightUse::query, 24},
                                              {WeightUse::hidden, 2 * 12},
                                              {WeightUse::residual_output, 24},
                                              {WeightUse::distance_table, 2 * 7}}));
  }
  for (const auto gate : {GateProjection::separate, GateProjection::fused}) {
    const auto feed_forward = FeedForwardOptions(24, 40).activation(Activation::swiglu).gate(gate);
    const Uses uses{{WeightUse::hidden, 2 * 40}, {WeightUse::residual_output, 24}};
    EXPECT_EQ(visited_rows(*FeedForward(feed_forward)), uses);
    auto options = TransformerLayerOptions(AttentionOptions(24, 4), feed_forward, NormOptions(24));
    options.cross_attention(AttentionOptions(24, 4).projection(Projection::fused));
    EXPECT_EQ(visited_rows(*TransformerLayer(options)), (Uses{{WeightUse::query, 2 * 24},
                                                              {WeightUse::hidden, 4 * 24 + 2 * 40},
                                                              {WeightUse::residual_output, 3 * 24}}));
  }
  TokenEmbedding embedding(TokenEmbeddingOptions(kTableRows, 24));
  const auto options = OutputProjectionOptions(24, kTableRows).bias(true);
  EXPECT_EQ(visited_rows(*embedding), (Uses{{WeightUse::token_table, kTableRows}}));
  EXPECT_EQ(visited_rows(*OutputProjection(options)), (Uses{{WeightUse::lm_head, kTableRows}}));
  EXPECT_EQ(visited_rows(*OutputProjection(options, embedding)), Uses());  // the matrix is the embedding's
  EXPECT_EQ(visited_rows(*T5Bias(T5BiasOptions(4).n_buckets(8))), (Uses{{WeightUse::table, 8}}));
  const GridBiasOptions grid(4, {.rows = 2, .columns = 3, .n_before = 1});
  EXPECT_EQ(visited_rows(*std::make_shared<GridBiasImpl>(grid)), (Uses{{WeightUse::table, 3 * 5 + 3}}));
}

TEST(StoredWeights, HaveProductsCloseToThoseOfFloat) {
  torch::manual_seed(4);
  for (const auto format : kFormats) {
    SCOPED_TRACE(static_cast<int>(format));
    auto map = stacked_map();
    const auto weight = map->matrix().parameter().detach().clone(), bias = map->bias.detach().clone();
    map->convert(format);
    EXPECT_EQ(map->matrix().format(), fast_format(format, torch::kCPU));
    const torch::NoGradGuard no_grad;
    // One row, a few, and more than any kernel takes at once; in all shapes that a model has.
    for (const auto& shape : std::vector<std::vector<int64_t>>{
             {kInputs}, {1, kInputs}, {3, 7, kInputs}, {2, 2, 30, kInputs}, {0, kInputs}}) {
      const auto x = torch::randn(shape);
      const auto product = map->matrix().product(x);
      EXPECT_EQ(product.scalar_type(), torch::kFloat);
      if (x.dim() > 2) expect_product(product, x, weight, map->matrix());
      if (x.dim() <= 2) {
        EXPECT_EQ(product.size(-1), 40);
        EXPECT_EQ(product.dim(), x.dim());
      }
      const auto sum = product + bias;
      EXPECT_LE((map(x) - sum).norm().item<double>(), 1e-6 * sum.norm().item<double>());
    }
    // Inputs need not be contiguous, and each is a product of its own.
    const auto x = torch::randn({5, kInputs, 4}).transpose(1, 2);
    const auto product = map->matrix().product(x);
    expect_product(product, x, weight, map->matrix());
    const auto one = map->matrix().product(x[3][2]), same = product[3][2];
    if (format == WeightFormat::fp32) {  // another function multiplies more rows
      const auto summands = torch::matmul(weight.abs(), x[3][2].abs());
      EXPECT_TRUE((one - same).abs().le(1e-6 * summands).all().item<bool>());
    } else {
      EXPECT_TRUE(torch::equal(one, same));
    }
  }
}

TEST(StoredWeights, WidthsNeedNotFillVectors) {
  torch::manual_seed(5);
  for (const auto format : kStoredFormats) {
    for (const int64_t width : {1, 7, 24, 33}) {
      for (const int64_t n_outputs : {1, 5, 12}) {
        SCOPED_TRACE(::testing::Message() << width << " to " << n_outputs);
        const auto weight = torch::randn({n_outputs, width}), x = torch::randn({200, width});
        WeightMatrix matrix(weight.clone());
        matrix.convert(format);
        expect_product(matrix.product(x), x, weight, matrix);
      }
    }
  }
}

TEST(StoredWeights, ProductsAreOfTheTypeOfTheInput) {
  torch::manual_seed(6);
  for (const auto format : kStoredFormats) {
    for (const int64_t width : {64, 72, 7}) {  // kernels may want multiples of 16
      SCOPED_TRACE(::testing::Message() << "format " << static_cast<int>(format) << ", width " << width);
      const auto weight = torch::randn({40, width}), x = torch::randn({9, width});
      const auto expected = torch::linear(x, weight);
      WeightMatrix matrix(weight.clone());
      matrix.convert(format);
      const auto y = matrix.product(x.to(torch::kBFloat16));
      EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
      const double tolerance = 0.02 + storage_error(format);
      EXPECT_LE((y - expected).norm().item<double>(), tolerance * expected.norm().item<double>());
    }
  }
}

// Panels have 32 outputs, and groups of whole numbers 32 inputs.
TEST(StoredWeights, TakeAPartOfTheBytes) {
  constexpr int64_t kRows = 40, kPanels = 2, kGroups = 3;
  for (const auto& [format, bytes] :
       std::map<WeightFormat, int64_t>{{WeightFormat::fp32, 4 * kRows * kInputs},
                                       {WeightFormat::bf16, 2 * kPanels * 32 * kInputs},
                                       {WeightFormat::fp16, 2 * kPanels * 32 * kInputs},
                                       {WeightFormat::int8, kPanels * 32 * (4 + 32 * kGroups)},
                                       {WeightFormat::int4, kPanels * 32 * (2 + 16) * kGroups}}) {
    auto map = stacked_map();
    map->convert(format);
    const auto& matrix = map->matrix();
    EXPECT_EQ(matrix.bytes(), bytes);
    EXPECT_EQ(matrix.n_rows(), kRows);
    EXPECT_EQ(matrix.n_columns(), kInputs);
    // Everything that the module holds, except its bias.
    int64_t held = 0;
    for (const auto& parameter : map->parameters()) held += static_cast<int64_t>(parameter.nbytes());
    for (const auto& buffer : map->buffers()) held += static_cast<int64_t>(buffer.nbytes());
    EXPECT_EQ(held - 4 * kRows, bytes);
  }
}

TEST(StoredWeights, Int8IsWholeNumbersWithAScaleForEachRow) {
  torch::manual_seed(9);
  auto weight = torch::randn({4, 10});
  weight[2].zero_();
  weight[3].mul_(1e6);
  WeightMatrix matrix(weight.clone());
  matrix.convert(WeightFormat::int8);
  const auto scales = weight.abs().amax(1, /*keepdim=*/true) / 127;
  EXPECT_TRUE(torch::equal(matrix.values()[2], torch::zeros({10})));
  const auto numbers = matrix.values() / scales.clamp_min(1e-9);
  EXPECT_LE((numbers - numbers.round()).abs().max().item<double>(), 1e-4);
  const auto errors = (matrix.values() - weight).abs();
  EXPECT_TRUE(errors.le(scales * (0.5 + 1e-4)).all().item<bool>());
  EXPECT_EQ(matrix.product(torch::randn({3, 10})).select(1, 2).abs().max().item<float>(), 0);
}

TEST(StoredWeights, PassGradientsToTheirInputs) {
  torch::manual_seed(10);
  for (const auto format : kStoredFormats) {
    auto map = stacked_map();
    map->convert(format);
    const auto x = torch::randn({3, kInputs}).requires_grad_(), upstream = torch::randn({3, 8});
    const auto y = map->forward_some(x, {.first = 1, .count = 1});
    const auto gradients = torch::autograd::grad({y}, {x, map->bias}, {upstream});
    const auto expected = upstream.matmul(map->matrix().values().narrow(0, 24, 8));
    EXPECT_TRUE(torch::allclose(gradients[0], expected, 1e-5, 1e-5));
    EXPECT_TRUE(torch::allclose(gradients[1].narrow(0, 24, 8), upstream.sum(0)));
    const torch::NoGradGuard no_grad;
    const auto same = map->forward_some(x, {.first = 1, .count = 1});
    EXPECT_TRUE(torch::allclose(same, y, 1e-5, 1e-5));
  }
}

TEST(StoredWeights, AreBuffersInPlaceOfTheParameter) {
  for (const auto format : kStoredFormats) {
    auto map = stacked_map();
    const auto weight = map->matrix().parameter().detach().clone();
    map->convert(format);
    const auto parameters = map->named_parameters(), buffers = map->named_buffers();
    EXPECT_EQ(parameters.keys(), std::vector<std::string>{"bias"});
    EXPECT_EQ(buffers["weight"].data_ptr(), map->matrix().numbers().data_ptr());
    EXPECT_FALSE(map->matrix().numbers().requires_grad());
    EXPECT_EQ(buffers.size(), 1U);
  }
}

TEST(StoredWeights, CannotBeUndone) {
  for (const auto format : kStoredFormats) {
    for (const auto other : kFormats) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(format) << " to " << static_cast<int>(other));
      auto map = stacked_map();
      const auto x = torch::randn({3, kInputs});
      map->convert(format);
      const auto expected = map(x).detach();
      WeightMatrix matrix = map->matrix();
      if (fast_format(other, torch::kCPU) == fast_format(format, torch::kCPU)) {  // nothing to do
        const auto* const data = map->matrix().numbers().data_ptr();
        EXPECT_NO_THROW(map->convert(other));
        EXPECT_EQ(map->matrix().numbers().data_ptr(), data);
      } else {
        EXPECT_THROW(map->convert(other), c10::Error);
        EXPECT_THROW(matrix.convert(other), c10::Error);
        EXPECT_THROW(store_weights(*map, other), c10::Error);
      }
      EXPECT_THROW(map->matrix().parameter(), c10::Error);
      EXPECT_THROW(map->visit_weights([](const Weight&) {}), c10::Error);
      EXPECT_EQ(map->matrix().format(), fast_format(format, torch::kCPU));
      EXPECT_TRUE(torch::equal(map(x).detach(), expected));
    }
  }
}

/// One of each kind of module of a language model.
class StoredModel : public torch::nn::Module {
 public:
  explicit StoredModel(bool tied) {
    token = register_module("token", TokenEmbedding(TokenEmbeddingOptions(kTableRows, 24).scale(3)));
    position_bias = register_module("position_bias", T5Bias(T5BiasOptions(4)));
    const auto feed_forward =
        FeedForwardOptions(24, 40).activation(Activation::swiglu).gate(GateProjection::fused);
    const auto attention = AttentionOptions(24, 4).n_kv_heads(2).projection(Projection::fused);
    layer = register_module(
        "layer",
        TransformerLayer(
            TransformerLayerOptions(attention, feed_forward, NormOptions(24)).cross_attention(attention)));
    const auto options = OutputProjectionOptions(24, kTableRows).bias(true).scale(0.5);
    output = register_module("output", tied ? OutputProjection(options, token) : OutputProjection(options));
  }
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& memory) {
    const auto bias = position_bias(PositionRange(0, ids.size(1)));
    LayerContext context;
    context.self = {.mask = Mask::causal(), .bias = bias};
    context.cross.memory = memory;
    return output(layer(token(ids), context));
  }

  TokenEmbedding token{nullptr};
  T5Bias position_bias{nullptr};
  TransformerLayer layer{nullptr};
  OutputProjection output{nullptr};
};

TEST(StoredWeights, OfAModelAreThoseOfItsMapsAndTokenTables) {
  for (const auto format : kStoredFormats) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(format) << ", tied " << tied);
      torch::manual_seed(7);
      const auto model = std::make_shared<StoredModel>(tied);
      std::map<std::string, torch::Tensor> before;
      for (const auto& item : model->named_parameters()) before[item.key()] = item.value().detach().clone();
      const torch::NoGradGuard no_grad;
      const auto ids = torch::randint(kTableRows, {3, 7}), memory = torch::randn({3, 5, 24});
      const auto expected = model->forward(ids, memory);
      store_weights(*model, WeightFormat::fp32);  // changes nothing
      EXPECT_EQ(model->named_parameters().size(), before.size());
      store_weights(*model, format);

      // Norms, biases and the small table do not change.
      for (const auto& item : model->named_parameters()) {
        EXPECT_TRUE(item.value().dim() < 2 || item.key() == "position_bias.buckets.weight") << item.key();
        EXPECT_TRUE(torch::equal(item.value(), before.at(item.key()))) << item.key();
      }
      size_t n_matrices = 0;
      for (const auto& item : model->named_buffers()) {
        if (!item.key().ends_with(".weight")) continue;
        ++n_matrices;
        EXPECT_LT(item.value().nbytes(), before.at(item.key()).nbytes()) << item.key();
      }
      EXPECT_EQ(n_matrices,
                tied ? 7U : 8U);  // the table, two of each attention, two of the feed-forward, the scores
      EXPECT_EQ(model->named_parameters().size(), before.size() - n_matrices);

      const auto found = model->forward(ids, memory);
      const double tolerance = 0.02 + 2 * storage_error(format);
      EXPECT_LE((found - expected).norm().item<double>(), tolerance * expected.norm().item<double>());
      EXPECT_FALSE(torch::equal(found, expected));
      EXPECT_THROW(store_weights(*model, WeightFormat::fp32), c10::Error);
    }
  }
}

TEST(StoredWeights, OfATokenTableGiveItsVectorsAndTheScoresThatAreTiedToIt) {
  torch::manual_seed(8);
  for (const auto format : kStoredFormats) {
    SCOPED_TRACE(static_cast<int>(format));
    TokenEmbedding embedding(TokenEmbeddingOptions(kTableRows, 24).scale(4));
    const auto options = OutputProjectionOptions(24, kTableRows).bias(true).scale(0.5);
    OutputProjection tied(options, embedding);
    const torch::NoGradGuard no_grad;
    tied->bias.normal_();
    const auto weight = embedding->matrix().parameter().clone();
    const auto ids = torch::randint(kTableRows, {6, 20});
    const auto exact = embedding(ids);
    embedding->convert(format);

    const auto vectors = embedding(ids);
    EXPECT_EQ(vectors.scalar_type(), torch::kFloat);
    ASSERT_EQ(vectors.sizes(), exact.sizes());
    EXPECT_LE((vectors - exact).norm().item<double>(),
              storage_error(embedding->matrix().format()) * exact.norm().item<double>());
    EXPECT_TRUE(torch::equal(vectors, 4 * embedding->matrix().values().index({ids})));

    const auto hidden = torch::randn({2, 30, 24});
    expect_product(tied(hidden) - tied->bias, hidden * 0.5, weight, embedding->matrix());
    tied->convert(format);  // owns no matrix
    EXPECT_TRUE(tied->buffers().empty());
    EXPECT_EQ(tied->named_parameters().keys(), std::vector<std::string>{"bias"});
  }
}

}  // namespace
}  // namespace zoo
