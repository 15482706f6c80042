// The CTC objective against the sum over all paths, and what it does at its edges. parity/speech_parity_test
// compares it with PyTorch's.

#include "tasks/ctc.h"

#include <cmath>
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "generation/ctc_search.h"
#include "models/families/families.h"
#include "models/families/speech_encoder.h"
#include "tests/support/ctc_paths.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

torch::Tensor transcript_of(const Ids& ids) {
  return torch::tensor(ids.empty() ? Ids{-1} : ids, torch::kInt64).unsqueeze(0);
}

TEST(Ctc, IsTheSumOverAllPaths) {
  torch::manual_seed(1);
  const auto logits = torch::randn({1, 5, 3}, torch::kFloat64) * 2;
  double total = 0;
  for (const auto& [text, probability] : probabilities_of_texts(logits[0].log_softmax(-1))) {
    const double loss = ctc_loss_sum(logits, {}, transcript_of(text)).item<double>();
    EXPECT_NEAR(loss, -std::log(probability), 1e-5) << text.size();
    total += std::exp(-loss);
  }
  EXPECT_NEAR(total, 1, 1e-5);
}

TEST(Ctc, HasTheGradientsOfItsDifferences) {
  torch::manual_seed(2);
  const auto logits = torch::randn({2, 6, 4}, torch::kFloat64).requires_grad_();
  const auto lengths = torch::tensor({6, 4}, torch::kInt64);
  const auto transcripts = torch::tensor({{0, 0, 2}, {1, -1, -1}}, torch::kInt64);
  const auto loss_of = [&](const torch::Tensor& values) {
    return ctc_loss_sum(values, lengths, transcripts, 0.5).item<double>();
  };
  ctc_loss_sum(logits, lengths, transcripts, 0.5).backward();
  const torch::NoGradGuard no_grad;
  constexpr double step = 1e-2;
  for (int64_t i = 0; i < logits.numel(); ++i) {
    auto above = logits.detach().clone(), below = above.clone();
    above.view(-1)[i] += step;
    below.view(-1)[i] -= step;
    EXPECT_NEAR(logits.grad().view(-1)[i].item<double>(), (loss_of(above) - loss_of(below)) / (2 * step),
                2e-4);
  }
  EXPECT_EQ(logits.grad()[1].narrow(0, 4, 2).abs().sum().item<double>(), 0) << "padding has no gradient";
}

TEST(Ctc, ATranscriptThatIsTooLongAddsNothing) {
  // Equal neighbours need a blank between them: 3 tokens need 5 vectors.
  const auto logits = torch::randn({2, 4, 3}).requires_grad_();
  const auto transcripts = torch::tensor({{1, 1, 1}, {0, 1, -1}}, torch::kInt64);
  const auto loss = ctc_loss_sum(logits, {}, transcripts);
  loss.backward();
  EXPECT_EQ(logits.grad()[0].abs().sum().item<double>(), 0);
  EXPECT_GT(logits.grad()[1].abs().sum().item<double>(), 0);
  EXPECT_NEAR(loss.item<double>(),
              ctc_loss_sum(logits.narrow(0, 1, 1), {}, transcripts.narrow(0, 1, 1)).item<double>(), 1e-5);
  EXPECT_THROW(ctc_loss_sum(logits, {}, torch::full({2, 1}, 2, torch::kInt64)), c10::Error) << "the blank";
}

