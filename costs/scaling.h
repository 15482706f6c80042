#pragma once
// The cost of a sequence as its length grows: the table of "Attention Is All You Need", section 4
// (self-attention O(n²d), feed-forward O(nd²)), counted and measured.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>
#include <nlohmann/json_fwd.hpp>

#include "costs/measure.h"
#include "models/model.h"

namespace zoo {

/// What is measured:
///   attention, feed-forward, norm  a forward pass of the self-attention (or the mixer in its place), of the
///                                  feed-forward and of one norm of the first layer
///   training                       a forward and backward pass of the self-attention
///   decoding                       the next token of the self-attention, after n tokens
///   model                          a forward pass of the whole model
enum class ScalingPart { attention, training, decoding, feed_forward, norm, model };
constexpr auto config_names(ScalingPart) {
  return std::to_array<std::string_view>(
      {"attention", "training", "decoding", "feed-forward", "norm", "model"});
}

/// e in cost ~ n^e, see fitted_exponent().
struct Exponent {
  double value = 0;
  std::optional<double> low = {}, high = {};  // 95 % interval; absent for two lengths
};

/// Passes of one part over one sequence, without dropout.
struct ScalingCurve {
  ScalingPart part;
  /// The textbook order, such as "O(n²d)"; n: length, d: width, w: window. Empty if there is none.
  std::string order = {};
  // For each length:
  std::vector<int64_t> lengths = {};  // tokens; for an encoder-decoder model: on each side
  /// As layers/weights/cost.h counts; for a norm, which has no matrix products, its additions and
  /// multiplications. Empty for decoding.
  std::vector<double> flops = {};
  std::vector<double> seconds = {};                         // medians
  std::vector<double> seconds_low = {}, seconds_high = {};  // quartiles, see Times
  /// Peak memory of tensors, without the weights. Decoding: of the state after n tokens.
  std::vector<int64_t> bytes = {};
  std::optional<Exponent> flops_exponent = {}, seconds_exponent = {}, bytes_exponent = {};
};

/// Lengths double from `shortest` on, as far as FLOPs and bytes of the next one allow. They do not depend on
/// measured times, so they are the same every time.
struct ScalingOptions {
  int64_t shortest = 64;
  int64_t longest = int64_t{1} << 16;
  int64_t fewest = 4;       // number of lengths, even if they take more than max_flops
  double max_flops = 2e10;  // of the longest forward pass; for the parts of a layer: of that layer
  int64_t max_bytes = int64_t{1} << 30;  // of the tensors at a length, estimated from the previous length
  double seconds = 0.05;  // time to measure each length; at least three repeats, even if they take longer
  ShouldStop should_stop = nullptr;
  std::function<void(const std::string& line)> on_message = nullptr;  // before each part
};
/// Options for which a measurement takes a few seconds on this kind of device.
ScalingOptions scaling_options(c10::Device device);

/// Measures all parts of a model with initial weights. A table of learned positions is made long enough. For
/// an encoder-decoder, the parts of a layer are the encoder's. Returns nothing for a model whose cost does
/// not grow with a length: a residual network, or an MLP over a fixed number of tokens. Seeds the default
/// generator. Throws ConfigError as initialized_model() does, MeasurementStopped.
std::vector<ScalingCurve> measure_scaling(const ModelConfig& config, const ModelPurpose& purpose,
                                          c10::Device device, const ScalingOptions& options = {});

/// The slope of log(values) over log(lengths), by least squares over the longest half of the lengths, but at
/// least two, with its interval by Student's t. Absent if there are fewer than two, or if a value is not
/// above 0.
std::optional<Exponent> fitted_exponent(std::span<const int64_t> lengths, std::span<const double> values);

/// As in results.json, see docs/comparison.md.
nlohmann::ordered_json to_json(const ScalingCurve& curve);

}  // namespace zoo
