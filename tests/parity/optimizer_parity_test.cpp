// Ten steps of the optimisers against those of PyTorch, or a paper's formula in Python. AdamW in whole
// models: equal weights and batches must give equal losses. The others on given gradients.

#include "models/families/families.h"
#include "optimizers/optimizer.h"
#include "tasks/token_cross_entropy.h"
#include "tests/parity/reference.h"
#include "tests/support/small_models.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

class OptimizerParity : public ReferenceTest {
 protected:
  OptimizerParity() : ReferenceTest("reference_models.py") {}

  void check(const std::string& name, const ModelConfig& config, DecayedParameters decayed,
             double label_smoothing) {
    SCOPED_TRACE(name);
    constexpr double kLearningRate = 3e-3;
    const auto model = initialized_model(config, {.vocab_size = kVocabulary, .start_token = kStartToken});
    ReferenceCase reference(file(name));
    reference.load(*model);
    GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(
                                             TokenCrossEntropyOptions{.label_smoothing = label_smoothing}));
    Optimizer optimizer({.lr = kLearningRate, .betas = {0.9, 0.98}, .weight_decay = 0.1, .decayed = decayed},
                        parameters_of(*model));
    const auto losses = reference.output("losses"), norms = reference.output("gradient_norms");
    ASSERT_EQ(losses.size(0), 10);
    for (int64_t step = 0; step < losses.size(0); ++step) {
      const auto given = reference.names("input/");
      const auto input = [&](const std::string& key) {
        const auto full = key + "_" + std::to_string(step);
        const bool there = std::find(given.begin(), given.end(), full) != given.end();
        return there ? reference.input(full) : torch::Tensor();
      };
      Batch batch;
      batch.input = {input("ids"), input("lengths")};
      batch.decoder = {input("decoder_ids"), {}};
      batch.targets = input("targets");
      optimizer.zero_grad();
      const auto loss = gradients.differentiate({batch});
      const auto norm = clip_grad_norm(optimizer.gradients(), 1.0);
      optimizer.step(kLearningRate);
      EXPECT_NEAR(loss.item<double>(), losses[step].item<double>(), 1e-5) << "step " << step;
      EXPECT_NEAR(norm.item<double>() / norms[step].item<double>(), 1.0, 1e-4) << "step " << step;
    }
    for (const auto& item : model->named_parameters()) {
      // A bias of all keys has no gradient but rounding, which Adam blows up to full steps.
      if (item.key().ends_with(".k.bias")) continue;
      const auto expected = reference.output(item.key());
      EXPECT_LE((item.value() - expected).norm().item<double>(), 1e-3 * expected.norm().item<double>())
          << item.key();
    }
  }
};

TEST_F(OptimizerParity, TenStepsOfGpt2) {
  check("adamw_gpt2", small_gpt2(), DecayedParameters::matrices, 0.0);
  check("adamw_gpt2_decay_all", small_gpt2(), DecayedParameters::all, 0.0);
}

TEST_F(OptimizerParity, TenStepsOfTheOriginalTransformer) {
  auto config = small_config(Architecture::encoder_decoder, Position::sinusoidal);
  config.activation = Activation::relu;
  config.norm_placement = NormPlacement::post;
  config.scale_embeddings = true;
  check("adamw_transformer", config, DecayedParameters::matrices, 0.1);
}

class OptimizerOnGradients : public ReferenceTest {
 protected:
  OptimizerOnGradients() : ReferenceTest("reference_optimizers.py") {}

  void check(const std::string& name, const OptimizerConfig& config) {
    SCOPED_TRACE(name);
    const ReferenceCase reference(file(name));
    std::vector<Parameter> parameters;
    for (const auto& key : reference.names("param/")) {
      const auto tensor = reference.get("param/" + key).requires_grad_(true);
      const auto role = key.starts_with("hidden.") ? ParameterRole::hidden_matrix
                        : key == "table"           ? ParameterRole::embedding
                        : tensor.dim() < 2         ? ParameterRole::vector
                                                   : ParameterRole::other_matrix;
      parameters.push_back({key, tensor, role});
    }
    Optimizer optimizer(config, parameters);
    for (int64_t step = 0; step < 10; ++step) {
      const auto at_step = [&](const std::string& key) { return key + "_" + std::to_string(step); };
      for (auto& parameter : parameters)
        parameter.tensor.mutable_grad() = reference.get("input/" + at_step(parameter.name));
      optimizer.step(config.lr * (1 - 0.07 * static_cast<double>(step)));
      for (const auto& parameter : parameters) {
        const auto expected = reference.output(at_step(parameter.name));
        EXPECT_LE((parameter.tensor - expected).norm().item<double>(), 1e-6 * expected.norm().item<double>())
            << parameter.name << " after step " << step;
      }
    }
  }
};

TEST_F(OptimizerOnGradients, AdafactorIsThatOfTorch) {
  OptimizerConfig config{.type = OptimizerKind::adafactor, .lr = 0.3, .weight_decay = 0.1};
  check("adafactor", config);
  config.lr = 0.05;
  config.adafactor = {.beta2_decay = -0.5, .clip_threshold = 1.05, .min_rms = 1.2};
  check("adafactor_options", config);
}

TEST_F(OptimizerOnGradients, LionIsThatOfThePaper) {
  check("lion", {.type = OptimizerKind::lion, .lr = 0.02, .betas = {0.9, 0.99}, .weight_decay = 0.3});
}

TEST_F(OptimizerOnGradients, MuonIsThatOfTorchAndTheRestIsAdamW) {
  OptimizerConfig config{.type = OptimizerKind::muon,
                         .lr = 0.05,
                         .betas = {0.9, 0.98},
                         .weight_decay = 0.1,
                         .decayed = DecayedParameters::matrices_without_embeddings,
                         .muon = {.adamw_lr = 0.01}};
  check("muon_original", config);
  config.muon.lr_scale = MuonLrScale::match_rms_adamw;
  check("muon_match_rms_adamw", config);
  config.weight_decay = 0;
  config.muon = {.momentum = 0.8, .nesterov = false, .newton_schulz_steps = 3, .adamw_lr = 0.01};
  check("muon_options", config);
}

}  // namespace
}  // namespace zoo::testing