// The blank is class 1, and tokens 1 and 2 are classes 2 and 3.
TEST(Ctc, TheBlankMayBeAnyClass) {
  torch::manual_seed(6);
  const auto last = torch::randn({2, 6, 4}, torch::kFloat64) * 2;
  const auto second = last.index_select(2, torch::tensor({0, 3, 1, 2}));
  const auto lengths = torch::tensor({6, 4}, torch::kInt64);
  const auto loss =
      ctc_loss_sum(last, lengths, torch::tensor({{0, 0, 2}, {1, -1, -1}}, torch::kInt64)).item<double>();
  const auto moved = torch::tensor({{0, 0, 3}, {2, -1, -1}}, torch::kInt64);
  EXPECT_NEAR(ctc_loss_sum(second, lengths, moved, 1.0, /*blank=*/1).item<double>(), loss, 1e-5);
  EXPECT_THROW(ctc_loss_sum(second, lengths, moved, 1.0, /*blank=*/0), c10::Error) << "a text with the blank";
  for (const int64_t beam : {1, 5}) {
    const auto expected = ctc_search(last.log_softmax(-1), lengths, beam);
    const auto found = ctc_search(second.log_softmax(-1), lengths, beam, /*blank=*/1);
    for (size_t row = 0; row < 2; ++row) {
      Ids ids;
      for (const int64_t id : expected[row].ids) ids.push_back(id == 0 ? 0 : id + 1);
      EXPECT_EQ(found[row].ids, ids) << beam;
      EXPECT_NEAR(found[row].logprob, expected[row].logprob, 1e-9);
    }
  }
}

TEST(Ctc, AnEmptyTranscriptIsAllBlanks) {
  const auto logits = torch::randn({1, 4, 3});
  const double expected = -logits.log_softmax(-1).select(2, 2).sum().item<double>();
  EXPECT_NEAR(ctc_loss_sum(logits, {}, transcript_of({})).item<double>(), expected, 1e-5);
}

Batch labelled_recordings() {
  Batch batch;
  batch.fields = {{fields::kSpectrograms, torch::randn({3, 6, 16})},
                  {fields::kFrames, torch::tensor({16, 11, 8}, torch::kInt64)},
                  {fields::kTranscripts, torch::tensor({{3, 3, 5}, {1, -1, -1}, {2, 4, -1}}, torch::kInt64)}};
  return batch;
}

std::shared_ptr<Model> small_labeller() {
  auto config = small_config(Architecture::encoder, Position::sinusoidal);
  config.architecture = Selection("speech_encoder", SpeechEncoderConfig{.max_frames = 16});
  return random_model(config, {.head = HeadKind::ctc, .n_classes = 8, .n_mels = 6});
}

// Training splits the rows of a batch over threads, and a batch over steps of a gradient.
TEST(Ctc, ABatchIsTheSumOfItsParts) {
  torch::manual_seed(4);
  const auto model = small_labeller();
  const auto batch = labelled_recordings();
  const CtcObjective objective;
  EXPECT_EQ(objective.n_targets(batch), 6);
  const auto parameters = model->parameters();
  const auto whole = objective.differentiate(*model, batch, {.parameters = parameters, .weight = 0.25});
  EXPECT_NEAR(whole.loss.item<double>(), 0.25 * objective.loss(*model, batch).item<double>(), 1e-3);
  Gradients sums(parameters.size());
  double loss = 0;
  for (const auto& part : split_rows(batch, 2)) {
    const auto found = objective.differentiate(*model, part, {.parameters = parameters, .weight = 0.25});
    loss += found.loss.item<double>();
    add_gradients(sums, found.gradients);
  }
  EXPECT_NEAR(loss, whole.loss.item<double>(), 1e-3);
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_TRUE(close(sums[i], whole.gradients[i], 1e-3)) << i;
}

TEST(Ctc, SaysWhatDoesNotFit) {
  const auto model = small_labeller();
  const CtcObjective objective;
  auto batch = labelled_recordings();
  batch.fields[fields::kTranscripts].fill_(7);
  EXPECT_THAT(message_of<DataError>([&] { objective.loss(*model, batch); }), HasSubstr("the token 7"));
  batch.fields.erase(fields::kTranscripts);
  EXPECT_THAT(message_of<ConfigError>([&] { objective.loss(*model, batch); }),
              HasSubstr("training.objective: ctc"));
  const auto& type = objective_types().at("ctc");
  EXPECT_THAT(message_of<ConfigError>([&] { type.make(Selection("ctc"), {.label_smoothing = 0.1}); }),
              HasSubstr("training.label_smoothing"));
}

}  // namespace
}  // namespace zoo::testing
