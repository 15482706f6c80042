// Ten steps of AdamW against torch.optim.AdamW: equal weights and batches must give equal losses.

#include "models/model.h"
#include "tests/parity/reference.h"
#include "tests/support/small_models.h"
#include "training/loss.h"
#include "training/optimizer.h"

namespace zoo::testing {
namespace {

class OptimizerParity : public ReferenceTest {
 protected:
  OptimizerParity() : ReferenceTest("reference_models.py") {}

  void check(const std::string& name, const ModelConfig& config, bool decay_all, double label_smoothing) {
    SCOPED_TRACE(name);
    constexpr double kLearningRate = 3e-3;
    const auto model = make_model(config, {.vocab_size = kVocabulary, .start_token = kStartToken});
    ReferenceCase reference(file(name));
    reference.load(*model);
    Optimizer optimizer(
        {.lr = kLearningRate, .betas = {0.9, 0.98}, .weight_decay = 0.1, .decay_all = decay_all},
        model->named_parameters());
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
      const auto loss = cross_entropy_sum(*model, model->features(batch), batch.targets, label_smoothing) /
                        static_cast<double>(batch.n_targets());
      loss.backward();
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
  auto config = small_config(Architecture::decoder);
  config.d_ff = 96;
  config.activation = Activation::gelu_tanh;
  check("adamw_gpt2", config, /*decay_all=*/false, 0.0);
  check("adamw_gpt2_decay_all", config, /*decay_all=*/true, 0.0);
}

TEST_F(OptimizerParity, TenStepsOfTheOriginalTransformer) {
  auto config = small_config(Architecture::encoder_decoder, Position::sinusoidal);
  config.activation = Activation::relu;
  config.norm_placement = NormPlacement::post;
  config.scale_embeddings = true;
  check("adamw_transformer", config, /*decay_all=*/false, 0.1);
}

}  // namespace
}  // namespace zoo::testing
