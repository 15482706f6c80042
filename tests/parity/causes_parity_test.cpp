// The lens, ablations, patches and parts of a logit, against hooks on transformers' models.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "analysis/causes/ablation.h"
#include "analysis/causes/attribution.h"
#include "analysis/causes/contributions.h"
#include "analysis/causes/lens.h"
#include "analysis/causes/lens_training.h"
#include "analysis/causes/patching.h"
#include "checkpoints/run.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr double kOfHooks = 1e-4;
// As in reference_causes.py.
constexpr int64_t kChangedLayer = 1, kChangedHead = 1, kAskedPlace = 6, kAskedOutput = 17,
                  kComparedOutput = 4, kSteps = 20, kBaselineToken = 7, kLensSteps = 4;
constexpr double kLensRate = 0.02;
const std::vector<int64_t> kChangedPositions = {2, 5};

class Causes : public ReferenceTest, public ::testing::WithParamInterface<std::string> {
 protected:
  Causes() : ReferenceTest("reference_causes.py") {}

  zoo::Run open() const { return zoo::Run::open(file(GetParam()).replace_extension()); }
  SafetensorsFile reference() const { return SafetensorsFile(file(GetParam())); }
  bool decodes() const { return GetParam() == "t5"; }
  /// The side whose layers are compared.
  StackSide side() const { return decodes() ? StackSide::decoder : StackSide::only; }
  int64_t place() const { return GetParam() == "vit" ? 0 : kAskedPlace; }

  AblatedPart part(ActivationKind kind, int64_t layer, std::optional<int64_t> head = {}) const {
    return {.place = {.kind = kind, .layer = layer, .side = side()}, .head = head};
  }
};

/// Rows `first` … `first` + `count` - 1 of the inputs.
Batch some_rows(const SafetensorsFile& reference, int64_t first, int64_t count) {
  const auto rows = [&](const std::string& name) { return reference.tensor(name).narrow(0, first, count); };
  Batch batch;
  if (reference.contains("images")) {
    batch.fields.emplace(fields::kImages, rows("images"));
    batch.targets = torch::zeros({count}, torch::kInt64);
    return batch;
  }
  batch.input.ids = rows("ids");
  if (reference.contains("target")) batch.decoder.ids = rows("target");
  batch.targets =
      torch::zeros({(batch.decoder.defined() ? batch.decoder : batch.input).ids.numel()}, torch::kInt64);
  return batch;
}

TEST_P(Causes, TheLensSaysWhatTransformersSaysAfterEachLayer) {
  const auto run = open();
  const auto expected = reference().tensor("lens");
  int64_t n_depths = 0;
  lens_logits(run.model(), some_rows(reference(), 0, 1), [&](int64_t depth, const torch::Tensor& logits) {
    expect_close(logits, expected[depth], "depth " + std::to_string(depth), kOfHooks);
    ++n_depths;
  });
  EXPECT_EQ(n_depths, expected.size(0));
}

TEST_P(Causes, TheLensReadsThroughTheMapsThatItIsGiven) {
  const auto run = open();
  const auto reference = this->reference();
  const auto weight = reference.tensor("mapped/weight"), bias = reference.tensor("mapped/bias"),
             expected = reference.tensor("mapped/lens");
  TrainedLens lens;
  for (int64_t depth = 0; depth < weight.size(0); ++depth)
    lens.push_back({.weight = weight[depth], .bias = bias[depth]});
  int64_t n_depths = 0;
  const auto look = [&](int64_t depth, const torch::Tensor& logits) {
    expect_close(logits, expected[depth], "depth " + std::to_string(depth), kOfHooks);
    ++n_depths;
  };
  lens_logits(run.model(), some_rows(reference, 0, 1), look, lens);
  EXPECT_EQ(n_depths, expected.size(0));
}

TEST_P(Causes, ALensIsTrainedAsByTorchsAdam) {
  const auto run = open();
  const auto reference = this->reference();
  const auto training = train_lens(run.model(), {some_rows(reference, 0, 1), some_rows(reference, 1, 1)},
                                   {.steps = kLensSteps, .lr = kLensRate});
  const auto expect = [&](const std::string& name, const std::vector<double>& values) {
    const auto expected = reference.tensor("trained/" + name).to(torch::kDouble);
    expect_close(torch::tensor(values, torch::kDouble), expected, name, kOfHooks);
  };
  expect("before", training.before);
  expect("after", training.after);
  const auto weight = reference.tensor("trained/weight"), bias = reference.tensor("trained/bias");
  ASSERT_EQ(std::ssize(training.lens), weight.size(0));
  for (size_t depth = 0; depth < training.lens.size(); ++depth) {
    const auto at = static_cast<int64_t>(depth);
    const auto where = " of depth " + std::to_string(depth);
    expect_close(training.lens[depth].weight, weight[at], "weight" + where, kOfHooks);
    expect_close(training.lens[depth].bias, bias[at], "bias" + where, kOfHooks);
  }
}

