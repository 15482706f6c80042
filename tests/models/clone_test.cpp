// Clones and printed lines of models and of all their parts.

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/weights/weights.h"
#include "models/stack.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests
using ::testing::HasSubstr;

torch::Tensor scores(Model& model, const Batch& batch) { return model.logits(model.features(batch)); }

std::shared_ptr<Model> clone_of(Model& model) { return std::dynamic_pointer_cast<Model>(model.clone()); }

void add_to_parameters(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) parameter.add_(0.1 * torch::randn_like(parameter));
}

void expect_same_but_not_shared(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto parameters = b.named_parameters();
  ASSERT_EQ(a.named_parameters().size(), parameters.size());
  for (const auto& item : a.named_parameters()) {
    ASSERT_TRUE(parameters.contains(item.key())) << item.key();
    EXPECT_TRUE(torch::equal(item.value(), parameters[item.key()])) << item.key();
    EXPECT_NE(item.value().const_data_ptr(), parameters[item.key()].const_data_ptr()) << item.key();
  }
}

TEST(CloneOfModels, ComputesTheSameAndSharesNothing) {
  for_each_model(kArchitectures, [](const ModelConfig& config, Model& model) {
    const auto batch = small_batch(config.architecture, {.ids = tokens(2, 6)});
    const auto before = scores(model, batch);
    const auto clone = clone_of(model);
    EXPECT_EQ(typeid(*clone), typeid(model));
    expect_same_but_not_shared(model, *clone);
    EXPECT_TRUE(torch::equal(scores(*clone, batch), before));

    add_to_parameters(model);
    EXPECT_TRUE(torch::equal(scores(*clone, batch), before));
    EXPECT_FALSE(torch::equal(scores(model, batch), before));
  });
}

// Every type of module that occurs in a model can be cloned by itself, except for containers of LibTorch.
TEST(CloneOfModels, WorksForEveryPart) {
  for_each_model(kArchitectures, [](const ModelConfig&, Model& model) {
    for (const auto& item : model.named_modules("model", /*include_self=*/true)) {
      SCOPED_TRACE(item.key());
      const auto& part = *item.value();
      const auto clone = part.clone();
      EXPECT_EQ(typeid(*clone), typeid(part));
      expect_same_but_not_shared(part, *clone);
    }
  });
}

// An embedding that the output projection uses, too, is one matrix in the clone.
TEST(CloneOfModels, KeepsTiesWithinTheClone) {
  for (const auto architecture : kArchitectures) {
    const auto model = random_model(small_config(architecture));
    const auto clone = clone_of(*model);
    const auto features = torch::randn({3, kWidth});
    const torch::NoGradGuard no_grad;
    const auto before = model->logits(features).clone();
    clone->named_parameters()["token_embedding.weight"].mul_(2);
    EXPECT_TRUE(close(clone->logits(features), 2 * before)) << name_of(architecture);
    EXPECT_TRUE(torch::equal(model->logits(features), before)) << name_of(architecture);
  }
}

TEST(CloneOfModels, GeneratesTheSame) {
  const torch::NoGradGuard no_grad;
  for (const auto architecture : kGenerativeArchitectures) {
    for (const auto cache : {CacheFormat::fp32, CacheFormat::int8}) {
      const auto model = random_model(small_config(architecture, Position::rotary));
      store_cache(*model, cache);
      const TokenBatch prompts{.ids = tokens(2, 4)}, next{.ids = tokens(2, 1)};
      DecodingState ours, theirs;
      model->generative()->prefill({.input = prompts}, ours);
      const auto clone = clone_of(*model);
      clone->generative()->prefill({.input = prompts}, theirs);
      EXPECT_EQ(theirs.bytes(), ours.bytes());
      const auto expected = model->generative()->forward(next, ours);
      add_to_parameters(*model);
      EXPECT_TRUE(torch::equal(clone->generative()->forward(next, theirs), expected));
    }
  }
}

TEST(CloneOfModels, KeepsFormatsAndModes) {
  const auto config = small_config(Architecture::encoder_decoder);
  const auto batch = small_batch(config.architecture, {.ids = tokens(2, 6)});
  for (const auto format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    const torch::NoGradGuard no_grad;
    const auto model = random_model(config);
    store_weights(*model, format);
    const auto clone = clone_of(*model);
    EXPECT_FALSE(clone->is_training());
    EXPECT_TRUE(torch::equal(scores(*clone, batch), scores(*model, batch)));
  }

  auto post_norm = small_config(Architecture::decoder);
  post_norm.norm_placement = NormPlacement::post;  // the last layer's output is the model's
  const auto model = random_model(post_norm);
  model->train();
  model->checkpoint_activations(ActivationCheckpointing::every_layer);
  const Batch text = small_batch(post_norm.architecture, {.ids = tokens(2, 6)});
  const auto last_step = [&](Model& any) { return any.hidden_states(text).grad_fn()->name(); };
  const auto recomputed = last_step(*model), in_clone = last_step(*clone_of(*model));
  model->checkpoint_activations(ActivationCheckpointing::none);
  EXPECT_EQ(in_clone, recomputed);
  EXPECT_NE(in_clone, last_step(*model));
}

TEST(CloneOfModels, GoesToADevice) {
  if (!torch::hasCUDA()) GTEST_SKIP() << "no GPU";
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::encoder_decoder, Position::t5));
  const auto batch = small_batch(Architecture::encoder_decoder, {.ids = tokens(2, 6)});
  const auto clone = std::dynamic_pointer_cast<Model>(model->clone(torch::kCUDA));
  EXPECT_TRUE(close(scores(*clone, batch.to(torch::kCUDA)).to(torch::kCPU), scores(*model, batch)));
  for (const auto& parameter : model->parameters()) EXPECT_TRUE(parameter.is_cpu());
  for (const auto format : {WeightFormat::bf16, WeightFormat::int8}) {
    const auto stored = std::dynamic_pointer_cast<Model>(model->clone(torch::kCUDA));
    store_weights(*stored, format);
    const auto copy = std::dynamic_pointer_cast<Model>(stored->clone());
    EXPECT_TRUE(torch::equal(scores(*copy, batch.to(torch::kCUDA)), scores(*stored, batch.to(torch::kCUDA))));
  }
}

TEST(PrintedModels, NameSizesAndRatesOfEveryPart) {
  for (const auto architecture : kArchitectures) {
    std::ostringstream stream;
    stream << *random_model(small_config(architecture));
    const auto text = stream.str();
    EXPECT_THAT(text, HasSubstr("Model(head="));
    EXPECT_THAT(text, HasSubstr("d_model=24, n_layers=2, "));
    EXPECT_THAT(text, HasSubstr("n_heads=4, n_kv_heads=4, d_ff=40, position=learned, tie_embeddings=true"));
    EXPECT_THAT(text, HasSubstr("(token_embedding): TokenEmbedding(vocab_size=31, d_model=24, scale=1"));
    EXPECT_THAT(text, HasSubstr("embedder): TokenEmbedder(d_model=24, position=learned, dropout=0)"));
    EXPECT_THAT(text, HasSubstr("Stack(role="));
    EXPECT_THAT(text, HasSubstr("(self_attention): Attention(d_model=24, n_heads=4"));
    EXPECT_THAT(text, HasSubstr("(head): ModelHead(kind="));
    EXPECT_THAT(text, HasSubstr("n_outputs=31"));
  }
}

}  // namespace
}  // namespace zoo
