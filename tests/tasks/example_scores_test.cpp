// The scores of single examples add up to what an evaluation says.

#include <algorithm>
#include <iterator>
#include <numbers>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "checkpoints/initial_weights.h"
#include "io/files.h"
#include "tasks/examples.h"
#include "tasks/task.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

struct Case {
  const char *task, *first_input;
  size_t n;  // examples
  std::vector<std::string> overrides = {};
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.task; }

class ExampleScores : public ::testing::TestWithParam<Case> {
 protected:
  void evaluate(const std::vector<std::string>& more = {}) {
    auto overrides = GetParam().overrides;
    overrides.insert(overrides.end(), more.begin(), more.end());
    const auto experiment = world_.experiment(GetParam().task, overrides);
    const auto task = task_of_new_run(experiment);
    torch::manual_seed(1);
    const auto model = initialized_model(experiment, *task);
    examples_.clear();
    metrics_ = task->evaluate(*model, Split::valid, {.examples = &examples_});
    EXPECT_EQ(task->evaluate(*model, Split::valid), metrics_) << "to look at examples changes nothing";
  }

  TinyWorld world_;
  std::vector<ExampleScore> examples_;
  Metrics metrics_;
};

TEST_P(ExampleScores, AddUpToTheMetrics) {
  evaluate();
  ASSERT_EQ(examples_.size(), GetParam().n);
  EXPECT_THAT(examples_.front().input, ::testing::HasSubstr(GetParam().first_input));
  double loss = 0, targets = 0, bytes = 0, answers = 0, right = 0;
  for (const auto& example : examples_) {
    EXPECT_GT(example.targets, 0) << example.input;
    loss += example.loss;
    targets += static_cast<double>(example.targets);
    bytes += static_cast<double>(example.bytes);
    answers += static_cast<double>(example.n_answers);
    right += static_cast<double>(example.n_right);
    if (example.n_answers > 0) {
      EXPECT_EQ(example.right, example.n_right == example.n_answers) << example.input;
    }
  }
  EXPECT_NEAR(loss / targets, metrics_.at("loss"), 1e-5);
  if (answers > 0) {
    EXPECT_NEAR(right / answers, metrics_.at("accuracy"), 1e-9);
  }
  if (metrics_.contains("bits_per_byte")) {
    EXPECT_NEAR(loss / std::numbers::ln2 / bytes, metrics_.at("bits_per_byte"),
                0.01 * metrics_.at("bits_per_byte"))
        << "but for the token that is not predicted";
  }
  const auto lines = to_json_lines(examples_);
  EXPECT_EQ(std::ranges::count(lines, '\n'), std::ssize(examples_));
  EXPECT_THAT(lines, ::testing::StartsWith("{\"input\":"));
}

INSTANTIATE_TEST_SUITE_P(
    OfTasks, ExampleScores,
    ::testing::Values(Case{"language_modeling", "bird moon.", 12, {"data.documents=line"}},
                      Case{"language_modeling", "", 1}, Case{"masked_language_modeling", "", 10},
                      Case{"text_classification", "", 11},
                      Case{"text_classification", "", 11, {"model.architecture=encoder_decoder"}},
                      Case{"token_classification", "", 12}, Case{"text_to_text", "", 12},
                      Case{"text_to_text", "", 12, {"data.target_length=3"}},
                      Case{"image_classification", "picture", 9}, Case{"object_detection", ".png", 4},
                      Case{"speech_recognition", ".wav", 6}));

/// The examples of a new model, without training.
std::vector<ExampleScore> examples_of(const TinyWorld& world, std::string_view task_name,
                                      const std::vector<std::string>& overrides = {}) {
  const auto experiment = world.experiment(task_name, overrides);
  const auto task = task_of_new_run(experiment);
  torch::manual_seed(1);
  const auto model = initialized_model(experiment, *task);
  std::vector<ExampleScore> examples;
  task->evaluate(*model, Split::valid, {.examples = &examples});
  return examples;
}

size_t n_words(const std::string& text) {
  std::istringstream words(text);
  return static_cast<size_t>(std::distance(std::istream_iterator<std::string>(words), {}));
}

