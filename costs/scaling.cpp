#include "costs/scaling.h"

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

#include "base/student_t.h"
#include "base/tensor_memory.h"
#include "costs/measure.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "models/mixers/mixers.h"
#include "models/stack.h"

namespace zoo {
namespace {

/// Forward FLOPs of the first module of a kind over a sequence.
double module_flops(const ModelConfig& config, const ModelPurpose& purpose, std::string_view kind,
                    int64_t length) {
  const auto cost = model_cost(config, purpose, length);
  const auto layer = std::ranges::find(cost.layers, kind, &LayerCost::kind);
  return layer == cost.layers.end() ? 0 : layer->flops_per_token * static_cast<double>(length);
}

/// Additions and multiplications of one norm over a sequence: the terms of layers/weights/norm.h.
double norm_flops(const ModelConfig& config, int64_t length) {
  const bool centred = norm_options(config, config.d_model).formula()->is_centred();
  const double centring = centred ? 2 : 0;  // the mean, and subtracting it
  const double scaling = 3;                 // squares, their sum, and dividing by the root
  const double gain = centred && config.bias ? 2 : 1;
  return (centring + scaling + gain) * static_cast<double>(config.d_model * length);
}

StackRole first_role(const ModelConfig& config) {
  return shape_of(config) == FamilyShape::decoder ? StackRole::decoder : StackRole::encoder;
}

/// Whether sequences may have any length: not where a mixer or positions are made for one length, or where
/// nothing is a sequence.
bool has_lengths(const ModelConfig& config) {
  return model_families().at(config.architecture).no_maps.empty() && !score_bias_type(config).needs_grid &&
         std::ranges::none_of(config.attention, [](const Selection& mixer) {
           return mixer_types().at(mixer).n_tokens != nullptr;
         });
}

class ScalingMeter {
 public:
  ScalingMeter(const ModelConfig& config, const ModelPurpose& purpose, c10::Device device,
               const ScalingOptions& options)
      : config_(config), purpose_(purpose), device_(device), options_(options) {
    stack_ = layer_for(config.max_positions);
  }

  ScalingCurve attention() {
    return measure(
        {.part = ScalingPart::attention, .order = order(), .lengths = layer_lengths()},
        [this](int64_t n) { return attention_flops(n); },
        [this](int64_t n) -> Pass {
          return [call = attention_call(PositionRange(0, n), layer_for(n))] { call->run(); };
        });
  }

  ScalingCurve training() {
    constexpr double kPasses = 3;  // the backward pass has two products for each one of the forward pass
    return measure(
        {.part = ScalingPart::training, .order = order(), .lengths = layer_lengths()},
        [this](int64_t n) { return kPasses * attention_flops(n); },
        [this](int64_t n) -> Pass {
          const auto call = attention_call(PositionRange(0, n), layer_for(n));
          call->x.requires_grad_();
          return [call, gradient = torch::randn_like(call->x)] {
            const torch::AutoGradMode with_gradients(true);
            call->run().backward(gradient);
            call->x.mutable_grad().reset();
            call->mixer->zero_grad();
          };
        });
  }

  /// For a decoder. The state reads a sequence at once, then single tokens.
  ScalingCurve decoding() {
    ScalingCurve curve{.part = ScalingPart::decoding};
    for (const int64_t length : layer_lengths()) {
      const auto layer = layer_for(length);
      const auto state = layer->layers.front()->self_attention->new_state(1);
      const auto read = [&](const PositionRange& range) {
        const auto call = attention_call(range, layer);
        call->context.state = state.get();
        call->run();
      };
      read(PositionRange(0, length));
      int64_t position = length;
      read(PositionRange(position++, 1));  // now the cache has room for more
      const int64_t bytes = state->bytes();
      const Times times = measure_times([&] { read(PositionRange(position++, 1)); }, device_,
                                        options_.seconds, options_.should_stop);
      add(curve, length, times, bytes);
    }
    fit(curve);
    return curve;
  }

  ScalingCurve feed_forward() {
    return measure(
        {.part = ScalingPart::feed_forward, .order = "O(nd²)", .lengths = layer_lengths()},
        [this](int64_t n) { return feed_forward_flops(n); },
        [this](int64_t n) { return pass(stack_->layers.front()->feed_forward.ptr(), n); });
  }

