// Models without softmax over keys, through the library's public path: trained, opened again, and written
// with.

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "generation/generator.h"
#include "models/inference_scope.h"
#include "tests/support/training.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests

const std::vector<std::string> kTrainedMixers{"model.attention=[delta, delta, delta, full]",
                                              "model.attention=performer", "model.attention=linear"};

/// The likeliest next token after `ids`, from a pass over all of them.
int64_t likeliest_after(Model& model, const TokenIds& ids) {
  const Batch batch{.input = {.ids = torch::tensor(ids, torch::kInt64).unsqueeze(0)}};
  return model.logits(model.features(batch))[-1].argmax().item<int64_t>();
}

TEST(TrainedMixers, WriteWhatAPassOverTheWholeTextPredicts) {
  const TinyWorld world;
  for (const auto& attention : kTrainedMixers) {
    SCOPED_TRACE(attention);
    const auto dir = world.path(std::to_string(std::hash<std::string>()(attention)));
    const auto experiment = world.experiment(
        "language_modeling", {attention, "model.n_layers=4", "training.steps=40", "model.dropout=0"});
    train(experiment, {.run_dir = dir});
    const auto rows = timeless_metrics(dir);
    std::vector<double> losses;
    for (const auto& row : rows)
      if (row.contains("train_loss")) losses.push_back(row["train_loss"].get<double>());
    ASSERT_GT(losses.size(), 4U);
    EXPECT_LT(losses.back(), 0.8 * losses.front());

    const auto run = Run::open(dir);
    const InferenceScope scope(run.model());
    const Generator generator(run.model(), run.tokenizer());
    GenerationConfig greedy;
    greedy.temperature = 0;
    greedy.max_new_tokens = 20;
    const auto answers = generator.generate(std::vector<std::string>{"sun moon", "s"}, greedy);
    for (const auto& answer : answers) {
      auto text = answer.prompt_ids;
      for (const int64_t id : answer.outputs.front().ids) {
        EXPECT_EQ(likeliest_after(run.model(), text), id);
        text.push_back(id);
      }
    }
    greedy.max_new_tokens = 60;  // beyond max_positions: states begin anew
    EXPECT_EQ(generator.generate(std::vector<std::string>{"sun"}, greedy).front().outputs.front().ids.size(),
              60U);
    greedy.beam = 3;
    EXPECT_FALSE(generator.generate(std::vector<std::string>{"sun"}, greedy).front().outputs.empty());
  }
}

// Random features are no parameters, but a run that starts from another needs that one's.
TEST(TrainedMixers, RandomFeaturesComeFromTheRunThatIsContinued) {
  const TinyWorld world;
  const std::vector<std::string> performer{"model.attention=performer", "training.steps=2"};
  train(world.experiment("language_modeling", performer), {.run_dir = world.path("first")});
  auto next = performer;
  next.push_back("training.seed=5");
  next.push_back("init_from=" + world.path("first").string());
  train(world.experiment("language_modeling", next), {.run_dir = world.path("second")});
  const auto features = [&](const char* run) {
    return Run::open(world.path(run))
        .model()
        .named_buffers()["decoder.layers.0.self_attention.features"]
        .clone();
  };
  EXPECT_TRUE(torch::equal(features("first"), features("second")));
}

}  // namespace
}  // namespace zoo
