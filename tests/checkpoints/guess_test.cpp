// Losses of guesses, which need no model.

#include "checkpoints/guess.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/initial_weights.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

/// All targets of a split.
std::vector<int64_t> targets_of(Task& task, Split split) {
  std::vector<int64_t> all;
  auto& source = task.batches(split);
  for (int64_t i = 0; i < source.n_batches(0); ++i) {
    const auto targets = source.batch(0, i).targets.contiguous();
    all.insert(all.end(), targets.const_data_ptr<int64_t>(),
               targets.const_data_ptr<int64_t>() + targets.numel());
  }
  return all;
}

TEST(GuessLosses, AreOfTheFrequenciesOfTheTrainingTargets) {
  const TinyWorld world;
  for (const char* name : {"language_modeling", "text_classification", "text_to_text"}) {
    SCOPED_TRACE(name);
    const auto task = task_of_new_run(world.experiment(name));
    const auto purpose = task->purpose();
    const double n_classes =
        static_cast<double>(predicts_tokens(purpose.head) ? purpose.vocab_size : purpose.n_classes);
    const auto seen = targets_of(*task, Split::train), asked = targets_of(*task, Split::valid);
    double nats = 0;
    for (const int64_t target : asked) {
      const auto count = static_cast<double>(std::ranges::count(seen, target));
      nats -= std::log((count + 1) / (static_cast<double>(seen.size()) + n_classes));
    }
    const auto guess = guess_losses(*task, Split::valid);
    ASSERT_TRUE(guess);
    EXPECT_NEAR(guess->unigram, nats / static_cast<double>(asked.size()), 1e-9);
    EXPECT_NEAR(guess->uniform, std::log(n_classes), 1e-12);
    // The classes of the small table are about equally frequent.
    if (predicts_tokens(purpose.head)) {
      EXPECT_LT(guess->unigram, guess->uniform);
    }
  }
}

TEST(GuessLosses, NeedTheTrainingData) {
  const TinyWorld world;
  world.dir().write("data/other.txt", "sun and rain.\n");
  const auto trained = task_of_new_run(world.experiment("language_modeling"));
  const auto moved = task_with_vocabulary(
      world.experiment("language_modeling", {"data.train=gone.txt", "data.valid=other.txt"}),
      trained->vocabulary());
  EXPECT_FALSE(guess_losses(*moved, Split::valid));
}

TEST(GuessLosses, TellWhetherAModelHasLearnt) {
  const GuessLosses guess{.uniform = 4.0, .unigram = 3.0};
  EXPECT_TRUE(has_learnt(2.93, guess));
  EXPECT_FALSE(has_learnt(2.95, guess)) << "less than 2 % below";
  EXPECT_EQ(guess_note(2.9, guess), std::nullopt);
  EXPECT_THAT(*guess_note(3.0, guess), HasSubstr("3.000, the loss of guessing the frequencies"));
  EXPECT_THAT(*guess_note(13.1, guess),
              HasSubstr("the loss 13.100 is not below 4.000, the loss of guessing every"));
}

TEST(GuessLosses, TrainingSaysThatItLearntNothing) {
  const TinyWorld world;
  for (const char* lr : {"1e-12", "3e-3"}) {
    std::vector<std::string> notes;
    TrainOptions options{.run_dir = world.path(lr)};
    options.on_progress = [&](const TrainProgress& progress) {
      if (progress.message.starts_with("note: ")) notes.push_back(progress.message);
    };
    train(world.experiment("language_modeling",
                           {fmt::format("training.optimizer.lr={}", lr), "training.steps=60"}),
          options);
    EXPECT_EQ(notes.size(), std::string(lr) == "1e-12" ? 1U : 0U) << lr;
  }
}

}  // namespace
}  // namespace zoo::testing
