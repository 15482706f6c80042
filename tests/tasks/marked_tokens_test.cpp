// The task marked_tokens: tokens that follow a mark are predicted, and the marks are not read.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/run.h"
#include "models/families/families.h"
#include "tasks/task.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

class MarkedTokens : public ::testing::Test {
 protected:
  MarkedTokens() { write("ab=cd=e\nxy=zab\n"); }

  void write(const std::string& text) { world_.dir().write("data/text.txt", text); }
  std::unique_ptr<Task> task(std::vector<std::string> overrides = {}) const {
    for (const char* own : {"model.architecture=decoder", "data.valid=text.txt"}) overrides.push_back(own);
    return task_of_new_run(world_.experiment("marked_tokens", overrides));
  }
  /// The ids of the characters of a text.
  static torch::Tensor ids(const Task& task, const std::string& text) {
    return torch::tensor(task.tokenizer().encode(text), torch::kInt64);
  }
  static void expect_error(const std::function<void()>& call, const char* words) {
    try {
      call();
      ADD_FAILURE() << "no error with: " << words;
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  }

  TinyWorld world_;
};

TEST_F(MarkedTokens, AreTheTargetsAndMarksAreNotRead) {
  const auto made = task();
  const auto batch = made->batches(Split::valid).batch(0, 0);
  ASSERT_EQ(batch.input.batch_size(), 2);
  // "abcde" predicts c after b and e after d; "xyzab" predicts z after y.
  const auto row = [&](int64_t b, int64_t n) { return batch.input.ids[b].narrow(0, 0, n); };
  const int64_t first = torch::equal(row(0, 4), ids(*made, "abcd")) ? 0 : 1, other = 1 - first;
  EXPECT_TRUE(torch::equal(row(first, 4), ids(*made, "abcd")));
  EXPECT_TRUE(torch::equal(row(other, 4), ids(*made, "xyza")));
  const int64_t width = batch.input.length();
  const std::map<int64_t, std::string> expected{
      {first * width + 1, "c"}, {first * width + 3, "e"}, {other * width + 1, "z"}};
  ASSERT_EQ(batch.n_targets(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const auto position = batch.positions[i].item<int64_t>();
    ASSERT_TRUE(expected.contains(position)) << position;
    EXPECT_EQ(batch.targets[i].item<int64_t>(), ids(*made, expected.at(position)).item<int64_t>());
  }
  EXPECT_EQ(batch.tokens, 8);
}

TEST_F(MarkedTokens, LaterOnesThanTheLengthAreCut) {
  const auto made = task({"data.sequence_length=3"});
  const auto batch = made->batches(Split::valid).batch(0, 0);
  EXPECT_EQ(batch.input.length(), 3);
  EXPECT_EQ(batch.n_targets(), 2);  // e is the fifth token of its line
}

TEST_F(MarkedTokens, MayHaveAnotherMark) {
  write("ab+cd\nxy+za\n");
  EXPECT_EQ(task({"data.answer_mark=+"})->batches(Split::valid).batch(0, 0).n_targets(), 2);
  expect_error([&] { task({"data.answer_mark=ab"})->batches(Split::valid); }, "is 2 tokens, not one");
  expect_error([&] { world_.experiment("language_modeling", {"data.answer_mark=+"}); }, "data.answer_mark");
}

TEST_F(MarkedTokens, MustBeThere) {
  write("ab=cd\nabcd\n");
  expect_error([&] { task()->batches(Split::valid); }, "text 2 has no marked token");
  expect_error([&] { world_.experiment("marked_tokens", {"model.architecture=encoder"}); }, "decoder");
}

// What follows the first letter also follows its second occurrence.
TEST_F(MarkedTokens, AreLearnt) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    const char key = static_cast<char>('a' + i % 4), value = static_cast<char>('p' + i / 4);
    text += std::string{key, value, '.', key, '=', value} + "\n";
  }
  write(text);
  const auto experiment = world_.experiment(
      "marked_tokens", {"model.architecture=decoder", "data.valid=text.txt", "training.steps=150",
                        "model.n_layers=2", "training.batch_size=16", "training.gradient_accumulation=1",
                        "model.dropout=0", "training.evaluate_every=150", "training.checkpoint_every=150"});
  const auto run = Run::open(train(experiment, {.run_dir = world_.path("run")}).run_dir);
  EXPECT_EQ(run.evaluate(Split::valid).at("accuracy"), 1);
  const auto samples = run.task().samples(run.model());
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples.front().output, "p");
  EXPECT_EQ(samples.front().reference, "p");
}

}  // namespace
}  // namespace zoo::testing
