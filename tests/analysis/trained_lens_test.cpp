// Lenses with trained maps. tests/parity/causes_parity_test.cpp compares them with PyTorch.

#include "analysis/causes/trained_lens.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/lens.h"
#include "analysis/causes/lens_training.h"
#include "base/error.h"
#include "io/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 3, kPlaces = 7;

std::vector<Batch> batches_of(const FamilySelection& architecture, int64_t n) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < n; ++i)
    batches.push_back(small_batch(architecture, {.ids = tokens(kRows, kPlaces)}));
  return batches;
}

std::vector<torch::Tensor> logits_of_depths(Model& model, const Batch& batch, const TrainedLens& lens = {}) {
  std::vector<torch::Tensor> all;
  lens_logits(model, batch, [&](int64_t, const torch::Tensor& logits) { all.push_back(logits); }, lens);
  return all;
}

/// The mean of KL(final ‖ depth) over the places of a batch.
std::vector<double> divergences(Model& model, const Batch& batch, const TrainedLens& lens = {}) {
  const auto logits = logits_of_depths(model, batch, lens);
  const auto own = logits.back().to(torch::kDouble).softmax(-1);
  std::vector<double> means;
  for (size_t depth = 0; depth + 1 < logits.size(); ++depth) {
    const auto shares = logits[depth].to(torch::kDouble).softmax(-1);
    means.push_back((own * (own / shares).log()).sum(-1).mean().item<double>());
  }
  return means;
}

bool equal(const TrainedLens& a, const TrainedLens& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = torch::equal(a[i].weight, b[i].weight) && torch::equal(a[i].bias, b[i].bias);
  return same;
}

TEST(TrainedLens, OfZerosHasTheBitsOfThePlainLens) {
  for_each_model(kArchitectures, [](const ModelConfig& config, Model& model) {
    const auto batch = small_batch(config.architecture, {.ids = tokens(1, kPlaces)});
    const auto plain = logits_of_depths(model, batch),
               mapped = logits_of_depths(model, batch, untrained_lens(model));
    ASSERT_EQ(plain.size(), mapped.size());
    for (size_t depth = 0; depth < plain.size(); ++depth)
      EXPECT_TRUE(torch::equal(plain[depth], mapped[depth])) << depth;
  });
}

TEST(TrainedLens, IsTheKindOfAReport) {
  const auto model = random_model(small_config(Architecture::decoder));
  Question question{.batch = small_batch(Architecture::decoder, {.ids = tokens(1, kPlaces)})};
  question.targets.assign(kPlaces, -1);
  question.label = [](int64_t id) { return std::to_string(id); };
  auto lens = untrained_lens(*model);
  lens[1].bias.fill_(3);
  const auto plain = lens_report(*model, question), trained = lens_report(*model, question, {.lens = lens});
  EXPECT_EQ(plain.kind, LensKind::plain);
  EXPECT_EQ(trained.kind, LensKind::trained);
  EXPECT_EQ(trained.depths[0][2].divergence, plain.depths[0][2].divergence);
  EXPECT_NE(trained.depths[1][2].divergence, plain.depths[1][2].divergence);
  EXPECT_EQ(trained.depths[2][2].probability, plain.depths[2][2].probability);
}

TEST(LensTraining, LowersTheDivergenceOfWhatIsHeldOut) {
  for (const auto architecture : kArchitectures) {
    SCOPED_TRACE(name_of(architecture));
    const auto model = random_model(small_config(architecture));
    const auto before = model->parameters();
    std::vector<torch::Tensor> weights;
    for (const auto& parameter : before) weights.push_back(parameter.detach().clone());
    const auto batches = batches_of(architecture, 12);
    int64_t n_steps = 0;
    const auto training =
        train_lens(*model, batches, {.steps = 120, .lr = 0.01}, [&](int64_t done, int64_t all) {
          EXPECT_EQ(done, ++n_steps);
          EXPECT_EQ(all, 120);
        });
    EXPECT_EQ(n_steps, 120);
    ASSERT_EQ(training.before.size(), 2U);
    for (size_t depth = 0; depth < 2; ++depth)
      EXPECT_LT(training.after[depth], 0.8 * training.before[depth]) << depth;
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_TRUE(torch::equal(before[i], weights[i])) << "the model is frozen";
      EXPECT_TRUE(before[i].requires_grad());
      EXPECT_FALSE(before[i].grad().defined());
    }
    EXPECT_FALSE(training.lens.front().weight.requires_grad());
  }
}

