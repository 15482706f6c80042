// Predictions of classifiers, for each of the three families.

#include "tasks/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/initial_weights.h"
#include "generation/prompt.h"
#include "models/inference_scope.h"
#include "tasks/task.h"
#include "tests/support/training.h"
#include "text/text_rows.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::array kFamilies{"encoder", "decoder", "encoder_decoder"};

/// A classifier whose large random weights make the classes differ.
struct Classifier {
  explicit Classifier(const TinyWorld& world, const std::string& family,
                      std::vector<std::string> overrides = {})
      : task(task_of_new_run(world.experiment("text_classification",
                                              with(std::move(overrides), "model.architecture=" + family)))) {
    torch::manual_seed(7);
    model = initialized_model(task->experiment(), *task);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.normal_(0, 0.4);
  }
  static std::vector<std::string> with(std::vector<std::string> list, std::string item) {
    list.push_back(std::move(item));
    return list;
  }

  std::unique_ptr<Task> task;
  std::shared_ptr<Model> model;  // in training mode, with dropout
};

double probability_of(const Prediction& prediction, const std::string& label) {
  return std::ranges::find(prediction.labels(), label, &LabelProbability::label)->probability;
}

/// log p(answer, eos | text) for every label, with all tokens of one pair at once.
std::vector<double> likelihoods(Model& model, const Task& task, const std::string& text) {
  const InferenceScope scope(model);
  const auto& tokenizer = task.tokenizer();
  auto source = tokenizer.encode(text);
  source.push_back(tokenizer.special().eos);
  std::vector<double> result;
  for (const auto& label : task.vocabulary().labels) {
    auto targets = tokenizer.encode(label), read = targets;
    targets.push_back(tokenizer.special().eos);
    read.insert(read.begin(), tokenizer.special().bos);
    Batch batch;
    batch.input.ids = torch::tensor(source).unsqueeze(0);
    batch.decoder.ids = torch::tensor(read).unsqueeze(0);
    const auto log_p = torch::log_softmax(model.logits(model.features(batch)), -1);
    result.push_back(log_p.gather(1, torch::tensor(targets).unsqueeze(1)).sum().item<double>());
  }
  return result;
}

/// The logits of every label, by a head on the first or the last token.
std::vector<double> logits(Model& model, const Task& task, const std::string& text) {
  const InferenceScope scope(model);
  const auto& special = task.tokenizer().special();
  auto ids = task.tokenizer().encode(text);
  Batch batch;
  if (task.experiment().model.architecture == Architecture::encoder) {
    ids.insert(ids.begin(), special.cls);
    ids.push_back(special.sep);
  } else {
    ids.push_back(special.eos);
    batch.positions = torch::tensor({std::ssize(ids) - 1});
  }
  batch.input.ids = torch::tensor(ids).unsqueeze(0);
  const auto row = model.logits(model.features(batch))[0].to(torch::kDouble).contiguous();
  return {row.const_data_ptr<double>(), row.const_data_ptr<double>() + row.numel()};
}

TEST(Prediction, IsTheSoftmaxOfWhatTheModelSays) {
  const TinyWorld world;
  for (const std::string family : kFamilies) {
    SCOPED_TRACE(family);
    const Classifier classifier(world, family);
    const std::vector<std::string> texts = {"sun moon", "rain", "tree bird sea"};
    const auto predictions = classifier.task->predict(*classifier.model, texts);
    ASSERT_THAT(predictions, SizeIs(3));
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto& prediction = predictions[i];
      const auto& labels = prediction.labels();
      EXPECT_EQ(prediction.input, texts[i]);
      EXPECT_FALSE(prediction.cut);
      ASSERT_THAT(labels, SizeIs(3));
      EXPECT_TRUE(std::ranges::is_sorted(labels, std::greater(), &LabelProbability::probability));
      double sum = 0;
      for (const auto& [label, probability] : labels) sum += probability;
      EXPECT_NEAR(sum, 1, 1e-12);

      const auto scores = family == "encoder_decoder"
                              ? likelihoods(*classifier.model, *classifier.task, texts[i])
                              : logits(*classifier.model, *classifier.task, texts[i]);
      const double total = std::accumulate(scores.begin(), scores.end(), 0.0,
                                           [](double all, double score) { return all + std::exp(score); });
      for (size_t c = 0; c < scores.size(); ++c) {
        EXPECT_NEAR(probability_of(predictions[i], classifier.task->vocabulary().labels[c]),
                    std::exp(scores[c]) / total, 1e-5);
      }
    }
  }
}