  ScalingCurve norm() {
    const auto& residual = *stack_->layers.front()->residual;
    const auto norm = (residual.norms_in.empty() ? residual.norms_out : residual.norms_in).back().ptr();
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
    const auto model = initialized_model(config, purpose_);
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
    return mixer_types().at(config_.attention_of(layer)).complexity;
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
    for (int64_t n = options_.shortest;
         n <= options_.longest && (lengths.size() < fewest || flops(n) <= options_.max_flops); n *= 2) {
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
    if (options_.on_message)
      options_.on_message(fmt::format("measuring {} at growing lengths", name_of(curve.part)));
    const auto lengths = std::exchange(curve.lengths, {});
    for (const int64_t length : lengths) {
      if (!curve.bytes.empty() && kMostGrowth * curve.bytes.back() > options_.max_bytes) break;
      prepare(length)();  // grows tables of positions, so that neither time nor bytes count them
      const TensorMemory memory(device_);
      const auto pass = prepare(length);
      const Times times = measure_times(pass, device_, options_.seconds, options_.should_stop);
      curve.flops.push_back(flops(length));
      add(curve, length, times, memory.peak());
    }
    fit(curve);
    return curve;
  }

  static void add(ScalingCurve& curve, int64_t length, const Times& times, int64_t bytes) {
    curve.lengths.push_back(length);
    curve.seconds.push_back(times.median);
    curve.seconds_low.push_back(times.low);
    curve.seconds_high.push_back(times.high);
    curve.bytes.push_back(bytes);
  }

  static void fit(ScalingCurve& curve) {
    curve.flops_exponent = fitted_exponent(curve.lengths, curve.flops);
    curve.seconds_exponent = fitted_exponent(curve.lengths, curve.seconds);
    const std::vector<double> bytes(curve.bytes.begin(), curve.bytes.end());
    curve.bytes_exponent = fitted_exponent(curve.lengths, bytes);
  }

  /// The first layer of the model, for sequences of this length, because strides may depend on it. A layer
  /// that does not fit so few positions has those of the configuration.
  Stack layer_for(int64_t length) const {
    auto config = config_;
    config.n_layers = 1;
    config.n_decoder_layers.reset();
    config.attention = {config_.attention_of(0)};
    config.max_positions = length;
    const MixerPlace place{.model = config, .role = first_role(config), .layer = 0};
    bool fits = true;
    const auto& type = mixer_types().at(place.selection());
    if (type.validate) type.validate(place, [&](std::string_view) { fits = false; });
    if (!fits) config.max_positions = std::max(config_.max_positions, length);
    Stack stack(config, first_role(config));
    stack->to(device_);
    stack->eval();
    return stack;
  }
  /// The textbook's order of the first layer's mixer.
  std::string order() const { return fmt::format("O({})", order_of(0)); }

  /// (1, n, D)
  torch::Tensor hidden_states(int64_t length) const {
    return torch::randn({1, length, config_.d_model}, torch::device(device_));
  }

  template <class Module>
  Pass pass(const std::shared_ptr<Module>& module, int64_t length) const {
    return [module, x = hidden_states(length)] { module->forward(x); };
  }

  struct AttentionCall {
    std::shared_ptr<MixerImpl> mixer;
    torch::Tensor x;
    RotaryTable rotary;
    PositionRange range;
    AttentionContext context;

    torch::Tensor run() const { return mixer->forward(x, context); }
  };
  /// Self-attention with the mask and positions that a stack prepares for its layers.
  std::shared_ptr<AttentionCall> attention_call(const PositionRange& range, Stack layer) const {
    auto call = std::make_shared<AttentionCall>();
    call->mixer = layer->layers.front()->self_attention;
    call->range = range;
    call->x = hidden_states(range.count());
    call->context.range = &call->range;
    if (first_role(config_) == StackRole::decoder) call->context.mask = Mask::causal();
    if (layer->rotary) {
      call->rotary = layer->rotary->forward(call->range, device_);
      call->context.rotary = &call->rotary;
    }
    call->context.bias = layer->bias_of(0, call->range, device_);
    return call;
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
  if (!has_lengths(config)) return {};
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  ScalingMeter meter(config, purpose, device, options);
  std::vector<ScalingCurve> curves{meter.attention(), meter.training()};
  if (first_role(config) == StackRole::decoder) curves.push_back(meter.decoding());
  curves.push_back(meter.feed_forward());
  curves.push_back(meter.norm());
  if (model_families().at(config.architecture).example) curves.push_back(meter.model());
  return curves;
}

std::optional<Exponent> fitted_exponent(std::span<const int64_t> lengths, std::span<const double> values) {
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
  Exponent exponent{.value = products / squares};
  if (n_fitted == 2) return exponent;
  double residuals = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double residual = y[i] - mean_y - exponent.value * (x[i] - mean_x);
    residuals += residual * residual;
  }
  const auto freedom = static_cast<double>(n_fitted - 2);
  const double error = std::sqrt(residuals / freedom / squares);
  constexpr double two_sided = 0.975;
  const double reach = student_t_quantile(two_sided, freedom) * error;
  exponent.low = exponent.value - reach;
  exponent.high = exponent.value + reach;
  return exponent;
}

nlohmann::ordered_json to_json(const ScalingCurve& curve) {
  using Json = nlohmann::ordered_json;
  Json json = {{"part", name_of(curve.part)},        {"order", curve.order},
               {"lengths", curve.lengths},           {"flops", curve.flops},
               {"seconds", curve.seconds},           {"seconds_low", curve.seconds_low},
               {"seconds_high", curve.seconds_high}, {"bytes", curve.bytes}};
  const auto add = [&](const std::string& key, const std::optional<Exponent>& exponent) {
    const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
    json[key] = exponent ? Json(exponent->value) : Json();
    json[key + "_low"] = exponent ? number(exponent->low) : Json();
    json[key + "_high"] = exponent ? number(exponent->high) : Json();
  };
  add("flops_exponent", curve.flops_exponent);
  add("seconds_exponent", curve.seconds_exponent);
  add("bytes_exponent", curve.bytes_exponent);
  return json;
}

}  // namespace zoo
