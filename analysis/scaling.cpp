#include "analysis/scaling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/measure.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "models/mixers.h"
#include "models/stack.h"
#include "training/gradients/memory.h"

namespace zoo {
namespace {

/// Forward FLOPs of the first module of a kind over a sequence.
double module_flops(const ModelConfig& config, const ModelPurpose& purpose, std::string_view kind,
                    int64_t length) {
  const auto cost = model_cost(config, purpose, length);
  const auto layer = std::ranges::find(cost.layers, kind, &LayerCost::kind);
  return layer == cost.layers.end() ? 0 : layer->flops_per_token * static_cast<double>(length);
}

/// Additions and multiplications of one norm over a sequence: the terms of layers/norm.h.
double norm_flops(const ModelConfig& config, int64_t length) {
  const bool centred = config.norm == NormKind::layer_norm || config.norm == NormKind::layer_norm_annotated;
  const double centring = centred ? 2 : 0;  // the mean, and subtracting it
  const double scaling = 3;                 // squares, their sum, and dividing by the root
  const double gain = centred && config.bias ? 2 : 1;
  return (centring + scaling + gain) * static_cast<double>(config.d_model * length);
}

StackRole first_role(const ModelConfig& config) {
  return shape_of(config) == FamilyShape::decoder ? StackRole::decoder : StackRole::encoder;
}

class ScalingMeter {
 public:
  ScalingMeter(const ModelConfig& config, const ModelPurpose& purpose, c10::Device device,
               const ScalingOptions& options)
      : config_(config), purpose_(purpose), device_(device), options_(options) {
    auto one_layer = config;
    one_layer.n_layers = 1;
    one_layer.max_positions = std::max(config.max_positions, layer_lengths().back());
    stack_ = Stack(one_layer, first_role(config));
    stack_->to(device);
    stack_->eval();
  }

  ScalingCurve attention() {
    return measure(
        {.part = ScalingPart::attention,
         .order = fmt::format("O({})", order_of(0)),
         .lengths = layer_lengths()},
        [this](int64_t n) { return attention_flops(n); }, [this](int64_t n) { return attention_pass(n); });
  }

  ScalingCurve feed_forward() {
    return measure(
        {.part = ScalingPart::feed_forward, .order = "O(nd²)", .lengths = layer_lengths()},
        [this](int64_t n) { return feed_forward_flops(n); },
        [this](int64_t n) { return pass(stack_->layers.front()->feed_forward.ptr(), n); });
  }

  ScalingCurve norm() {
    const auto& residual = *stack_->layers.front()->residual;
    const auto norm = (residual.norms_in.empty() ? residual.norms_out : residual.norms_in).front().ptr();
    return measure(
        {.part = ScalingPart::norm, .order = "O(nd)", .lengths = layer_lengths()},
        [this](int64_t n) { return norm_flops(config_, n); },
        [this, norm](int64_t n) { return pass(norm, n); });
  }

  ScalingCurve model() {
    const Flops flops = [this](int64_t n) {
      return forward_flops(config_, purpose_, pass_shape(example(n)));
    };
    const auto lengths = affordable_lengths(flops);
    auto config = config_;
    config.max_positions = std::max(config.max_positions, lengths.back());
    const auto model = make_model(config, purpose_);
    model->to(device_);
    model->eval();
    return measure({.part = ScalingPart::model, .order = model_order(), .lengths = lengths}, flops,
                   [this, model](int64_t n) -> Pass {
                     const auto batch = example(n).to(device_);
                     return [model, batch] { model->logits(model->features(batch)); };
                   });
  }

 private:
  const std::string& order_of(int64_t layer) const {
    return mixer_types().at(config_.attention_of(layer)).order;
  }
  /// The orders of all mixers, and the feed-forward's.
  std::string model_order() const {
    const std::string feed_forward = "nd²";
    std::vector<std::string> orders;
    for (int64_t layer = 0; layer < std::ssize(config_.attention); ++layer) {
      const auto& order = order_of(layer);
      if (order != feed_forward && std::ranges::find(orders, order) == orders.end()) orders.push_back(order);
    }
    orders.push_back(feed_forward);
    return fmt::format("O({})", fmt::join(orders, " + "));
  }

  /// One sequence for the whole model.
  Batch example(int64_t length) const {
    return model_families().at(config_.architecture).example(config_, purpose_, length);
  }

  using Flops = std::function<double(int64_t length)>;
  using Pass = std::function<void()>;
  using Prepare = std::function<Pass(int64_t length)>;  // makes the inputs

  double attention_flops(int64_t n) const { return module_flops(config_, purpose_, "self-attention", n); }
  double feed_forward_flops(int64_t n) const { return module_flops(config_, purpose_, "feed-forward", n); }