TEST(LensTraining, HoldsOutEveryFifthBatchOrTheLastOfFew) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batches = batches_of(Architecture::decoder, 11);
  const LensTrainingOptions options{.steps = 4, .lr = 0.05};
  const auto training = train_lens(*model, batches, options);
  EXPECT_EQ(training.trained_batches, 9);
  EXPECT_EQ(training.held_out_batches, 2);
  EXPECT_EQ(training.held_out_places, 2 * kRows * kPlaces);
  const auto of_fifth = divergences(*model, batches[4]), of_tenth = divergences(*model, batches[9]);
  const auto after_fifth = divergences(*model, batches[4], training.lens),
             after_tenth = divergences(*model, batches[9], training.lens);
  for (size_t depth = 0; depth < 2; ++depth) {
    EXPECT_NEAR(training.before[depth], (of_fifth[depth] + of_tenth[depth]) / 2, 1e-6);
    EXPECT_NEAR(training.after[depth], (after_fifth[depth] + after_tenth[depth]) / 2, 1e-6);
  }
  auto others = batches;
  others[4] = others[9] = batches[0];
  EXPECT_TRUE(equal(train_lens(*model, others, options).lens, training.lens))
      << "what is held out is not read";
  const auto few = train_lens(*model, {batches[0], batches[1], batches[2]}, options);
  EXPECT_EQ(few.trained_batches, 2);
  EXPECT_NEAR(few.before[0], divergences(*model, batches[2])[0], 1e-6);
  // As many are read as the steps can use.
  EXPECT_EQ(batches_for_lens(1), 2);
  EXPECT_EQ(batches_for_lens(8), 10);
  EXPECT_THAT(message_of<UsageError>([&] { train_lens(*model, {batches[0]}); }),
              HasSubstr("the data make one batch"));
}

TEST(LensTraining, DependsOnItsSeedAlone) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batches = batches_of(Architecture::decoder, 7);
  const auto lens_of = [&](const LensTrainingOptions& options) {
    return train_lens(*model, batches, options).lens;
  };
  const auto lens = lens_of({.steps = 12, .lr = 0.01});
  torch::rand({3});
  EXPECT_TRUE(equal(lens_of({.steps = 12, .lr = 0.01}), lens));
  EXPECT_FALSE(equal(lens_of({.steps = 12, .lr = 0.01, .seed = 2}), lens));
}

// Distributions of few places in memory at once change nothing.
TEST(LensTraining, IsTheSameInPieces) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batches = batches_of(Architecture::decoder, 3);
  const auto whole = train_lens(*model, batches, {.steps = 3, .lr = 0.01}),
             pieces = train_lens(*model, batches, {.steps = 3, .lr = 0.01, .most_logits = 4 * kVocabulary});
  for (size_t depth = 0; depth < 2; ++depth) {
    EXPECT_NEAR(pieces.before[depth], whole.before[depth], 1e-9);
    EXPECT_NEAR(pieces.after[depth], whole.after[depth], 1e-4);
    EXPECT_TRUE(close(pieces.lens[depth].weight, whole.lens[depth].weight));
  }
}

