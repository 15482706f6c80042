#include <torch/types.h>
#include <torch/utils.h>

#include <zoo/layers/weights/linear.h>

#include "types.h"

namespace {

struct RunningMeanOptions {
  double decay = 0.8;
};
void describe(zoo::ConfigVisitor& v, RunningMeanOptions& options) {
  v.field("decay", options.decay, "Part of the mean that stays at each token.",
          {.min = 0, .max = 1, .min_excluded = true});
}

/// The mean (B, D) after the last token of each row.
class RunningMeanState final : public zoo::LayerState {
 public:
  explicit RunningMeanState(torch::Tensor mean) : mean(std::move(mean)) {}

  void reorder(const torch::Tensor& rows) override { mean = mean.index_select(0, rows); }
  void join(const LayerState& other) override {
    mean = torch::cat({mean, dynamic_cast<const RunningMeanState&>(other).mean});
  }
  void truncate(std::span<const int64_t> from, std::span<const int64_t> to) override {
    for (size_t b = 0; b < from.size(); ++b) {
      TORCH_CHECK(to[b] == 0 || to[b] == from[b], "a running mean cannot go back");
      if (to[b] == 0) mean.select(0, static_cast<int64_t>(b)).zero_();
    }
  }
  std::unique_ptr<LayerState> copy() const override {
    return std::make_unique<RunningMeanState>(mean.clone());
  }
  int64_t bytes() const override { return static_cast<int64_t>(mean.nbytes()); }

  torch::Tensor mean;
};

/// y_t = W_out m_t, m_t = decay · m_{t-1} + (1 - decay) · W_value x_t.
class RunningMean final : public zoo::MixerImpl {
 public:
  RunningMean(int64_t d_model, double decay) : d_model_(d_model), decay_(decay) {
    value = register_module("value", zoo::Linear(zoo::LinearOptions(d_model, d_model)));
    out = register_module(
        "out", zoo::Linear(zoo::linear_options(d_model, d_model, zoo::WeightUse::residual_output)));
  }

  torch::Tensor forward(const torch::Tensor& x, const zoo::AttentionContext& context) override {
    const int64_t n = x.size(1);
    const auto t = torch::arange(n, x.options());
    const auto distance = t.unsqueeze(1) - t.unsqueeze(0);  // (T, T)
    const auto weights = torch::where(distance >= 0, (1 - decay_) * torch::pow(decay_, distance.clamp_min(0)),
                                      torch::zeros({}, x.options()));
    auto mean = torch::matmul(weights, value(x));  // (B, T, D)
    if (context.state) {
      auto& state = dynamic_cast<RunningMeanState&>(*context.state);
      mean = mean + torch::pow(decay_, t + 1).unsqueeze(1) * state.mean.unsqueeze(1);
      remember(mean, *context.range, state);
    }
    if (context.maps) context.maps->push_back(weights.expand({x.size(0), 1, n, n}));
    return out(mean);
  }

  std::unique_ptr<zoo::LayerState> new_state(int64_t n_rows) const override {
    return std::make_unique<RunningMeanState>(
        torch::zeros({n_rows, d_model_}, out->matrix().numbers().options().requires_grad(false)));
  }

  zoo::Linear value{nullptr}, out{nullptr};

 private:
  /// Keeps the mean after the last token of each row; a row that reads nothing keeps its own.
  static void remember(const torch::Tensor& mean, const zoo::PositionRange& range, RunningMeanState& state) {
    if (!range.counts().defined()) {
      state.mean = mean.select(1, mean.size(1) - 1).detach().clone();
      return;
    }
    const auto last = (range.counts() - 1).clamp_min(0).view({-1, 1, 1}).expand({-1, 1, mean.size(2)});
    const auto newest = mean.gather(1, last).squeeze(1).detach();
    state.mean = torch::where(range.counts().unsqueeze(1) > 0, newest, state.mean);
  }

  int64_t d_model_;
  double decay_;
};

}  // namespace

zoo::MixerType running_mean() {
  zoo::MixerType type;
  type.name = "running_mean";
  type.doc = "An exponential mean of the past.";
  type.make_options = zoo::options_of<RunningMeanOptions>();
  type.make = [](const zoo::MixerPlace& place) -> std::shared_ptr<zoo::MixerImpl> {
    return std::make_shared<RunningMean>(place.model.d_model,
                                         place.selection().as<RunningMeanOptions>().decay);
  };
  type.count = [](zoo::CostAccount& account, std::string name, const zoo::MixerPlace& place,
                  const zoo::AttentionShape& shape) {
    const auto n_tokens = static_cast<double>(shape.batch_size * shape.n_queries);
    zoo::count_linear(account, account.path(name, "value"), "self-attention",
                      {place.model.d_model, place.model.d_model}, n_tokens);
    zoo::count_linear(account, account.path(name, "out"), "linear",
                      {place.model.d_model, place.model.d_model}, n_tokens);
  };
  type.validate = [](const zoo::MixerPlace& place, const auto& complain) {
    if (place.role == zoo::StackRole::encoder)
      complain("running_mean sees the past alone: it is for decoders");
  };
  return type;
}
