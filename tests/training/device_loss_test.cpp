// The loss of language models on a GPU, and the copies of weights in 16 bits.

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "kernels/cross_entropy.h"
#include "layers/weights/weights.h"
#include "models/precision.h"
#include "optimizers/optimizer.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/device_work.h"
#include "tests/support/small_models.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

using torch::autograd::grad;

class LossOnAGpu : public OnAGpu {
 protected:
  torch::Tensor here(const torch::Tensor& tensor) const { return tensor.to(torch::kCPU); }
};
INSTANTIATE_TEST_SUITE_P(Each, LossOnAGpu, both_devices(), device_name);

/// Of a number, in units of its size.
double tolerance_of(torch::ScalarType type) {
  return type == torch::kFloat ? 2e-6 : type == torch::kHalf ? 1e-3 : 8e-3;
}

TEST_P(LossOnAGpu, CrossEntropyIsThatOfTorch) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      SCOPED_TRACE(fmt::format("{}, smoothing {}", torch::toString(type), smoothing));
      torch::manual_seed(1);
      const auto values = (torch::randn({37, 101}) * 5).to(type), targets = torch::randint(101, {37});
      const auto theirs = values.to(torch::kFloat, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
      const auto wanted =
          torch::nn::functional::cross_entropy(theirs, targets,
                                               torch::nn::functional::CrossEntropyFuncOptions()
                                                   .reduction(torch::kSum)
                                                   .label_smoothing(smoothing)) *
          0.25;
      wanted.backward();
      const CrossEntropyOptions options{.label_smoothing = smoothing, .weight = 0.25};
      const auto near = [&](const torch::Tensor& found, const torch::Tensor& expected, double tolerance) {
        EXPECT_LE((here(found).to(torch::kFloat) - expected).norm().item<double>(),
                  tolerance * expected.norm().item<double>());
      };
      auto logits = values.to(device(), /*non_blocking=*/false, /*copy=*/true);
      const auto direct = cross_entropy_with_gradient(logits, targets.to(device()), options);
      EXPECT_EQ(direct.gradient.scalar_type(), type);
      near(direct.loss, wanted.detach(), 2e-6);
      near(direct.gradient, theirs.grad(), tolerance_of(type));
      // By autograd, with a factor behind it.
      logits = values.to(device(), /*non_blocking=*/false, /*copy=*/true).requires_grad_();
      const auto loss = cross_entropy_sum(logits, targets.to(device()), options);
      (loss * 3).backward();
      near(loss.detach(), wanted.detach(), 2e-6);
      near(logits.grad() / 3, theirs.grad(), 2 * tolerance_of(type));
    }
  }
}

TEST_P(LossOnAGpu, LargeLogits) {
  const auto values = torch::tensor({{1e4F, -1e4F, 0.0F}, {-1e4F, -1e4F, -1e4F}});
  const auto [loss, gradient] =
      cross_entropy_with_gradient(values.to(device()), torch::tensor({0, 1}, torch::kLong).to(device()));
  EXPECT_NEAR(loss.item<double>(), std::log(3.0), 1e-6);
  EXPECT_TRUE(torch::allclose(
      here(gradient), torch::tensor({{0.0F, 0.0F, 0.0F}, {1 / 3.0F, -2 / 3.0F, 1 / 3.0F}}), 1e-5, 1e-6));
}

TEST_P(LossOnAGpu, NoRowsHaveNoLoss) {
  const auto logits = torch::zeros({0, 5}).to(device());
  const auto [loss, gradient] =
      cross_entropy_with_gradient(logits, torch::zeros({0}, torch::kLong).to(device()));
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_EQ(gradient.sizes(), logits.sizes());
}

/// The heads of language models: tied or not, with bias, scale and soft cap.
std::vector<ModelConfig> heads() {
  std::vector<ModelConfig> configs(4, small_config(Architecture::decoder));
  configs[1].tie_embeddings = false;
  configs[2].tie_embeddings = false;
  configs[2].output_bias = true;
  configs[2].output_scale = 0.5;
  configs[3].logits_softcap = 3;
  return configs;
}