TEST_P(Causes, AblationsAreThoseOfHooks) {
  const auto run = open();
  const auto reference = this->reference();
  for (const auto by : {AblationBy::zero, AblationBy::mean, AblationBy::resample}) {
    Ablation ablation(run.model(), {some_rows(reference, 0, 2)}, by);
    const auto expect = [&](const std::string& what, const AblatedPart& part,
                            const std::vector<int64_t>& positions = {}) {
      const auto name = std::string(name_of(by)) + "_" + what;
      const auto expected = reference.tensor(name);
      expect_close(ablation.logits(0, {part}, positions).view_as(expected), expected, name, kOfHooks);
    };
    const auto head = part(ActivationKind::attention_heads, kChangedLayer, kChangedHead);
    expect("head", head);
    expect("positions", head, kChangedPositions);
    expect("attention", part(ActivationKind::attention, kChangedLayer));
    expect("feed_forward", part(ActivationKind::feed_forward, kChangedLayer - 1));
    if (!decodes()) continue;
    expect("cross", part(ActivationKind::cross_attention_heads, kChangedLayer, kChangedHead));
    if (by == AblationBy::zero) expect("source", ablated_part("encoder.0.1"));
  }
}

TEST_P(Causes, PatchesAreThoseOfHooks) {
  const auto run = open();
  const auto reference = this->reference();
  const auto clean = some_rows(reference, 0, 1), corrupt = some_rows(reference, 1, 1);
  const auto expect = [&](const std::string& name, const std::vector<Patch>& patches) {
    const auto expected = reference.tensor(name);
    expect_close(patched_logits(run.model(), clean, corrupt, place(), patches).view(expected.sizes()),
                 expected.to(torch::kDouble), name, kOfHooks);
  };
  const auto n_layers = reference.shape("patch_heads")[0], n_heads = reference.shape("patch_heads")[1],
             length = reference.shape("patch_residual")[1];
  std::vector<Patch> heads;
  for (int64_t layer = 0; layer < n_layers; ++layer)
    for (int64_t head = 0; head < n_heads; ++head)
      heads.push_back({.part = part(ActivationKind::attention_heads, layer, head)});
  expect("patch_heads", heads);
  for (const auto& [name, kind] : {std::pair("patch_residual", ActivationKind::residual),
                                   {"patch_attention", ActivationKind::attention},
                                   {"patch_feed_forward", ActivationKind::feed_forward}}) {
    std::vector<Patch> patches;
    for (int64_t layer = 0; layer < n_layers; ++layer)
      for (int64_t t = 0; t < length; ++t) patches.push_back({.part = part(kind, layer), .position = t});
    expect(name, patches);
  }
}

TEST_P(Causes, PartsOfALogitAreThoseOfWrittenOutNormsAndAddUp) {
  const auto run = open();
  const auto reference = this->reference();
  const auto batch = some_rows(reference, 0, 1);
  const int64_t output = GetParam() == "vit" ? kAskedOutput % 3 : kAskedOutput;
  const auto found = logit_contributions(run.model(), batch, place(), output);
  double sum = 0;
  std::vector<std::string> names;
  for (const auto& [name, logit] : found.parts) {
    sum += logit;
    names.push_back(name);
    ASSERT_TRUE(reference.contains("part/" + name)) << name;
    EXPECT_NEAR(logit, reference.tensor("part/" + name).item<double>(), kOfHooks) << name;
  }
  EXPECT_NEAR(sum, found.logit, kOfHooks);
  EXPECT_NEAR(found.logit, reference.tensor("logits")[0][place()][output].item<double>(), kOfHooks);
  for (const auto& name : reference.names()) {
    if (name.starts_with("part/")) {
      EXPECT_EQ(std::ranges::count(names, name.substr(5)), 1) << name;
    }
  }
}

TEST_P(Causes, AttributionsAreThoseOfTransformersGradients) {
  const auto run = open();
  const auto reference = this->reference();
  const bool is_picture = GetParam() == "vit";
  Question question{.batch = some_rows(reference, 0, 1)};
  const auto n_targets = static_cast<size_t>(question.batch.n_targets());
  question.places.assign(n_targets, "x");
  question.targets.assign(n_targets, -1);
  question.source_tokens.assign(9, "x");
  AttributionOptions options{.baseline_token = kBaselineToken,
                             .steps = kSteps,
                             .place = place(),
                             .answer = is_picture ? kAskedOutput % 3 : kAskedOutput,
                             .against = is_picture ? kComparedOutput % 3 : kComparedOutput};
  const auto expect = [&](const std::string& by) {
    const auto report = attribution_report(run.model(), question, options);
    const auto close = [&](const std::vector<double>& values, const std::string& side) {
      const auto expected = reference.tensor("attribution/" + by + "/" + side);
      EXPECT_EQ(values.size(), static_cast<size_t>(expected.numel()));
      expect_close(torch::tensor(values, torch::kDouble).view(expected.sizes()), expected, by, kOfHooks);
    };
    close(report.source, "source");
    EXPECT_EQ(decodes(), !report.target.empty());
    if (decodes()) close(report.target, "target");
    if (options.by == AttributionBy::gradient_input) return;
    const auto scores = reference.tensor("scores/" + by);
    EXPECT_NEAR(report.baseline_score, scores[0].item<double>(), kOfHooks) << by;
    EXPECT_NEAR(report.score, scores[1].item<double>(), kOfHooks) << by;
  };
  expect("zero");
  options.baseline = AttributionBaseline::mean;
  expect("mean");
  options.baseline = AttributionBaseline::pad;
  if (!is_picture) expect("token");
  options.by = AttributionBy::gradient_input;
  options.baseline = AttributionBaseline::zero;
  expect("gradient_input");
}

INSTANTIATE_TEST_SUITE_P(Models, Causes, ::testing::Values("gpt2", "llama", "bert", "t5", "vit"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace zoo::testing