TEST(ExampleWords, SayLabelsAndNumbersToo) {
  const TinyWorld world;
  write_file_atomically(world.path("labels.tsv"),
                        "sentence\tlabel\nsun\tred,blue\nmoon\t\nstar\tblue\nsea\tred\n");
  write_file_atomically(world.path("numbers.tsv"), "sentence\tlabel\nsun\t0.5\nmoon\t-2\nstar\t3\n");
  const auto on = [&](const std::string& problem, const std::string& name) {
    const auto file = world.path(name).string();
    return examples_of(world, "text_classification",
                       {fmt::format("task={{type: text_classification, problem: {}}}", problem),
                        "data.train=" + file, "data.valid=" + file});
  };
  const auto labels = on("multi_label", "labels.tsv"), numbers = on("regression", "numbers.tsv");
  EXPECT_EQ(labels.at(0).target, "blue, red");
  EXPECT_EQ(labels.at(1).target, "");
  EXPECT_EQ(labels.at(3).target, "red");
  for (const auto& example : labels) EXPECT_EQ(example.right, example.prediction == example.target);
  EXPECT_EQ(numbers.at(0).target, "0.5");
  EXPECT_EQ(numbers.at(1).target, "-2");
  for (const auto& example : numbers) {
    const double error = std::stod(example.prediction.value()) - std::stod(example.target.value());
    EXPECT_NEAR(example.loss, error * error, 1e-4);
  }
}

TEST(ExampleWords, StandInThePlacesOfHiddenTokens) {
  const TinyWorld world;
  for (const auto& example : examples_of(world, "masked_language_modeling")) {
    size_t n = 0;
    for (size_t at = 0; (at = example.input.find("<mask>", at)) != example.input.npos; ++at) ++n;
    EXPECT_EQ(static_cast<int64_t>(n), example.targets) << example.input;
    EXPECT_FALSE(example.target->empty() || example.prediction->empty());
  }
}

/// The labels of words that are not counted, "-", keep the others beside their words.
TEST(ExampleWords, StandBesideTheirTokens) {
  const TinyWorld world;
  size_t n_not_counted = 0;
  const std::vector<std::string> whole = {"data.sequence_length=40", "model.max_positions=48"};
  for (const auto& example : examples_of(world, "token_classification", whole)) {
    EXPECT_EQ(*example.target, TinyWorld::sky_labels(example.input));
    EXPECT_EQ(n_words(*example.prediction), n_words(example.input));
    n_not_counted += example.target->find('-') != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(n_not_counted, 0U);
}

/// Rows of unequal lengths, which batches may put in another order.
TEST(ExampleDocuments, AreThoseOfTheRows) {
  const TinyWorld world;
  std::string table = "sentence\tlabel\tarticle\n";
  for (int i = 0; i < 12; ++i)
    table += fmt::format("{}bird {}\t{}\tno {}\n", std::string(static_cast<size_t>(i * 5 % 12), 'a'), i,
                         i % 2 == 0 ? "yes" : "no", i / 3);
  write_file_atomically(world.path("valid.tsv"), table);
  const auto evaluate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"data.valid=" + world.path("valid.tsv").string(),
                                          "data.train=" + world.path("valid.tsv").string(),
                                          "data.document_column=article"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    const auto experiment = world.experiment("text_classification", overrides);
    const auto task = task_of_new_run(experiment);
    std::vector<ExampleScore> examples;
    task->evaluate(*initialized_model(experiment, *task), Split::valid, {.examples = &examples});
    return examples;
  };
  const auto examples = evaluate({});
  ASSERT_EQ(examples.size(), 12U);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(examples[i].document, fmt::format("no {}", i / 3));
    EXPECT_THAT(examples[i].input, ::testing::EndsWith(fmt::format("bird {}", i)));
  }
  EXPECT_THAT(to_json_lines({examples[4]}), ::testing::HasSubstr("\"document\":\"no 1\""));
  EXPECT_THAT(message_of<DataError>([&] { evaluate({"data.document_column=chapter"}); }),
              ::testing::HasSubstr("chapter"));
  EXPECT_THAT(message_of<ConfigError>([&] { evaluate({"data.valid=[]"}); }),
              ::testing::HasSubstr("data.document_column"));
}

/// The parts of a text belong together; a text alone is an example.
TEST(ExampleDocuments, OfLongTextsAreTheTexts) {
  const TinyWorld world;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "bird moon.\n";
  for (const char* name : {"a.txt", "b.txt"}) write_file_atomically(world.path(name), text);
  const auto experiment = world.experiment(
      "language_modeling",
      {fmt::format("data.valid=[{}, {}]", world.path("a.txt").string(), world.path("b.txt").string())});
  const auto task = task_of_new_run(experiment);
  std::vector<ExampleScore> examples;
  task->evaluate(*initialized_model(experiment, *task), Split::valid, {.examples = &examples});
  std::vector<std::string> documents;
  for (const auto& example : examples) documents.push_back(example.document.value_or("none"));
  EXPECT_THAT(documents, ::testing::ElementsAre("0", "0", "0", "0", "1", "1", "1", "1"));
}

}  // namespace
}  // namespace zoo::testing