  std::vector<int64_t> affordable_lengths(const Flops& flops) const {
    std::vector<int64_t> lengths;
    const auto fewest = static_cast<size_t>(std::max<int64_t>(options_.fewest, 1));
    for (int64_t n = options_.shortest; lengths.size() < fewest || flops(n) <= options_.max_flops; n *= 2) {
      lengths.push_back(n);
    }
    return lengths;
  }
  /// Lengths for all parts of a layer: equal, so that the parts can be compared.
  std::vector<int64_t> layer_lengths() const {
    return affordable_lengths([this](int64_t n) { return attention_flops(n) + feed_forward_flops(n); });
  }

  /// Fills the curve. Its lengths are candidates: it stops before a length that might need too much memory.
  ScalingCurve measure(ScalingCurve curve, const Flops& flops, const Prepare& prepare) const {
    constexpr int64_t kMostGrowth = 4;  // of memory from one length to the next, as for a (T, T) matrix
    const auto lengths = std::exchange(curve.lengths, {});
    for (const int64_t length : lengths) {
      if (!curve.bytes.empty() && kMostGrowth * curve.bytes.back() > options_.max_bytes) break;
      prepare(length)();  // grows tables of positions, so that neither time nor bytes count them
      const TensorMemory memory(device_);
      const auto forward = prepare(length);
      const Times times = measure_times(forward, device_, options_.seconds);
      curve.lengths.push_back(length);
      curve.flops.push_back(flops(length));
      curve.seconds.push_back(times.median);
      curve.seconds_low.push_back(times.low);
      curve.seconds_high.push_back(times.high);
      curve.bytes.push_back(memory.peak());
    }
    curve.flops_exponent = fitted_exponent(curve.lengths, curve.flops);
    curve.seconds_exponent = fitted_exponent(curve.lengths, curve.seconds);
    return curve;
  }

  /// (1, n, D)
  torch::Tensor hidden_states(int64_t length) const {
    return torch::randn({1, length, config_.d_model}, torch::device(device_));
  }

  template <class Module>
  Pass pass(const std::shared_ptr<Module>& module, int64_t length) const {
    return [module, x = hidden_states(length)] { module->forward(x); };
  }

  /// Self-attention with the mask and positions that a stack prepares for its layers.
  Pass attention_pass(int64_t length) {
    struct Call {
      torch::Tensor x;
      RotaryTable rotary;
      PositionRange range;
      AttentionContext context;
    };
    const auto call = std::make_shared<Call>();
    call->range = PositionRange(0, length);
    call->x = hidden_states(length);
    call->context.range = &call->range;
    if (first_role(config_) == StackRole::decoder) call->context.mask = Mask::causal();
    if (stack_->rotary) {
      call->rotary = stack_->rotary->forward(call->range, device_);
      call->context.rotary = &call->rotary;
    }
    if (stack_->position_bias) call->context.bias = stack_->position_bias->forward(call->range);
    if (config_.position == Position::alibi)
      call->context.bias = alibi_bias(alibi_slopes(config_.n_heads).to(device_), call->range);
    return [call, attention = stack_->layers.front()->self_attention] {
      attention->forward(call->x, call->context);
    };
  }

  const ModelConfig& config_;
  const ModelPurpose& purpose_;
  c10::Device device_;
  const ScalingOptions& options_;
  Stack stack_{nullptr};  // of one layer, whose parts are measured one by one
};

}  // namespace

ScalingOptions scaling_options(c10::Device device) {
  ScalingOptions options;
  if (!device.is_cpu()) {
    options.max_flops = 2e13;
    options.max_bytes = int64_t{16} << 30;
  }
  return options;
}

std::vector<ScalingCurve> measure_scaling(const ModelConfig& config, const ModelPurpose& purpose,
                                          c10::Device device, const ScalingOptions& options) {
  check_model(config, purpose);
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  ScalingMeter meter(config, purpose, device, options);
  std::vector<ScalingCurve> curves{meter.attention(), meter.feed_forward(), meter.norm()};
  if (model_families().at(config.architecture).example) curves.push_back(meter.model());
  return curves;
}

std::optional<double> fitted_exponent(std::span<const int64_t> lengths, std::span<const double> values) {
  const size_t n = lengths.size();
  if (n < 2 || values.size() != n) return std::nullopt;
  const size_t n_fitted = std::max<size_t>((n + 1) / 2, 2);
  std::vector<double> x, y;
  for (size_t i = n - n_fitted; i < n; ++i) {
    if (!(values[i] > 0)) return std::nullopt;
    x.push_back(std::log(static_cast<double>(lengths[i])));
    y.push_back(std::log(values[i]));
  }
  const auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  const double mean_x = mean(x), mean_y = mean(y);
  double products = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - mean_x) * (y[i] - mean_y);
    squares += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return products / squares;
}

nlohmann::ordered_json to_json(const ScalingCurve& curve) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  return {{"part", name_of(curve.part)},
          {"order", curve.order},
          {"lengths", curve.lengths},
          {"flops", curve.flops},
          {"seconds", curve.seconds},
          {"seconds_low", curve.seconds_low},
          {"seconds_high", curve.seconds_high},
          {"bytes", curve.bytes},
          {"flops_exponent", number(curve.flops_exponent)},
          {"seconds_exponent", number(curve.seconds_exponent)}};
}

}  // namespace zoo
