#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "types.h"

namespace {

struct SignOptions {
  double decay = 0.9;
};
void describe(zoo::ConfigVisitor& v, SignOptions& options) {
  v.field("decay", options.decay, "Part of the momentum that stays at each step.", {.min = 0, .max = 0.9999});
}

/// m = decay·m + (1 - decay)·g, p -= lr·(sign(m) + λ·p).
class MomentumSign final : public zoo::UpdateRule {
 public:
  explicit MomentumSign(double decay) : decay_(decay) {}
  std::vector<zoo::StateTensor> initial_state(const torch::Tensor& parameter) const override {
    return {{"momentum", torch::zeros_like(parameter)}};
  }
  void update(const zoo::ParameterGroup& group, double lr) const override {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      auto parameter = group.parameters[i], momentum = group.state[0][i];
      momentum.lerp_(group.gradients[i], 1 - decay_);
      parameter.sub_(momentum.sign() + group.weight_decay * parameter, lr);
    }
  }

 private:
  double decay_;
};

struct StaircaseOptions {
  int64_t every = 8;
};
void describe(zoo::ConfigVisitor& v, StaircaseOptions& options) {
  v.field("every", options.every, "Steps after which the rate is halved.", zoo::Limits::at_least(1));
}

/// exp(loss per target) of the example in the middle.
double median_perplexity(const zoo::Selection&, const std::vector<zoo::ExampleScore>& examples) {
  std::vector<double> losses;
  for (const auto& example : examples) losses.push_back(example.loss / static_cast<double>(example.targets));
  std::nth_element(losses.begin(), losses.begin() + std::ssize(losses) / 2, losses.end());
  return std::exp(losses[losses.size() / 2]);
}

/// The largest weight at each logged step, and how much is learnt beyond it at each evaluation.
class LargestWeight final : public zoo::TrainingObserver {
 public:
  zoo::Metrics after_step(const zoo::Model& model, int64_t) override {
    return {{"largest_weight", largest(model)}};
  }
  zoo::Metrics after_evaluation(const zoo::Model& model, const zoo::Metrics& metrics) override {
    return {{"loss_by_weight", metrics.at("loss") / largest(model)}};
  }
  void after_checkpoint(const zoo::Model& model, int64_t step, const std::filesystem::path& run) override {
    std::ofstream(run / "largest.txt") << step << ' ' << largest(model) << '\n';
  }

 private:
  static double largest(const zoo::Model& model) {
    const torch::NoGradGuard no_grad;
    double result = 0;
    for (const auto& parameter : model.parameters())
      result = std::max(result, parameter.abs().max().item<double>());
    return result;
  }
};

/// Forbids the token that has just been said.
class NoDoubles final : public zoo::LogitsProcessor {
 public:
  torch::Tensor process(const torch::Tensor& logits, std::span<const zoo::SequenceView> rows) const override {
    auto result = logits.clone();
    for (size_t b = 0; b < rows.size(); ++b) {
      const auto& said = rows[b].generated.empty() ? rows[b].prompt : rows[b].generated;
      if (!said.empty()) result[static_cast<int64_t>(b)][said.back()] = -INFINITY;
    }
    return result;
  }
};

}  // namespace

zoo::OptimizerType momentum_sign() {
  zoo::OptimizerType type;
  type.name = "momentum_sign";
  type.doc = "Steps by the sign of the momentum.";
  type.make_options = zoo::options_of<SignOptions>();
  type.make = [](const zoo::OptimizerConfig& config) -> std::unique_ptr<zoo::UpdateRule> {
    return std::make_unique<MomentumSign>(config.type.as<SignOptions>().decay);
  };
  return type;
}

zoo::ScheduleType staircase() {
  zoo::ScheduleType type;
  type.name = "staircase";
  type.doc = "Half the rate after every so many steps.";
  type.make_options = zoo::options_of<StaircaseOptions>();
  type.rate = [](const zoo::SchedulePoint& at) {
    const auto stairs = at.step / at.config.type.as<StaircaseOptions>().every;
    return at.peak * std::exp2(-static_cast<double>(stairs));
  };
  return type;
}

zoo::MetricType median_perplexity_type() {
  zoo::MetricType type;
  type.name = "median_perplexity";
  type.doc = "Perplexity of the example in the middle.";
  type.better = zoo::Better::lower;
  type.measure = median_perplexity;
  return type;
}

zoo::TrainingObserverType largest_weight() {
  zoo::TrainingObserverType type;
  type.name = "largest_weight";
  type.doc = "The largest weight.";
  type.make = [](const zoo::Selection&) { return std::make_unique<LargestWeight>(); };
  return type;
}

zoo::TokenRuleType no_doubles() {
  zoo::TokenRuleType type;
  type.name = "no_doubles";
  type.doc = "No token follows itself.";
  type.make = [](const zoo::Selection&,
                 const zoo::TokenRuleContext&) -> std::unique_ptr<const zoo::LogitsProcessor> {
    return std::make_unique<NoDoubles>();
  };
  return type;
}
