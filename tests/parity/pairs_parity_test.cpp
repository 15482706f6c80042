// Models of pictures and texts as transformers 5 and 4 write them, opened as the commands open them, against
// what transformers computes.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "analysis/embeddings.h"
#include "checkpoints/run.h"
#include "interop/foreign_model.h"
#include "models/comparing_model.h"
#include "tasks/matching/contrastive_loss.h"
#include "tasks/matching/text_rows.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr double kPairTolerance = 1e-4;

/// A directory that interop_pairs.py makes.
struct Pair {
  Transformers version;
  std::string name;
};

class ForeignPairs : public ReferenceTest, public ::testing::WithParamInterface<Pair> {
 protected:
  ForeignPairs() : ReferenceTest("reference_interop.py", GetParam().version) {}

  std::filesystem::path directory() const { return file(GetParam().name).replace_extension(); }
  SafetensorsFile reference() const { return SafetensorsFile(file(GetParam().name)); }
  std::string picture() const { return directory().replace_extension(".png").string(); }

  /// Both sides of a batch.
  Batch batch() const {
    const auto reference = this->reference();
    Batch batch;
    batch.input = {.ids = reference.tensor("ids"), .lengths = reference.tensor("lengths")};
    batch.fields = {{fields::kImages, reference.tensor("images")}};
    return batch;
  }
};

/// LABELS and TEMPLATE of interop_pairs.py.
const std::vector<std::string> kPairLabels = {"a dog", "The cat sat on it.", "trees"};
const std::string kPairTemplate = "a photo of {}, it was 1984";

TEST_P(ForeignPairs, CompareAsTransformersDoes) {
  const torch::NoGradGuard no_grad;
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  auto& model = *comparing_of(run.model());
  const auto images = model.image_vectors(batch()), texts = model.text_vectors(batch());
  expect_close(images, reference.tensor("image_vectors"), "vectors of pictures", kPairTolerance);
  expect_close(texts, reference.tensor("text_vectors"), "vectors of texts", kPairTolerance);
  const auto scores = model.scores(images, texts);
  expect_close(scores, reference.tensor("logits_per_image"), "scores", kPairTolerance);
  expect_close(scores.t(), reference.tensor("logits_per_text"), "scores of texts", kPairTolerance);
}

TEST_P(ForeignPairs, HaveTheLossAndTheGradientsOfTransformers) {
  const auto run = Run::open(directory());
  auto& model = run.model();
  for (auto& parameter : model.parameters()) parameter.requires_grad_(true);
  const ContrastiveLoss objective;
  const auto batch = this->batch();
  const auto n = static_cast<double>(objective.n_targets(batch));
  const auto loss = objective.loss(model, batch) / n;
  expect_close(loss.detach(), reference().tensor("loss"), "loss", kPairTolerance);
  loss.backward();
  // The directory has the gradients in the place of the weights.
  const auto gradients = open_foreign(directory().parent_path() / "gradients" / GetParam().name).tensors;
  for (const auto& item : model.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    const auto expected = gradients->tensor(item.key());
    // Relative to the largest number, but where all are nearly 0, as those of biases of keys are.
    constexpr double smallest = 1e-2;
    const auto scale = expected.abs().max().clamp_min(smallest);
    expect_close(item.value().grad() / scale, expected / scale, "gradient of " + item.key(), kPairTolerance);
  }
}

TEST_P(ForeignPairs, PrepareAndClassifyPicturesAsTransformersDoes) {
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  // Both programs resize the picture and round its pixels.
  constexpr double a_level = 1.5 / 255 / 0.25, close = 5e-3;
  const auto pixels = run.task().read_inputs({picture()}).batch.field(fields::kImages);
  expect_close(pixels, reference.tensor("pixels"), "pixels", a_level);
  for (const bool with_template : {false, true}) {
    PredictOptions options{.labels = kPairLabels};
    if (with_template) options.label_template = kPairTemplate;
    const auto said = run.task().predict(run.model(), {picture()}, options).front();
    const auto expected = reference.tensor(with_template ? "template_probabilities" : "probabilities")[0];
    ASSERT_EQ(std::ssize(said.labels()), expected.numel());
    double last = 1;
    for (const auto& [label, probability] : said.labels()) {
      const auto number = std::ranges::find(kPairLabels, label) - kPairLabels.begin();
      EXPECT_NEAR(probability, expected[number].item<double>(), close) << label;
      EXPECT_LE(probability, last);
      last = probability;
    }
  }
}

/// The rows of transformers, which are padded, have ours at their beginning.
TEST_P(ForeignPairs, ReadTextsAsTransformersDoes) {
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  for (const std::string key : {"", "template_"}) {
    const auto expected = reference.tensor(key + "tokens");
    for (int64_t i = 0; i < expected.size(0); ++i) {
      auto text = kPairLabels[static_cast<size_t>(i)];
      if (!key.empty()) text = std::string(kPairTemplate).replace(kPairTemplate.find("{}"), 2, text);
      const auto row = text_row(run.tokenizer(), text, run.experiment().data.sequence_length);
      const auto n = std::ssize(row);
      ASSERT_LE(n, expected.size(1));
      EXPECT_TRUE(torch::tensor(row).equal(expected[i].narrow(0, 0, n))) << text << ": " << expected[i];
      const auto rest = expected[i].narrow(0, n, expected.size(1) - n);
      EXPECT_TRUE((rest == run.tokenizer().special().pad).all().item<bool>()) << text;
    }
  }
}

TEST_P(ForeignPairs, EmbedTextsAndPicturesInOneSpace) {
  const torch::NoGradGuard no_grad;
  const auto run = Run::open(directory());
  auto& model = *comparing_of(run.model());
  const auto options = embed_options(run);
  const auto texts = embed(run.model(), run.tokenizer(), kPairLabels, options).vectors;
  const auto pictures = embed_images(run, {picture()}, {}).vectors;
  const auto scores = model.scores(pictures, texts);
  const bool is_softmax = model.pair_scores() == PairScores::softmax;
  expect_close(is_softmax ? scores.softmax(1) : scores.sigmoid(), reference().tensor("probabilities"),
               "probabilities", 5e-3);
}

const auto name_of_pair = [](const auto& test) {
  return test.param.name + (test.param.version == Transformers::newest ? "" : "_of_version_4");
};

std::vector<Pair> pair_cases() {
  const std::vector<std::pair<std::string, int>> families = {
      {"clip", 3}, {"siglip", 3}, {"clip_published", 1}};
  std::vector<Pair> result;
  for (const auto version : {Transformers::newest, Transformers::of_version_4}) {
    for (const auto& [family, n] : families) {
      for (int i = 0; i < n; ++i) result.push_back({version, family + "_" + std::to_string(i)});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Of, ForeignPairs, ::testing::ValuesIn(pair_cases()), name_of_pair);

}  // namespace
}  // namespace zoo::testing
