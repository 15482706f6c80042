// Layers that are computed again in the backward pass give the same training in less memory.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "base/tensor_memory.h"
#include "checkpoints/checkpoint.h"
#include "io/files.h"
#include "models/inference_scope.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/small_models.h"
#include "tests/support/training.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

/// Four rows of unequal length, with targets at some positions.
Batch uneven_batch(Architecture architecture) {
  torch::manual_seed(6);
  auto batch = small_batch(architecture, {tokens(4, 7), torch::tensor({7, 3, 5, 6}, torch::kLong)});
  batch.positions = torch::arange(0, batch.targets.numel(), 2);
  batch.targets = batch.targets.index_select(0, batch.positions);
  return batch;
}

struct Differentiated {
  torch::Tensor loss;
  std::vector<torch::Tensor> gradients;
  uint64_t drawn_next;
};

Differentiated differentiated(const std::shared_ptr<Model>& model, const Batch& batch,
                              const GradientOptions& options, ActivationCheckpointing checkpointing,
                              const TokenCrossEntropyOptions& loss = {}) {
  model->checkpoint_activations(checkpointing);
  model->zero_grad();
  torch::manual_seed(9);
  GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(loss), options);
  Differentiated result{gradients.differentiate({batch}), {}, draw_seed()};
  for (const auto& parameter : model->parameters()) result.gradients.push_back(parameter.grad());
  return result;
}

void expect_equal(const std::shared_ptr<Model>& model, const Batch& batch, const GradientOptions& options,
                  const TokenCrossEntropyOptions& loss = {}) {
  const auto plain = differentiated(model, batch, options, ActivationCheckpointing::none, loss);
  const auto again = differentiated(model, batch, options, ActivationCheckpointing::every_layer, loss);
  EXPECT_TRUE(torch::equal(again.loss, plain.loss));
  EXPECT_EQ(again.drawn_next, plain.drawn_next);
  for (size_t i = 0; i < plain.gradients.size(); ++i) {
    ASSERT_EQ(again.gradients[i].defined(), plain.gradients[i].defined()) << i;
    if (!plain.gradients[i].defined()) continue;
    EXPECT_TRUE(torch::equal(again.gradients[i], plain.gradients[i])) << i;
  }
}

// All kinds of positions (T5's bias has its own gradient), placements of norms, shared and separate
// embeddings.
TEST(ActivationCheckpointing, ChangesNoBitOfAnyModel) {
  for (const auto architecture : kArchitectures) {
    for (auto config : varied_configs(architecture)) {
      SCOPED_TRACE(described(config));
      config.n_layers = 3;
      const auto batch = uneven_batch(architecture);
      for (const double dropout : {0.0, 0.2}) {
        config.dropout = config.attention_dropout = config.activation_dropout = dropout;
        if (architecture == Architecture::encoder_decoder) config.share_embeddings = dropout == 0;
        const auto model = random_model(config);
        model->train();
        expect_equal(model, batch, {.n_parts = 1});
      }
    }
  }
}

// Threads with separate graphs, logits in pieces, 16 bits.
TEST(ActivationCheckpointing, ChangesNoBitHoweverTheBatchIsWorkedOn) {
  for (const auto architecture : kArchitectures) {
    SCOPED_TRACE(name_of(architecture));
    auto config = small_config(architecture, Position::t5);
    config.dropout = config.attention_dropout = 0.2;
    const auto model = random_model(config);
    model->train();
    const auto batch = uneven_batch(architecture);
    for (const auto precision : {Precision::fp32, Precision::bf16}) {
      for (const int64_t n_parts : {1, 4}) {
        for (const int64_t fewest_targets : {64, 2}) {
          expect_equal(model, batch, {.n_parts = n_parts, .precision = precision},
                       {.label_smoothing = 0.1, .logits_bytes = 1, .fewest_targets = fewest_targets});
        }
      }
    }
  }
}

/// Peak memory of the tensors in one step.
int64_t peak(const std::shared_ptr<Model>& model, const Batch& batch, ActivationCheckpointing checkpointing) {
  TensorMemory memory(torch::kCPU);
  differentiated(model, batch, {.n_parts = 1}, checkpointing);
  model->zero_grad();
  return memory.peak();
}

TEST(ActivationCheckpointing, KeepsTheInputsOfLayersAlone) {
  for (const auto architecture : kArchitectures) {
    SCOPED_TRACE(name_of(architecture));
    auto config = small_config(architecture);
    config.n_layers = 12;
    config.dropout = 0.1;
    const auto model = random_model(config);
    model->train();
    const auto batch = small_batch(architecture, {tokens(32, 30)}, 30);
    const auto plain = peak(model, batch, ActivationCheckpointing::none);
    EXPECT_LT(peak(model, batch, ActivationCheckpointing::every_layer), 0.35 * static_cast<double>(plain));
  }
}

TEST(ActivationCheckpointing, LeavesEvaluationAndGenerationAlone) {
  const auto model = random_model(small_config(Architecture::encoder_decoder, Position::t5));
  const auto batch = uneven_batch(Architecture::encoder_decoder);
  const InferenceScope scope(*model);
  const auto run = [&] {
    AttentionMaps maps;
    model->attention_maps(batch, maps);
    auto& generative = *model->generative();
    DecodingState state;
    generative.prefill({.input = batch.input}, state);
    const TokenBatch next{.ids = torch::tensor({1, 2, 3, 4}).unsqueeze(1)};
    return std::vector{model->features(batch), maps.cross.back(),
                       generative.forward(next, state, LogitsAt::last_token())};
  };
  const auto plain = run();
  model->checkpoint_activations(ActivationCheckpointing::every_layer);
  const auto again = run();
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(torch::equal(again[i], plain[i])) << i;
}

TEST(ActivationCheckpointing, TrainsTheSameModelInLessMemory) {
  const TinyWorld world;
  const auto trained = [&](const std::string& checkpointing) {
    const auto run = world.path(checkpointing);
    train(world.experiment("text_to_text", {"training.activation_checkpointing=" + checkpointing,
                                            "model.n_layers=8", "training.steps=6"}),
          {.run_dir = run});
    return run;
  };
  const auto plain = trained("none"), again = trained("every_layer");
  EXPECT_EQ(read_file(again / "model.safetensors"), read_file(plain / "model.safetensors"));
  const auto bytes = [](const std::filesystem::path& run) {
    return static_cast<double>(read_training_state(*newest_checkpoint(run)).peak_memory_bytes);
  };
  EXPECT_LT(bytes(again), 0.7 * bytes(plain));
}

}  // namespace
}  // namespace zoo::testing
