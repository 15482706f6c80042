#include "training/step_graph.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)  // LibTorch 2.13
#include <ATen/core/GraphImplInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/random.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What a graph has recorded of a step.
struct Recorded {
  const std::vector<Batch>* batches = nullptr;
  torch::Tensor result;
  std::vector<torch::Tensor> gradients;
};

/// Imitates a GPU's graphs on the CPU. A replay runs the recorded step again on the same tensors, and writes
/// its results into the same memory.
struct RecordedStep {
  std::function<torch::Tensor(const std::vector<Batch>&)> body;
  std::vector<torch::Tensor> parameters;
  Recorded newest;
  bool recording = false, unable = false;
  int n_replays = 0;

  torch::Tensor run(const std::vector<Batch>& rows) {
    const auto out = body(rows);
    if (!recording) return out;
    TORCH_CHECK(!unable, "operation not permitted when stream is capturing");
    newest = {.batches = &rows, .result = out, .gradients = {}};
    for (const auto& parameter : parameters) newest.gradients.push_back(parameter.grad());
    return out;
  }
  void replay(const Recorded& recorded) {
    ++n_replays;
    const RandomScope random({1});  // a replay on a GPU draws no seeds
    recorded.result.copy_(body(*recorded.batches));
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (recorded.gradients[i].defined()) recorded.gradients[i].copy_(parameters[i].grad());
      parameters[i].mutable_grad().reset();
    }
  }
};
RecordedStep* recorded_step = nullptr;

struct GraphOfTheProcessor : at::GraphImplInterface {
  explicit GraphOfTheProcessor(const at::GraphImplArgs&) {}
  void capture_begin(at::MempoolId_t, at::GraphCaptureMode) override { recorded_step->recording = true; }
  void capture_end() override {
    recorded_step->recording = false;
    recorded_ = recorded_step->newest;
  }
  void instantiate() override {}
  void replay() override { recorded_step->replay(recorded_); }
  void reset() override {}
  at::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

 private:
  Recorded recorded_;
};

/// Two models with the same weights. One is trained with recorded steps, the other without.
class RecordedTraining : public ::testing::Test {
 public:
  RecordedTraining() {
    if (!at::has_graph_impl(torch::kCPU))
      at::GraphImplRegistry()->Register("CPU", [](const at::GraphImplArgs& args) {
        return std::unique_ptr<at::GraphImplInterface>(std::make_unique<GraphOfTheProcessor>(args));
      });
    recorded_step = &step_;
    step_.parameters = recorded_->parameters();
    step_.body = body_of(recorded_);
    graph_ = std::make_unique<StepGraph>(step_.parameters, std::vector<torch::Tensor>(), torch::kCPU);
  }
  ~RecordedTraining() override { recorded_step = nullptr; }
  RecordedTraining(const RecordedTraining&) = delete;
  RecordedTraining& operator=(const RecordedTraining&) = delete;

 protected:
  static std::shared_ptr<Model> model() {
    auto config = small_config(Architecture::decoder);
    config.dropout = 0;
    const auto result = random_model(config);
    result->train();
    return result;
  }
  static std::function<torch::Tensor(const std::vector<Batch>&)> body_of(
      const std::shared_ptr<Model>& model) {
    const auto gradients = std::make_shared<GradientAccumulator>(model, std::make_shared<TokenCrossEntropy>(),
                                                                 GradientOptions{.n_parts = 1});
    return [gradients](const std::vector<Batch>& batches) { return gradients->differentiate(batches); };
  }
  static void descend(Model& model) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model.parameters()) {
      if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.05);
      parameter.mutable_grad().reset();
    }
  }
  /// Takes a step of both models on new batches. Their results must be equal, and they must draw equally many
  /// seeds.
  void take_step(int64_t n_rows, int64_t n_batches = 1, double scale = 1) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < n_batches; ++i)
      batches.push_back(small_batch(Architecture::decoder, {tokens(n_rows, 6)}));
    auto generator = at::detail::getDefaultCPUGenerator();
    const auto state = generator.get_state();
    const auto expected = plain_body_(batches);
    const auto after = generator.get_state();
    generator.set_state(state);
    const auto found =
        graph_->run(batches, scale, [this](const std::vector<Batch>& rows) { return step_.run(rows); });
    EXPECT_TRUE(torch::equal(found, expected));
    EXPECT_TRUE(torch::equal(generator.get_state(), after));
    descend(*plain_);
    descend(*recorded_);
    const auto ours = recorded_->parameters(), theirs = plain_->parameters();
    for (size_t i = 0; i < ours.size(); ++i) ASSERT_TRUE(torch::equal(ours[i], theirs[i])) << i;
  }

  std::shared_ptr<Model> plain_ = model(), recorded_ = model();
  std::function<torch::Tensor(const std::vector<Batch>&)> plain_body_ = body_of(plain_);
  RecordedStep step_;
  std::unique_ptr<StepGraph> graph_;
};

TEST_F(RecordedTraining, TakesTheSameStepsAsOneThatIsNot) {
  std::vector<int> replays;
  for (int i = 0; i < 6; ++i) {
    take_step(4);
    replays.push_back(step_.n_replays);
  }
  EXPECT_THAT(replays, ElementsAre(0, 0, 0, 1, 2, 3));
}

TEST_F(RecordedTraining, RecordsSeveralBatches) {
  for (int i = 0; i < 6; ++i) take_step(3, 2);
  EXPECT_EQ(step_.n_replays, 3);
}

TEST_F(RecordedTraining, OtherShapesRunAsTheyAre) {
  for (const int64_t n_rows : {4, 4, 3, 4, 4, 4, 4, 2, 4}) take_step(n_rows);
  EXPECT_EQ(step_.n_replays, 4);
}

// Such as buckets of lengths, in any order.
TEST_F(RecordedTraining, EachShapeHasARecording) {
  for (const int64_t n_rows : {4, 3, 4, 3, 4, 3, 4, 3, 3, 4}) take_step(n_rows);
  EXPECT_EQ(step_.n_replays, 4);
}

TEST_F(RecordedTraining, AnotherScaleIsRecordedAnew) {
  for (const double scale : {1., 1., 1., 1., 2., 2., 2., 2., 2.}) take_step(4, 1, scale);
  EXPECT_EQ(step_.n_replays, 3);
}

TEST_F(RecordedTraining, SaysWhatCannotBeRecorded) {
  step_.unable = true;
  for (int i = 0; i < 3; ++i) take_step(4);
  EXPECT_THAT(
      message_of<TrainingError>([this] { take_step(4); }),
      AllOf(HasSubstr("training.cuda_graphs: true: a step of this model cannot be recorded (operation not"),
            HasSubstr("leave it out")));
}

}  // namespace
}  // namespace zoo::testing
#endif
