// training.batch_size: auto. The available memory determines how many rows go through the model at once; the
// result of the training does not depend on it.

#include "training/micro_batch_size.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/tensor_memory.h"
#include "checkpoints/checkpoint.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/small_models.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RowMemory, IsAStraightLineBeyondWhatWasMeasured) {
  std::vector<int64_t> measured;
  const auto peak_of = [&](int64_t n) {
    measured.push_back(n);
    return n == 1 ? 50 : 100 + 10 * n;  // a second thread has its own gradients
  };
  const RowMemory memory(peak_of, 64, 4, 10000);
  EXPECT_THAT(measured, ElementsAre(1, 2, 4));
  EXPECT_EQ(memory.bytes_of_one(), 50);
  EXPECT_EQ(memory.rows_within(1000), 90);
  EXPECT_EQ(memory.rows_within(140), 4);
  EXPECT_EQ(memory.rows_within(139), 3);
  EXPECT_EQ(memory.rows_within(60), 1);
  EXPECT_EQ(memory.rows_within(49), 0);
}

TEST(RowMemory, TakesNoMoreThanItMayWhileItMeasures) {
  std::vector<int64_t> measured;
  const auto peak_of = [&](int64_t n) {
    measured.push_back(n);
    return 100 * n;
  };
  const RowMemory memory(peak_of, 64, 32, 700);
  EXPECT_THAT(measured, ElementsAre(1, 2, 4));  // eight rows could take 800
  EXPECT_EQ(memory.rows_within(700), 7);
  EXPECT_EQ(RowMemory(peak_of, 1, 32, 700).rows_within(700), 7);
  EXPECT_EQ(RowMemory(peak_of, 64, 32, 99).rows_within(99), 0);
}

std::shared_ptr<Model> trained_model(Architecture architecture) {
  auto config = small_config(architecture);
  config.dropout = 0;
  const auto model = random_model(config);
  model->train();
  return model;
}

/// Losses and gradients of two batches of nine rows.
std::vector<torch::Tensor> outcome(const std::shared_ptr<Model>& model, const GradientOptions& options) {
  torch::manual_seed(4);
  std::vector<Batch> batches;
  for (int i = 0; i < 2; ++i) {
    batches.push_back(small_batch(Architecture::decoder, {tokens(9, 6)}));
    auto& batch = batches.back();
    batch.positions = torch::arange(i, batch.targets.numel(), 2);
    batch.targets = batch.targets.index_select(0, batch.positions);
  }
  model->zero_grad();
  GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(), options);
  std::vector<torch::Tensor> result = {gradients.differentiate(batches, 8)};
  for (const auto& parameter : model->parameters()) result.push_back(parameter.grad());
  return result;
}

void expect_close(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(close(a[i], b[i], 1e-5)) << i;
}

TEST(MicroBatchSize, GiveTheGradientsOfTheWholeBatch) {
  const auto model = trained_model(Architecture::decoder);
  const auto whole = outcome(model, {.n_parts = 1});
  for (const int64_t rows : {1, 2, 4, 9, 100})
    for (const int64_t n_parts : {1, 3})
      expect_close(outcome(model, {.n_parts = n_parts, .micro_batch_size = rows}), whole);
}