// In one piece and in several, in fp32 and in 16 bits: the gradients of all parameters, against autograd's on
// the processor.
TEST_P(LossOnAGpu, GradientsOfHeadsAreThoseOfTorch) {
  for (const auto& config : heads()) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const auto precision : {Precision::fp32, Precision::bf16}) {
        SCOPED_TRACE(fmt::format("tied {}, soft cap {}, smoothing {}, {}", config.tie_embeddings,
                                 config.logits_softcap.value_or(0), smoothing, name_of(precision)));
        const auto model = random_model(config), there = random_model(config);
        there->to(device());
        const auto batch = small_batch(Architecture::decoder, {tokens(5, 7)});
        const auto logits = model->logits(model->features(batch));
        const auto wanted_loss =
            torch::nn::functional::cross_entropy(logits, batch.targets,
                                                 torch::nn::functional::CrossEntropyFuncOptions()
                                                     .reduction(torch::kSum)
                                                     .label_smoothing(smoothing)) *
            0.5;
        const auto wanted = grad({wanted_loss}, model->parameters());
        for (const int64_t piece : {1000, 8}) {
          const TokenCrossEntropy objective(
              {.label_smoothing = smoothing, .logits_bytes = 1, .fewest_targets = piece});
          const PrecisionScope scope(precision, device().type());
          const auto found = objective.differentiate(*there, there->on_device(batch),
                                                     {.parameters = there->parameters(), .weight = 0.5});
          const double tolerance = precision == Precision::fp32 ? 1e-4 : 8e-2;
          EXPECT_NEAR(found.loss.item<double>(), wanted_loss.item<double>(),
                      tolerance * wanted_loss.item<double>());
          for (size_t i = 0; i < wanted.size(); ++i) {
            ASSERT_EQ(found.gradients[i].scalar_type(), torch::kFloat);
            EXPECT_LE((here(found.gradients[i]) - wanted[i]).norm().item<double>(),
                      tolerance * (wanted[i].norm().item<double>() + 0.1))
                << model->named_parameters().keys()[i] << ", pieces of " << piece;
          }
        }
      }
    }
  }
}

class RoundedWeightsOnAGpu : public LossOnAGpu {};
INSTANTIATE_TEST_SUITE_P(Each, RoundedWeightsOnAGpu, both_devices(), device_name);

// Queries, keys and values in one matrix, of which cross-attention reads parts; and adapters beside it.
TEST_P(RoundedWeightsOnAGpu, GiveTheNumbersThatRoundingAtEachUseGives) {
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    for (const auto type : {torch::kBFloat16, torch::kHalf}) {
      const auto model = random_model(small_config(architecture));
      model->to(device());
      const auto batch = model->on_device(small_batch(architecture, {tokens(3, 6)}));
      const auto precision = type == torch::kHalf ? Precision::fp16 : Precision::bf16;
      const auto run = [&] {
        const PrecisionScope scope(precision, device().type());
        return TokenCrossEntropy().differentiate(*model, batch, {.parameters = model->parameters()});
      };
      const auto expect_same = [&](const LossAndGradients& found, const LossAndGradients& wanted) {
        EXPECT_EQ(found.loss.item<double>(), wanted.loss.item<double>());
        for (size_t i = 0; i < wanted.gradients.size(); ++i)
          EXPECT_LE((here(found.gradients[i]) - here(wanted.gradients[i])).norm().item<double>(),
                    1e-2 * here(wanted.gradients[i]).norm().item<double>() + 1e-6)
              << model->named_parameters().keys()[i];
      };
      const auto plain = run();
      RoundedWeights copies(*model, type);
      expect_same(run(), plain);

      // A weight that has changed is read, whether the copies know it or not.
      const torch::NoGradGuard no_grad;
      for (auto& parameter : model->parameters()) parameter.mul_(1.25);
      const auto recording = [&] {
        const torch::AutoGradMode mode(true);
        return run();
      };
      const auto changed = recording();
      EXPECT_NE(changed.loss.item<double>(), plain.loss.item<double>());
      copies.renew_if_changed();
      expect_same(recording(), changed);
    }
  }
}

// LibTorch's fused optimisers do not count as a change of a tensor, so the trainer tells.
TEST_P(RoundedWeightsOnAGpu, AreRenewedAfterAStep) {
  const auto model = random_model(small_config(Architecture::decoder));
  model->to(device());
  RoundedWeights copies(*model, torch::kBFloat16);
  Optimizer optimizer({.lr = 0.1}, parameters_of(*model));
  const auto batch = model->on_device(small_batch(Architecture::decoder, {tokens(3, 6)}));
  const auto loss = [&] {
    const PrecisionScope scope(Precision::bf16, device().type());
    return TokenCrossEntropy().loss(*model, batch).item<double>();
  };
  TokenCrossEntropy().loss(*model, batch).backward();
  optimizer.step(0.1);
  copies.renew();
  const double with_copies = loss();
  for (auto& parameter : model->parameters()) {
    const torch::NoGradGuard no_grad;
    parameter.add_(0);  // a change that the copies do not know: weights are rounded at each use
  }
  EXPECT_EQ(loss(), with_copies);
}

TEST_P(RoundedWeightsOnAGpu, AreMadeOnceAStepInOneOperation) {
  if (!is_strict()) GTEST_SKIP() << "only the strict device counts";
  const auto model = random_model(small_config(Architecture::decoder));
  model->to(device());
  const auto batch = model->on_device(small_batch(Architecture::decoder, {tokens(3, 6)}));
  const auto copies_in = [&] {
    return work_of([&] {
             const PrecisionScope scope(Precision::bf16, device().type());
             TokenCrossEntropy().loss(*model, batch);
           })
        .by_operation.at("aten::_copy_from");
  };
  const auto before = copies_in();
  RoundedWeights copies(*model, torch::kBFloat16);
  // Of each layer four matrices, and that of the head.
  EXPECT_LE(copies_in(), before - (2 * 4 + 1));
  EXPECT_EQ(work_of([&] { copies.renew(); }).kernels, 1);
}

}  // namespace
}  // namespace zoo::testing
