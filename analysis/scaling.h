#pragma once
// What a sequence costs as it gets longer: the table of "Attention Is All You Need", section 4 -
// self-attention O(n²d), feed-forward O(nd²) - by count and by measurement.

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

/// One layer's self-attention, its feed-forward, one of its norms; and the whole model.
enum class ScalingPart { attention, feed_forward, norm, model };
constexpr auto config_names(ScalingPart) {
  return std::to_array<std::string_view>({"attention", "feed-forward", "norm", "model"});
}

/// Forward passes of one part over one sequence, without dropout and gradients.
struct ScalingCurve {
  ScalingPart part;
  std::string order = {};  // the textbook's, such as "O(n²d)"; n: length, d: width
  // For each length:
  std::vector<int64_t> lengths = {};  // tokens; of an encoder-decoder's model: on either side
  std::vector<double> flops =
      {};  // as models/cost.h counts; a norm, which has no matrix products: its arithmetic
  std::vector<double> seconds = {};
  std::vector<int64_t> bytes = {};  // most that tensors take at once, the weights left out
  // e in cost ~ n^e over the longest half of the lengths, see fitted_exponent():
  std::optional<double> flops_exponent = {}, seconds_exponent = {};
};

/// Lengths double from `shortest` on, as far as FLOPs and bytes of the next one allow. No clock has a say in
/// that, so the same lengths come out every time.
struct ScalingOptions {
  int64_t shortest = 64;
  int64_t fewest = 4;       // lengths, whatever FLOPs they take
  double max_flops = 2e10;  // of the longest forward pass; for the parts of a layer: of that layer
  int64_t max_bytes = int64_t{1} << 30;  // that tensors of a length might take, judged by the length before
  double seconds = 0.05;  // of measuring at each length; at least three repeats whatever they take
};
/// What takes a few seconds on such a device.
ScalingOptions scaling_options(c10::Device device);

/// Measures all parts of a model, each with fresh weights; where positions are learned the table is made long
/// enough. Encoder-decoders: attention is the encoder's. Seeds the default generator. Throws ConfigError as
/// make_model does.
std::vector<ScalingCurve> measure_scaling(const ModelConfig& config, const ModelPurpose& purpose,
                                          c10::Device device, const ScalingOptions& options = {});

/// The slope of log(values) over log(lengths), by least squares over the longest half of the lengths, at
/// least two. Absent where there are fewer, or where a value is not above 0.
std::optional<double> fitted_exponent(std::span<const int64_t> lengths, std::span<const double> values);

/// As in results.json, see docs/comparison.md.
nlohmann::ordered_json to_json(const ScalingCurve& curve);

}  // namespace zoo
