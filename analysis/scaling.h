#pragma once
// The cost of a sequence as its length grows: the table of "Attention Is All You Need", section 4
// (self-attention O(n²d), feed-forward O(nd²)), counted and measured.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>
#include <nlohmann/json_fwd.hpp>

#include "models/model.h"

namespace zoo {

/// The self-attention, the feed-forward and one norm of a layer; and the whole model.
enum class ScalingPart { attention, feed_forward, norm, model };
constexpr auto config_names(ScalingPart) {
  return std::to_array<std::string_view>({"attention", "feed-forward", "norm", "model"});
}

/// Forward passes of one part over one sequence, without dropout and gradients.
struct ScalingCurve {
  ScalingPart part;
  std::string order = {};  // the textbook order, such as "O(n²d)"; n: length, d: width
  // For each length:
  std::vector<int64_t> lengths = {};  // tokens; for an encoder-decoder model: on each side
  /// As models/cost.h counts; for a norm, which has no matrix products, its additions and multiplications.
  std::vector<double> flops = {};
  std::vector<double> seconds = {};                         // medians
  std::vector<double> seconds_low = {}, seconds_high = {};  // quartiles, see Times
  std::vector<int64_t> bytes = {};                          // peak memory of tensors, without the weights
  // e in cost ~ n^e over the longest half of the lengths, see fitted_exponent():
  std::optional<double> flops_exponent = {}, seconds_exponent = {};
};

/// Lengths double from `shortest` on, as far as FLOPs and bytes of the next one allow. They do not depend on
/// measured times, so they are the same every time.
struct ScalingOptions {
  int64_t shortest = 64;
  int64_t fewest = 4;       // number of lengths, even if they take more than max_flops
  double max_flops = 2e10;  // of the longest forward pass; for the parts of a layer: of that layer
  int64_t max_bytes = int64_t{1} << 30;  // of the tensors at a length, estimated from the previous length
  double seconds = 0.05;  // time to measure each length; at least three repeats, even if they take longer
};
/// Options for which a measurement takes a few seconds on this kind of device.
ScalingOptions scaling_options(c10::Device device);

/// Measures all parts of a model with initial weights. A table of learned positions is made long enough. For
/// an encoder-decoder, the parts of a layer are the encoder's. Seeds the default generator. Throws
/// ConfigError as make_model() does.
std::vector<ScalingCurve> measure_scaling(const ModelConfig& config, const ModelPurpose& purpose,
                                          c10::Device device, const ScalingOptions& options = {});

/// The slope of log(values) over log(lengths), by least squares over the longest half of the lengths, but at
/// least two. Absent if there are fewer than two, or if a value is not above 0.
std::optional<double> fitted_exponent(std::span<const int64_t> lengths, std::span<const double> values);

/// As in results.json, see docs/comparison.md.
nlohmann::ordered_json to_json(const ScalingCurve& curve);

}  // namespace zoo
