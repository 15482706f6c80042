// Weights that are not numbers: in files, in checkpoints, in evaluations.

#include "checkpoints/finite.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/average_run.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "io/safetensors.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Changes one tensor of a file.
void change(const fs::path& path, const std::string& name, const std::function<void(torch::Tensor&)>& how) {
  TensorMap tensors;
  {
    const SafetensorsFile stored(path);
    for (const auto& each : stored.names()) tensors.emplace(each, stored.tensor(each).clone());
  }
  how(tensors.at(name));
  save_safetensors(path, tensors);
}

TEST(Finite, FindsTheFirstTensorThatIsNot) {
  TensorMap tensors{{"a", torch::ones({3, 2})}, {"b", torch::tensor(7)}, {"empty", torch::empty({0})}};
  EXPECT_EQ(find_not_finite(tensors), std::nullopt);
  EXPECT_EQ(find_not_finite(TensorMap()), std::nullopt);
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    for (const double value : {kNan, kInfinity, -kInfinity}) {
      auto bad = tensors;
      bad["c"] = torch::ones({70}, type);
      EXPECT_EQ(find_not_finite(bad), std::nullopt);
      bad["c"][69].fill_(value);
      EXPECT_EQ(find_not_finite(bad), "c") << value;
      bad["a"] = torch::full({2}, kNan);
      EXPECT_EQ(find_not_finite(bad), "a");
    }
  }
  EXPECT_EQ(find_not_finite({{"large", torch::full({2}, 1e300, torch::kDouble)}}), std::nullopt);
}

class RuinedRun : public ::testing::Test {
 protected:
  RuinedRun() {
    experiment = world.experiment("language_modeling", {"training.steps=8", "training.ema_decay=0.9"});
    train(experiment, {.run_dir = run});
  }

  TinyWorld world;
  Experiment experiment;
  fs::path run = world.path("run");
};

TEST_F(RuinedRun, NamesTheTensorOfItsWeights) {
  change(run / "model.safetensors", "token_embedding.weight", [](auto& tensor) { tensor[0][0].fill_(kNan); });
  EXPECT_THAT(message_of<CheckpointError>([&] { Run::open(run); }),
              AllOf(HasSubstr("run/model.safetensors"), HasSubstr("'token_embedding.weight'"),
                    HasSubstr("not numbers")));
}

TEST_F(RuinedRun, IsNotResumedFromAnyRuinedPart) {
  auto longer = experiment;
  longer.training.steps = 9;
  const auto resume = [&] {
    return message_of<CheckpointError>(
        [&] { train(longer, {.run_dir = run, .existing = ExistingRun::resume}); });
  };
  const auto checkpoint = run / "checkpoints/step-8";
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "average.safetensors"}) {
    const auto whole = read_file(checkpoint / name);
    std::string tensor;
    {
      const SafetensorsFile file(checkpoint / name);
      for (const auto& each : file.names()) {
        if (file.tensor(each).is_floating_point() && file.tensor(each).dim() == 2) tensor = each;
      }
    }
    change(checkpoint / name, tensor, [](auto& t) { t[1][1].fill_(kInfinity); });
    EXPECT_THAT(resume(), AllOf(HasSubstr(name), HasSubstr(tensor), HasSubstr("not numbers")));
    write_file_atomically(checkpoint / name, whole);
  }
  EXPECT_EQ(resume(), "no error");
}

TEST_F(RuinedRun, IsNotAveragedAndStartsNoOtherRun) {
  change(run / "checkpoints/step-4/model.safetensors", "token_embedding.weight",
         [](auto& tensor) { tensor.fill_(kNan); });
  EXPECT_THAT(message_of<CheckpointError>([&] { average_run(run, {.out = world.path("mean"), .last = {}}); }),
              HasSubstr("step-4/model.safetensors"));
  change(run / "model.safetensors", "token_embedding.weight", [](auto& tensor) { tensor.fill_(kNan); });
  auto next = experiment;
  next.init_from = run.string();
  EXPECT_THAT(message_of<CheckpointError>([&] { train(next, {.run_dir = world.path("next")}); }),
              HasSubstr("'token_embedding.weight'"));
}

// The weights are numbers, but the model's outputs are not.
TEST_F(RuinedRun, AnEvaluationWithoutAResultIsAnError) {
  change(run / "model.safetensors", "token_embedding.weight", [](auto& tensor) { tensor.fill_(1e30); });
  change(run / "model.safetensors", "decoder.final_norm.weight", [](auto& tensor) { tensor.fill_(1e30); });
  const auto opened = Run::open(run);
  EXPECT_THAT(message_of<CheckpointError>([&] { opened.evaluate(Split::valid); }),
              AllOf(HasSubstr("run/model.safetensors"), HasSubstr("the loss of these weights is")));
}

// A step of endless length ruins the weights after a loss that was a number.
TEST(Diverged, ACheckpointIsMadeOfNumbers) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const TinyWorld world;
    const auto run = world.path("run");
    auto experiment = world.experiment(
        "language_modeling",
        {fmt::format("training.optimizer.type={}", optimizer), "training.checkpoint_every=1",
         "training.schedule={type: constant, warmup_steps: 0}", "training.clip_grad_norm=0",
         "training.evaluate_every=100", "training.steps=2", "training.optimizer.weight_decay=0"});
    train(experiment, {.run_dir = run});
    experiment.training.steps = 20;
    experiment.training.optimizer.lr = 1e38;
    const auto message = message_of<TrainingError>(
        [&] { train(experiment, {.run_dir = run, .existing = ExistingRun::resume}); });
    EXPECT_THAT(message, HasSubstr("step-2")) << "the last good checkpoint";
    EXPECT_THAT(message, HasSubstr("a lower training.optimizer.lr"));
    for (const auto& checkpoint : checkpoints_of(run)) {
      const SafetensorsFile file(checkpoint / "model.safetensors");
      for (const auto& name : file.names())
        EXPECT_TRUE(file.tensor(name).isfinite().all().item<bool>()) << name;
    }
    EXPECT_EQ(read_file(run / kFailureFile), message + "\n");

    // What the message says helps.
    for (const auto& checkpoint : checkpoints_of(run)) {
      if (*step_of(checkpoint) > 2) fs::remove_all(checkpoint);
    }
    experiment.training.optimizer.lr = 1e-3;
    EXPECT_EQ(train(experiment, {.run_dir = run, .existing = ExistingRun::resume}).step, 20);
    EXPECT_FALSE(fs::exists(run / kFailureFile));
  }
}

}  // namespace
}  // namespace zoo::testing
