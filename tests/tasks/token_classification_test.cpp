// One class for each word or character: metrics, training, predictions.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/random.h"
#include "checkpoints/initial_weights.h"
#include "models/inference_scope.h"
#include "tasks/metrics/entity_metrics.h"
#include "tasks/task.h"
#include "tests/support/training.h"
#include "text/corpus.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Labels = std::vector<std::string_view>;

// What conlleval and seqeval say, also of labels that no annotator writes.
TEST(Entities, AreSpansOfOneType) {
  const auto of = [](const Labels& labels) { return entities_of(labels); };
  EXPECT_THAT(of({"B-PER", "I-PER", "O", "B-LOC"}), ElementsAre(Entity{"PER", 0, 2}, Entity{"LOC", 3, 4}));
  EXPECT_THAT(of({"B-PER", "B-PER"}), ElementsAre(Entity{"PER", 0, 1}, Entity{"PER", 1, 2}));
  EXPECT_THAT(of({"O", "I-PER", "I-PER", "I-LOC"}), ElementsAre(Entity{"PER", 1, 3}, Entity{"LOC", 3, 4}));
  EXPECT_THAT(of({"B-PER", "I-LOC"}), ElementsAre(Entity{"PER", 0, 1}, Entity{"LOC", 1, 2}));
  EXPECT_THAT(of({"S-PER", "S-PER", "B-X", "I-X", "E-X", "I-X"}),
              ElementsAre(Entity{"PER", 0, 1}, Entity{"PER", 1, 2}, Entity{"X", 2, 5}, Entity{"X", 5, 6}));
  EXPECT_THAT(of({"B-X", "I-X", "S-X"}), ElementsAre(Entity{"X", 0, 2}, Entity{"X", 2, 3}));
  EXPECT_THAT(of({"B", "I", "O"}), ElementsAre(Entity{"_", 0, 2}));
  EXPECT_THAT(of({"B-a-b", "I-a-b"}), ElementsAre(Entity{"a-b", 0, 2}));
  EXPECT_THAT(of({"O", "O"}), IsEmpty());
  EXPECT_THAT(of({}), IsEmpty());
}

TEST(Entities, CountOnlyIfSpanAndTypeAreRight) {
  EntityCounts counts;
  EXPECT_EQ(counts.f1(), 0);
  // The example in seqeval's documentation: 0.50.
  counts.add({"O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"},
             {"O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"});
  counts.add({"B-PER", "I-PER", "O"}, {"B-PER", "I-PER", "O"});
  EXPECT_DOUBLE_EQ(counts.f1(), 0.5);
  counts.add({"B-LOC"}, {"B-PER"});
  EXPECT_DOUBLE_EQ(counts.precision(), 1.0 / 3);
  counts.add({"O"}, {"B-PER"});
  EXPECT_DOUBLE_EQ(counts.recall(), 0.25);
  EXPECT_TRUE(mark_entities({"O", "I-X"}));
  EXPECT_FALSE(mark_entities({"C", "E", "H"}));
}

class TokenTask : public ::testing::TestWithParam<const char*> {
 protected:
  Experiment experiment(std::vector<std::string> overrides = {}) const {
    overrides.push_back(std::string("model.architecture=") + GetParam());
    return world.experiment("token_classification", overrides);
  }
  static std::shared_ptr<Model> random_model(const Task& task) {
    torch::manual_seed(7);
    auto model = initialized_model(task.experiment(), task);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.normal_(0, 0.4);
    return model;
  }

  const TinyWorld world;
};

// A character is a class of its own, or that of the character before it: a model must look at its neighbours.
TEST_P(TokenTask, LearnsFromGeneratedTexts) {
  std::string table = "sentence\tlabel\n";
  CounterRandom random({3});
  for (int i = 0; i < 300; ++i) {
    std::string text, labels;
    for (int64_t j = 0, n = 4 + random.below(12); j < n; ++j) {
      text += "ab="[random.below(3)];
      labels += text.back() != '=' ? text.back() : j > 0 ? labels.back() : 'a';
    }
    table += text + "\t" + labels + "\n";
  }
  world.dir().write("data/tagged.tsv", table);
  const auto result =
      train(experiment({"model.dropout=0", "model.position=rotary", "model.n_layers=2", "training.steps=120",
                        "training.batch_size=16", "training.evaluate_every=60", "training.best_by=f1"}),
            {.run_dir = world.path("run")});
  const auto last = timeless_metrics(result.run_dir).back();
  EXPECT_LT(last.at("valid_loss"), 0.1);
  EXPECT_GT(last.at("valid_accuracy"), 0.97);
  EXPECT_GT(last.at("valid_f1"), 0.97);
  EXPECT_FALSE(last.contains("valid_entity_f1"));
  EXPECT_EQ(read_file(result.run_dir / "labels.json"), "[\n  \"a\",\n  \"b\"\n]\n");
}