/// A model on a machine with memory for at most `most` rows.
class Cramped : public Model {
 public:
  Cramped(std::shared_ptr<Model> inner, int64_t most) : inner_(std::move(inner)), most_(most) {
    register_module("inner", inner_);
  }
  torch::Tensor features(const Batch& batch) override {
    seen.push_back(batch.input.batch_size());
    TORCH_CHECK_WITH(OutOfMemoryError, batch.input.batch_size() <= most_, "no room");
    return inner_->features(batch);
  }
  torch::Tensor logits(const torch::Tensor& features) override { return inner_->logits(features); }
  int64_t n_outputs() const override { return inner_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override { return inner_->hidden_states(batch); }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override {
    inner_->attention_maps(batch, maps);
  }

  std::vector<int64_t> seen;  // rows of each pass

 private:
  std::shared_ptr<Model> inner_;
  int64_t most_;
};

TEST(MicroBatchSize, AreHalvedWhereMemoryRunsOut) {
  const auto model = trained_model(Architecture::decoder);
  const auto cramped = std::make_shared<Cramped>(model, 3);
  const GradientOptions options{.n_parts = 1, .out_of_memory = OutOfMemory::take_fewer_rows};
  expect_close(outcome(cramped, options), outcome(model, {.n_parts = 1}));
  EXPECT_THAT(cramped->seen, ElementsAre(9, 4, 3, 3, 3, 3, 3, 3));
  EXPECT_THROW(outcome(cramped, {.n_parts = 1}), c10::OutOfMemoryError);
  EXPECT_THAT(message_of<TrainingError>([&] { outcome(std::make_shared<Cramped>(model, 0), options); }),
              HasSubstr("training.activation_checkpointing=every_layer"));
}

TEST(MicroBatchSize, RehearsingLeavesNothing) {
  const auto model = trained_model(Architecture::decoder);
  const GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(), {.n_parts = 1});
  gradients.rehearse(small_batch(Architecture::decoder, {tokens(3, 6)}));
  for (const auto& parameter : model->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

// --- trainings ---

const std::vector<std::string> kAuto = {"training.batch_size=auto", "training.effective_batch_size=12",
                                        "training.gradient_accumulation=1"};

std::vector<std::string> with(std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

int64_t rows_of(const std::filesystem::path& run) {
  return read_training_state(*newest_checkpoint(run)).micro_batch_size;
}

std::vector<double> losses(const std::filesystem::path& run) {
  std::vector<double> result;
  for (const auto& row : timeless_metrics(run)) {
    for (const char* name : {"train_loss", "valid_loss"})
      if (row.contains(name)) result.push_back(row.at(name).get<double>());
  }
  return result;
}

/// Enough memory for some rows of this experiment, but not for all rows of a step.
int64_t a_little_memory(const TinyWorld& world, const Experiment& experiment) {
  train(experiment, {.run_dir = world.path("probe"), .existing = ExistingRun::replace});
  return read_training_state(*newest_checkpoint(world.path("probe"))).peak_memory_bytes / 2;
}

class BatchSizeAuto : public ::testing::TestWithParam<const char*> {};

TEST_P(BatchSizeAuto, TrainsAsWithTheWholeBatch) {
  const TinyWorld world;
  const std::vector<std::string> plain = {"model.dropout=0", "training.steps=8", "model.d_model=32",
                                          "model.n_layers=2"};
  train(world.experiment(GetParam(),
                         with(plain, {"training.batch_size=12", "training.gradient_accumulation=1"})),
        {.run_dir = world.path("number")});
  const auto experiment = world.experiment(GetParam(), with(plain, kAuto));
  const int64_t little = a_little_memory(world, experiment);

  std::string told;
  const auto note = [&](const TrainProgress& progress) { told += progress.message + "\n"; };
  train(experiment, {.run_dir = world.path("roomy"), .on_progress = note, .memory_bytes = int64_t{1} << 40});
  EXPECT_EQ(rows_of(world.path("roomy")), 12);
  EXPECT_THAT(
      told,
      HasSubstr("training.batch_size: auto: 12 sequences go through the model at once, of 12 in a step"));
  train(experiment, {.run_dir = world.path("narrow"), .memory_bytes = little});
  const int64_t found = rows_of(world.path("narrow"));
  EXPECT_GE(found, 1);
  EXPECT_LT(found, 12);

  const auto expected = losses(world.path("number"));
  for (const char* run : {"roomy", "narrow"}) {
    const auto actual = losses(world.path(run));
    ASSERT_EQ(actual.size(), expected.size()) << run;
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << run << " " << i;
  }
  // The smaller number of rows takes less memory during the whole training.
  EXPECT_LT(read_training_state(*newest_checkpoint(world.path("narrow"))).peak_memory_bytes,
            read_training_state(*newest_checkpoint(world.path("roomy"))).peak_memory_bytes);
}

// A resumed run keeps its number of rows although there is more memory now.
TEST_P(BatchSizeAuto, ResumesToTheLastBit) {
  const TinyWorld world;
  const auto experiment = world.experiment(GetParam(), with(kAuto, {"model.d_model=32", "model.n_layers=2"}));
  const int64_t little = a_little_memory(world, experiment);
  train(experiment, {.run_dir = world.path("whole"), .memory_bytes = little});
  int steps = 0;
  train(experiment, {.run_dir = world.path("parts"), .memory_bytes = little, .should_stop = [&] {
                       return ++steps == 9;
                     }});
  train(experiment,
        {.run_dir = world.path("parts"), .existing = ExistingRun::resume, .memory_bytes = 4 * little});
  EXPECT_LT(rows_of(world.path("whole")), 12);
  EXPECT_EQ(rows_of(world.path("parts")), rows_of(world.path("whole")));
  for (const char* file : {"model.safetensors", "checkpoints/last/optimizer.safetensors", "samples.txt"}) {
    EXPECT_TRUE(read_file(world.path("parts") / file) == read_file(world.path("whole") / file)) << file;
  }
  EXPECT_EQ(losses(world.path("parts")), losses(world.path("whole")));
}

INSTANTIATE_TEST_SUITE_P(Tasks, BatchSizeAuto,
                         ::testing::Values("language_modeling", "masked_language_modeling", "text_to_text",
                                           "text_classification"));

TEST(BatchSizeAuto, SaysWhatToDoWhereNotOneSequenceFits) {
  const TinyWorld world;
  const auto message = message_of<TrainingError>([&] {
    train(world.experiment("language_modeling", kAuto), {.run_dir = world.path("run"), .memory_bytes = 100});
  });
  EXPECT_THAT(message,
              HasSubstr("training.batch_size: auto: a step with one sequence at a time needs more memory"));
  EXPECT_THAT(message, HasSubstr("GiB of 9.31e-08 that are free"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(BatchSizeAuto, ContradictionsAreRefused) {
  const TinyWorld world;
  const auto refused = [&](const std::vector<std::string>& overrides) {
    return message_of<ConfigError>([&] { world.experiment("text_to_text", overrides); });
  };
  EXPECT_THAT(refused({"training.batch_size=auto", "training.gradient_accumulation=1"}),
              HasSubstr("training.effective_batch_size is missing: with batch_size: auto, set it"));
  EXPECT_THAT(refused({"training.batch_size=auto", "training.effective_batch_size=8"}),
              HasSubstr("training.gradient_accumulation 2 contradicts batch_size: auto"));
  EXPECT_THAT(
      refused({"training.effective_batch_size=8"}),
      HasSubstr("training.effective_batch_size is for batch_size: auto; with batch_size: 4 leave it out"));
  EXPECT_THAT(refused(with(kAuto, {"training.batch_tokens=100"})),
              HasSubstr("training.batch_tokens replaces batch_size"));
  EXPECT_THAT(refused({"training.batch_size=0"}),
              HasSubstr("training.batch_size must be between 1 and 1048576"));
}

}  // namespace
}  // namespace zoo::testing