// Vectors of texts are means over their tokens, or stand at their last ones: padding is no part of either.
TEST(LensTraining, ReadsTextsThatArePaddedAndPooled) {
  const ModelPurpose classes{.head = HeadKind::classification,
                             .vocab_size = kVocabulary,
                             .n_classes = 3,
                             .start_token = kStartToken};
  auto by_mean = small_config(Architecture::encoder);
  by_mean.text_vector = TextVector::mean;
  for (const auto& config : {by_mean, small_bart()}) {
    const auto model = random_model(config, classes);
    const auto ids = tokens(2, kPlaces);
    const auto row = [&](int64_t i, int64_t length) {
      return Batch{.input = {.ids = ids.narrow(0, i, 1).narrow(1, 0, length)},
                   .targets = torch::zeros({1}, torch::kInt64)};
    };
    const Batch padded{.input = {.ids = ids, .lengths = torch::tensor({kPlaces, int64_t{4}})},
                       .targets = torch::zeros({2}, torch::kInt64)};
    const auto training = train_lens(*model, {padded, padded}, {.steps = 1, .lr = 0.01});
    EXPECT_EQ(training.held_out_places, 2);
    const auto longer = row(0, kPlaces), shorter = row(1, 4);
    const auto first = divergences(*model, longer), second = divergences(*model, shorter);
    for (size_t depth = 0; depth < 2; ++depth)
      EXPECT_NEAR(training.before[depth], (first[depth] + second[depth]) / 2, 1e-5);
    EXPECT_LT(training.after[0], training.before[0]);
  }
}

TEST(TrainedLens, IsKeptInAFileOfItsModel) {
  const TempDir dir;
  const auto model = random_model(small_config(Architecture::decoder));
  const auto batches = batches_of(Architecture::decoder, 2);
  const auto lens = train_lens(*model, batches, {.steps = 2, .lr = 0.01}).lens;
  save_lens(dir / "lens.safetensors", lens, *model);
  EXPECT_TRUE(equal(load_lens(dir / "lens.safetensors", *model), lens));
  EXPECT_EQ(
      SafetensorsFile(dir / "lens.safetensors").names(),
      (std::vector<std::string>{"depths.0.bias", "depths.0.weight", "depths.1.bias", "depths.1.weight"}));

  const auto problem = [&](const std::string& file, const Model& other) {
    return message_of<CheckpointError>([&] { load_lens(dir / file, other); });
  };
  auto deeper = small_config(Architecture::decoder), wider = deeper;
  deeper.n_layers = 3;
  wider.d_model = 32;
  EXPECT_THAT(
      problem("lens.safetensors", *random_model(deeper)),
      HasSubstr("is the lens of a model with 2 layers of width 24, and this model has 3 of width 24"));
  EXPECT_THAT(problem("lens.safetensors", *random_model(wider)),
              HasSubstr("and this model has 2 of width 32"));
  EXPECT_THAT(problem("lens.safetensors", *random_model(small_config(Architecture::decoder),
                                                        purpose_of(Architecture::decoder), 2)),
              HasSubstr("is the lens of a model with other weights"));
  EXPECT_THAT(problem("absent.safetensors", *model), HasSubstr("absent.safetensors"));
  save_safetensors(dir / "model.safetensors", {{"depths.0.bias", torch::zeros({kWidth})}});
  EXPECT_THAT(problem("model.safetensors", *model), HasSubstr("is no trained lens: make one with `zoo lens"));

  // A file of a stranger, with the hash of this model.
  const auto metadata = SafetensorsFile(dir / "lens.safetensors").metadata();
  TensorMap tensors;
  for (const auto& name : SafetensorsFile(dir / "lens.safetensors").names())
    tensors.emplace(name, SafetensorsFile(dir / "lens.safetensors").tensor(name));
  auto changed = tensors;
  changed.at("depths.1.weight") = torch::zeros({kWidth, kWidth + 1});
  save_safetensors(dir / "shape.safetensors", changed, metadata);
  EXPECT_THAT(problem("shape.safetensors", *model), HasSubstr("depths.1.weight"));
  changed = tensors;
  changed.at("depths.1.weight") = torch::full({kWidth, kWidth}, std::nanf(""));
  save_safetensors(dir / "nan.safetensors", changed, metadata);
  EXPECT_THAT(problem("nan.safetensors", *model), HasSubstr("depths.1.weight"));
}

}  // namespace
}  // namespace zoo::testing