// The metrics are recomputed from single predictions, which know nothing of batches.
TEST_P(TokenTask, MetricsAreThoseOfThePredictions) {
  const auto task = task_of_new_run(experiment({"data.sequence_length=32", "training.batch_size=7"}));
  ASSERT_THAT(task->vocabulary().labels, ElementsAre("O", "B-SKY", "I-SKY"));
  const auto model = random_model(*task);
  torch::Tensor confusion;
  const auto metrics = task->evaluate(*model, Split::valid, {.confusion = &confusion});

  const auto texts = read_documents(
      [&] {
        auto data = task->experiment().data;
        data.documents = DocumentSplit::line;
        return data;
      }(),
      Split::valid);
  EntityCounts entities;
  double right = 0, all = 0;
  for (const auto& text : texts) {
    const auto prediction = task->predict(*model, {text}, {}).front();
    std::istringstream labels(TinyWorld::sky_labels(text)), words(text);
    std::vector<std::string> expected;
    for (std::string label; labels >> label;) expected.push_back(label);
    ASSERT_THAT(prediction.tokens(), SizeIs(expected.size())) << text;
    Labels guesses, answers;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& token = prediction.tokens()[i];
      std::string word;
      words >> word;
      EXPECT_EQ(token.token, word);
      EXPECT_GE(token.labels.front().probability, 1.0 / 3);
      if (expected[i] == "-") continue;
      guesses.push_back(token.labels.front().label);
      answers.push_back(expected[i]);
      right += token.labels.front().label == expected[i] ? 1 : 0;
      ++all;
    }
    entities.add(guesses, answers);
  }
  EXPECT_EQ(metrics.at("tokens"), all);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), right / all);
  EXPECT_DOUBLE_EQ(metrics.at("entity_precision"), entities.precision());
  EXPECT_DOUBLE_EQ(metrics.at("entity_recall"), entities.recall());
  EXPECT_DOUBLE_EQ(metrics.at("entity_f1"), entities.f1());
  EXPECT_EQ(confusion.sum().item<double>(), all);
  EXPECT_EQ(confusion.trace().item<double>(), right);
}

TEST_P(TokenTask, PredictionsDoNotDependOnTheirCompany) {
  const auto task = task_of_new_run(experiment());
  const auto model = random_model(*task);
  const std::vector<std::string> inputs{"sun", "", "moon and sea and wind and rain", "bird sea  tree", "   "};
  const auto together = task->predict(*model, inputs, {});
  ASSERT_THAT(together, SizeIs(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(together[i].input, inputs[i]);
    const auto alone = task->predict(*model, {inputs[i]}, {}).front();
    ASSERT_EQ(alone.tokens().size(), together[i].tokens().size());
    for (size_t j = 0; j < alone.tokens().size(); ++j) {
      const auto &a = alone.tokens()[j], &b = together[i].tokens()[j];
      EXPECT_EQ(a.token, b.token);
      EXPECT_EQ(a.labels.front().label, b.labels.front().label);
      EXPECT_NEAR(a.labels.front().probability, b.labels.front().probability, 1e-5);
    }
  }
  EXPECT_THAT(together[1].tokens(), IsEmpty());
  EXPECT_THAT(together[3].tokens(), SizeIs(3));
  EXPECT_FALSE(together[0].cut);
  EXPECT_TRUE(together[2].cut);
  EXPECT_LT(together[2].tokens().size(), 7U);
}

// LibTorch's own cross-entropy ignores -100, as transformers' models for token classification do.
TEST_P(TokenTask, TheLossIsTheCrossEntropyWithIgnoredPositions) {
  const auto task = task_of_new_run(experiment());
  const auto model = random_model(*task);
  const InferenceScope scope(*model);
  const auto batch = task->batches(Split::valid).batch(0, 0);
  auto everywhere = batch;
  everywhere.positions = torch::Tensor();
  auto targets = torch::full({batch.input.batch_size() * batch.input.length()}, -100, torch::kLong);
  targets.index_copy_(0, batch.positions, batch.targets);
  const auto logits = model->logits(model->features(everywhere));
  const auto expected = at::cross_entropy_loss(logits, targets).item<double>();
  const double loss =
      task->objective()->loss(*model, batch).item<double>() / static_cast<double>(batch.n_targets());
  EXPECT_NEAR(loss, expected, 1e-5);
  EXPECT_NEAR(task->evaluate(*model, Split::valid, {.max_batches = 1}).at("loss"), expected, 1e-5);
}

TEST_P(TokenTask, SamplesShowLabelsAsTheDataHaveThem) {
  const auto task = task_of_new_run(experiment());
  const auto model = random_model(*task);
  const auto samples = task->samples(*model);
  ASSERT_THAT(samples, SizeIs(5));
  for (const auto& sample : samples) {
    EXPECT_EQ(sample.reference, TinyWorld::sky_labels(sample.input));
    EXPECT_THAT(sample.output, ::testing::ContainsRegex("^(O|B-SKY|I-SKY)( (O|B-SKY|I-SKY))*$"));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenTask, ::testing::Values("encoder", "decoder"));

TEST(TokenClassification, ProblemsAreOneLine) {
  const TinyWorld world;
  world.dir().write("data/other.tsv", "sentence\tlabel\nsun sea\tB-SKY B-SEA\n");
  const auto task = task_of_new_run(world.experiment("token_classification", {"data.valid=other.tsv"}));
  EXPECT_THAT(message_of<DataError>([&] { task->batches(Split::valid); }),
              HasSubstr("other.tsv:2: the label 'B-SEA' does not occur in the training data"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { world.experiment("token_classification", {"model.architecture=encoder_decoder"}); }),
              HasSubstr("model.architecture must be encoder or decoder for token_classification"));
  EXPECT_THAT(
      message_of<ConfigError>([&] { world.experiment("language_modeling", {"data.label_unit=word"}); }),
      HasSubstr("data.label_unit is for token_classification"));

  world.dir().write("data/tagged.tsv", "sentence\tlabel\nabc\tHEH\nab\tHH\ncc\tEE\n");
  const auto letters = task_of_new_run(world.experiment("token_classification"));
  const auto model = initialized_model(letters->experiment(), *letters);
  EXPECT_THAT(
      message_of<ConfigError>([&] { letters->evaluate(*model, Split::valid, {.wanted = "entity_f1"}); }),
      HasSubstr("entity_f1 needs labels of entities"));
}

}  // namespace
}  // namespace zoo::testing
