// Fifty steps of LoRA against a plain loop of PyTorch, and the lengths of cut pairs against tokenizers.

#include <torch/types.h>

#include "models/families/families.h"
#include "models/lora.h"
#include "optimizers/optimizer.h"
#include "tasks/token_cross_entropy.h"
#include "tests/parity/reference.h"
#include "tests/support/small_models.h"
#include "text/batches/text_batches.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

class LoraParity : public ReferenceTest {
 protected:
  LoraParity() : ReferenceTest("reference_lora.py") {}

  /// The name and the values of a parameter of the reference, which has one matrix for each projection, as
  /// the parameter `name` of a model with `projection`.
  static torch::Tensor value_of(const ReferenceCase& reference, const std::string& prefix, std::string name,
                                Projection projection) {
    const auto whole = [&](const std::string& of) { return reference.get(prefix + of); };
    const size_t at = name.find(".qkv.");
    if (projection == Projection::separate || at == name.npos) return whole(name);
    const auto before = name.substr(0, at + 1), last = name.substr(at + 5);
    if (const size_t bar = last.rfind('_'); last.starts_with("lora_"))
      return whole(before + last.substr(bar + 1) + "." + last.substr(0, bar));
    return torch::cat(
        {whole(before + "q." + last), whole(before + "k." + last), whole(before + "v." + last)});
  }

  void check(Projection projection, ActivationCheckpointing checkpointing) const {
    auto config = small_gpt2();
    config.projection = projection;
    const auto model = initialized_model(config, {.vocab_size = kVocabulary});
    add_adapters(*model, {.rank = 4, .alpha = 12}, HeadKind::language_modeling);
    model->checkpoint_activations(checkpointing);
    const ReferenceCase reference(file("lora"));
    {
      const torch::NoGradGuard no_grad;
      for (auto& item : model->named_parameters())
        item.value().copy_(value_of(reference, "param/", item.key(), projection));
    }
    GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>());
    Optimizer optimizer({.lr = 1e-2, .betas = {0.9, 0.98}, .weight_decay = 0.1}, parameters_of(*model));
    const auto losses = reference.output("losses"), norms = reference.output("gradient_norms");
    ASSERT_EQ(losses.size(0), 50);
    for (int64_t step = 0; step < 50; ++step) {
      Batch batch;
      batch.input = {reference.get("input/ids_" + std::to_string(step)), {}};
      batch.targets = reference.get("input/targets_" + std::to_string(step));
      optimizer.zero_grad();
      const auto loss = gradients.differentiate({batch});
      const auto norm = clip_grad_norm(optimizer.gradients(), 1.0);
      optimizer.step(1e-2);
      EXPECT_NEAR(loss.item<double>(), losses[step].item<double>(), 2e-5) << "step " << step;
      EXPECT_NEAR(norm.item<double>() / norms[step].item<double>(), 1.0, 1e-3) << "step " << step;
    }
    for (const auto& item : model->named_parameters()) {
      if (!is_adapter_parameter(item.key())) {
        EXPECT_TRUE(torch::equal(item.value(), value_of(reference, "param/", item.key(), projection)))
            << item.key();
        continue;
      }
      const auto expected = value_of(reference, "output/", item.key(), projection);
      EXPECT_LE((item.value() - expected).norm().item<double>(), 1e-3 * expected.norm().item<double>())
          << item.key();
    }
  }
};

TEST_F(LoraParity, FiftyStepsAreThoseOfPyTorch) {
  check(Projection::separate, ActivationCheckpointing::none);
  check(Projection::fused, ActivationCheckpointing::none);
  check(Projection::fused, ActivationCheckpointing::every_layer);
}

TEST_F(LoraParity, PairsAreCutAsByTokenizers) {
  const auto rows = ReferenceCase(file("cut_pairs")).output("rows");
  ASSERT_GT(rows.size(0), 500);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const auto at = [&](int64_t column) { return rows[i][column].item<int64_t>(); };
    EXPECT_EQ(cut_longest_first(at(0), at(1), at(2)), std::pair(at(3), at(4)))
        << at(0) << " and " << at(1) << " in " << at(2);
  }
}

}  // namespace
}  // namespace zoo::testing
