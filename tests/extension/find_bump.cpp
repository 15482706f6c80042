#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include <zoo/base/random.h>
#include <zoo/data/epoch_plan.h>
#include <zoo/models/inference_scope.h>
#include <zoo/tasks/task.h>

#include "types.h"

namespace {

struct FindBumpOptions {
  int64_t n_examples = 256, height = 4, width = 5;
  double delta = 0.2;
};
void describe(zoo::ConfigVisitor& v, FindBumpOptions& options) {
  v.field("n_examples", options.n_examples, "Grids in the training data.", zoo::Limits::at_least(1));
  v.field("height", options.height, "Rows of a grid.", zoo::Limits::at_least(1));
  v.field("width", options.width, "Columns of a grid.", zoo::Limits::at_least(1));
  v.field("delta", options.delta, "Where Huber's loss becomes linear.", zoo::Limits::positive());
}

constexpr int64_t kFeatures = 3;

/// Example i is a function of the split and i.
class BumpBatches final : public zoo::PlannedBatches {
 public:
  BumpBatches(const FindBumpOptions& task, zoo::Split split, const zoo::BatchOptions& options)
      : PlannedBatches(zoo::unbucketed(options)), task_(task), split_(split) {}

 private:
  zoo::EpochPlan make_plan(int64_t epoch) const override {
    const int64_t n = split_ == zoo::Split::train ? task_.n_examples : task_.n_examples / 4 + 1;
    return zoo::plan_epoch(std::vector<int64_t>(static_cast<size_t>(n), task_.height * task_.width),
                           options(), epoch);
  }
  zoo::Batch make(int64_t, std::span<const int64_t> examples) const override {
    const auto n = std::ssize(examples);
    zoo::Batch batch;
    auto grid = torch::empty({n, task_.height, task_.width, kFeatures});
    auto place = torch::empty({n, 2});
    float* number = grid.mutable_data_ptr<float>();
    for (int64_t b = 0; b < n; ++b) {
      zoo::CounterRandom random({static_cast<uint64_t>(split_), static_cast<uint64_t>(examples[b])});
      const double row = random.uniform(), column = random.uniform();
      place[b][0] = row, place[b][1] = column;
      for (int64_t i = 0; i < task_.height * task_.width * kFeatures; ++i) {
        const auto cell = i / kFeatures;
        const double y = static_cast<double>(cell / task_.width) / static_cast<double>(task_.height);
        const double x = static_cast<double>(cell % task_.width) / static_cast<double>(task_.width);
        const double bump = std::exp(-8 * ((y - row) * (y - row) + (x - column) * (x - column)));
        *number++ = static_cast<float>(bump + 0.1 * random.uniform());
      }
    }
    batch.fields = {{"grid", grid}, {"place", place}};
    batch.tokens = n * task_.height * task_.width;
    return batch;
  }

  FindBumpOptions task_;
  zoo::Split split_;
};

/// Huber's loss of the two numbers of each row.
class HuberLoss final : public zoo::Objective {
 public:
  explicit HuberLoss(double delta) : delta_(delta) {}
  int64_t n_targets(const zoo::Batch& batch) const override { return batch.n_rows(); }
  torch::Tensor loss(zoo::Model& model, const zoo::Batch& part) const override {
    return at::huber_loss(model.logits(model.features(part)).to(torch::kFloat), part.field("place"),
                          at::Reduction::Sum, delta_);
  }

 private:
  double delta_;
};

class FindBump final : public zoo::Task {
 public:
  using Task::Task;

  zoo::ModelPurpose purpose() const override { return {.head = zoo::HeadKind::regression, .n_classes = 2}; }

  zoo::Metrics measure(zoo::Model& model, zoo::Split split, const zoo::EvaluationOptions& options) override {
    auto metrics = Task::measure(model, split, options);
    const zoo::InferenceScope scope(model);
    auto& source = batches(split);
    auto distance = torch::zeros({}, torch::kDouble);
    int64_t n = 0;
    for (int64_t i = 0; i < source.n_batches(0); ++i) {
      const auto batch = source.batch(0, i).to(model.device());
      const auto error = model.logits(model.features(batch)) - batch.field("place");
      distance += error.norm(2, -1).sum().to(torch::kCPU);
      n += batch.n_rows();
    }
    metrics["distance"] = distance.item<double>() / static_cast<double>(n);
    return metrics;
  }

  std::vector<zoo::Sample> samples(zoo::Model& model, const std::vector<std::string>&) override {
    const zoo::InferenceScope scope(model);
    const auto batch = batches(zoo::Split::valid).batch(0, 0).to(model.device());
    const auto shown = [](const torch::Tensor& row) {
      return fmt::format("{:.2f} {:.2f}", row[0].item<float>(), row[1].item<float>());
    };
    const auto found = model.logits(model.features(batch));
    return {{.input = "a grid", .output = shown(found[0]), .reference = shown(batch.field("place")[0])}};
  }

 private:
  std::unique_ptr<zoo::BatchSource> open(zoo::Split split) override {
    return std::make_unique<BumpBatches>(experiment().task.as<FindBumpOptions>(), split,
                                         batch_options(split));
  }
  std::shared_ptr<const zoo::Objective> own_objective(const zoo::ObjectiveContext&) const override {
    return std::make_shared<HuberLoss>(experiment().task.as<FindBumpOptions>().delta);
  }
};

}  // namespace

zoo::TaskType find_bump() {
  zoo::TaskType type;
  type.name = "find_bump";
  type.doc = "The place of a bump on a grid.";
  type.make_options = zoo::options_of<FindBumpOptions>();
  const zoo::Metric distance{.key = "distance", .label = "distance from the bump"};
  type.best_by = {distance};
  type.comparison = distance;
  type.needs = zoo::VocabularyNeeds::nothing;
  type.make = [](const zoo::Experiment& experiment, zoo::Vocabulary) -> std::unique_ptr<zoo::Task> {
    return std::make_unique<FindBump>(experiment, zoo::Vocabulary{});
  };
  type.purpose = [](const zoo::Experiment&, int64_t) -> std::optional<zoo::ModelPurpose> {
    return zoo::ModelPurpose{.head = zoo::HeadKind::regression, .n_classes = 2};
  };
  return type;
}