TEST(Prediction, OfManyTextsIsAsOneByOne) {
  const TinyWorld world;
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i)
    texts.push_back(std::string(static_cast<size_t>(1 + i * 7 % 22), "abdemnorstu"[i % 11]));
  for (const std::string family : kFamilies) {
    SCOPED_TRACE(family);
    const Classifier classifier(world, family);
    std::vector<int64_t> progress;
    const auto together =
        classifier.task->predict(*classifier.model, texts, {.on_progress = [&](int64_t done, int64_t all) {
          EXPECT_EQ(all, 300);
          progress.push_back(done);
        }});
    EXPECT_THAT(progress, SizeIs(::testing::Gt(1U))) << "several batches";
    EXPECT_TRUE(std::ranges::is_sorted(progress));
    EXPECT_EQ(progress.back(), 300);
    for (size_t i = 0; i < texts.size(); i += 13) {
      const auto alone = classifier.task->predict(*classifier.model, {texts[i]}).front();
      for (const auto& [label, probability] : alone.labels())
        EXPECT_NEAR(probability_of(together[i], label), probability, 1e-5) << i;
    }
  }
}

TEST(Prediction, ReadsATextAsTrainingDoes) {
  const TinyWorld world;
  for (const std::string family : kFamilies) {
    SCOPED_TRACE(family);
    const Classifier classifier(world, family, {"data.sequence_length=8"});
    const auto room = static_cast<size_t>(family == "encoder" ? 6 : 7);
    const std::string whole(room, 's');
    const auto predictions = classifier.task->predict(
        *classifier.model, {whole, whole + "unsun", whole + " \t", "", "  ", " s", "s "});
    EXPECT_FALSE(predictions[0].cut);
    EXPECT_TRUE(predictions[1].cut);
    EXPECT_TRUE(predictions[2].cut) << "blanks at the end are a part of the text";
    for (const size_t i : {1, 2}) {
      for (const auto& [label, probability] : predictions[0].labels())
        EXPECT_NEAR(probability_of(predictions[i], label), probability, 1e-6) << i;
    }
    EXPECT_THAT(predictions[3].labels(), IsEmpty()) << "nothing to classify";
    for (const size_t i : {3, 4, 5, 6}) EXPECT_FALSE(predictions[i].cut);
    const auto alone = classifier.task->predict(*classifier.model, {"s"}).front();
    for (const size_t i : {4, 5, 6}) {
      ASSERT_THAT(predictions[i].labels(), Not(IsEmpty()));
      if (family == "encoder_decoder") continue;  // its answers are sure, whatever the text is
      for (const auto& [label, probability] : alone.labels())
        EXPECT_GT(std::abs(probability_of(predictions[i], label) - probability), 1e-5) << i;
    }
    EXPECT_THAT(classifier.task->predict(*classifier.model, {}), IsEmpty());
    EXPECT_THAT(message_of<DataError>([&] { classifier.task->predict(*classifier.model, {"sun", "m\xFF"}); }),
                HasSubstr("text 2: "));
  }
}

// Tokens far beyond the limit are not even made: here they would be errors.
TEST(Prediction, DoesNotReadToTheEndOfAHugeText) {
  const TinyWorld world;
  const Classifier classifier(world, "encoder");
  std::string huge(size_t{2} << 20, 's');
  const auto expected = classifier.task->predict(*classifier.model, {huge}).front();
  EXPECT_TRUE(expected.cut);
  huge += "\xFF";
  const auto prediction = classifier.task->predict(*classifier.model, {huge}).front();
  EXPECT_TRUE(prediction.cut);
  EXPECT_EQ(prediction.labels().front().label, expected.labels().front().label);

  std::string wide;
  while (wide.size() < (size_t{1} << 20) + 9) wide += "\u20AC";
  const auto beginning = part_to_read(wide, 24);
  EXPECT_EQ(beginning.size(), (size_t{1} << 20) / 3 * 3);
  EXPECT_EQ(part_to_read(beginning, 24), beginning);
  EXPECT_EQ(part_to_read(wide, int64_t{1} << 20), wide) << "a model that reads more";
}

// `evaluate` counts a text as right if `predict` puts its label first, also if the text is cut.
TEST(Prediction, IsWhatAnEvaluationCounts) {
  const TinyWorld world;
  for (const std::string family : kFamilies) {
    SCOPED_TRACE(family);
    const Classifier classifier(world, family, {"data.sequence_length=14", "data.test=table.tsv"});
    const auto rows = labelled_texts(classifier.task->experiment().data).take(Split::test);
    const auto predictions = classifier.task->predict(*classifier.model, rows.texts);
    double right = 0;
    for (size_t i = 0; i < rows.texts.size(); ++i)
      right += predictions[i].labels().front().label == rows.labels[i];
    EXPECT_GT(std::ranges::count(predictions, true, &Prediction::cut), 10);
    EXPECT_GT(right, 10.0);
    const auto metrics = classifier.task->evaluate(*classifier.model, Split::test);
    EXPECT_DOUBLE_EQ(metrics.at("accuracy"), right / static_cast<double>(rows.texts.size()));
  }
}

TEST(Prediction, OfAModelThatIsNotANumberIsAnError) {
  const TinyWorld world;
  for (const std::string family : kFamilies) {
    const Classifier classifier(world, family);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : classifier.model->parameters()) parameter.fill_(NAN);
    EXPECT_THAT(message_of<CheckpointError>([&] { classifier.task->predict(*classifier.model, {"sun"}); }),
                HasSubstr("not numbers"))
        << family;
  }
}

TEST(Prediction, IsNotForEveryTask) {
  const TinyWorld world;
  for (const std::string name : {"language_modeling", "masked_language_modeling", "text_to_text"}) {
    const auto task = task_of_new_run(world.experiment(name));
    EXPECT_EQ(task_type(task->experiment()).predicts_from, PredictionInput::nothing);
    const auto model = initialized_model(task->experiment(), *task);
    EXPECT_EQ(message_of<UsageError>([&] { task->predict(*model, {"sun"}); }),
              "the task " + name + " makes no predictions for single inputs");
  }
}

TEST(Prediction, IsPrintedWithTheLikeliestLabels) {
  const std::vector<Prediction> predictions = {
      {.input = "a \"film\"", .answer = PredictedLabels{{{"good\x1B[1m", 0.75}, {"bad one", 0.25}}}},
      {.input = ""}};
  EXPECT_EQ(to_text(predictions), "good\\x1b[1m\t0.7500\tbad one\t0.2500\n\n");
  EXPECT_EQ(to_text(predictions, 1), "good\\x1b[1m\t0.7500\n\n");
  const auto all = nlohmann::json::parse(to_json(predictions));
  EXPECT_EQ(all["results"][0]["input"], "a \"film\"");
  EXPECT_EQ(all["results"][0]["labels"][1], nlohmann::json({{"label", "bad one"}, {"probability", 0.25}}));
  EXPECT_EQ(all["results"][1]["labels"], nlohmann::json::array());
  EXPECT_EQ(nlohmann::json::parse(to_json(predictions, 1))["results"][0]["labels"].size(), 1U);
}

TEST(Prediction, OfObjectsIsALineForEach) {
  std::vector<Prediction> predictions = {
      {.input = "a\tb.png",
       .answer = PredictedObjects{{{"cat", 0.9, {1.004, 2.006, 30, 1.0 / 3}},
                                   {"big\x1B dog", 0.5, {0, 0, 4, 5}},
                                   {"cat", 0.125, {0, 0, 1, 1}}}}},
      {.input = "none.png", .answer = PredictedObjects{}}};
  EXPECT_EQ(to_text(predictions, 2),
            "a\\tb.png\tcat\t0.9000\t1.00\t2.01\t30.00\t0.33\n"
            "a\\tb.png\tbig\\x1b dog\t0.5000\t0.00\t0.00\t4.00\t5.00\n");
  const auto document = nlohmann::json::parse(to_json(predictions));
  EXPECT_EQ(document["results"][0]["objects"].size(), 3U);
  EXPECT_EQ(document["results"][0]["objects"][0],
            nlohmann::json({{"label", "cat"}, {"score", 0.9}, {"box", {1.0, 2.01, 30.0, 0.33}}}));
  EXPECT_FALSE(document["results"][0].contains("labels"));
  EXPECT_EQ(document["results"][1],
            nlohmann::json({{"input", "none.png"}, {"objects", nlohmann::json::array()}}));

  keep_best_objects(predictions, 0.5);
  EXPECT_THAT(predictions[0].objects(), SizeIs(2)) << "a score of 0.5 is not below 0.5";
  keep_best_objects(predictions, 0, 1);
  ASSERT_THAT(predictions[0].objects(), SizeIs(1));
  EXPECT_EQ(predictions[0].objects().front().score, 0.9);
}

}  // namespace
}  // namespace zoo::testing
