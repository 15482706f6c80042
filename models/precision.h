#pragma once
// Mixed precision: weights, their updates and the residual stream stay in float; matrix products and
// attention run in a 16-bit format (Micikevicius et al. 2018).

#include <array>
#include <optional>
#include <string_view>

#include <c10/core/Device.h>
#include <torch/types.h>

namespace zoo {

/// The number format of the matrix products of training.
enum class Precision { automatic, fp32, bf16, fp16 };
constexpr auto config_names(Precision) {
  return std::to_array<std::string_view>({"auto", "fp32", "bf16", "fp16"});
}

/// The number format of the residual stream in training, to which every sub-layer adds.
///   fp32  as in Micikevicius et al. 2018: nothing is lost in the sums
///   bf16  half the memory and half the traffic of norms and sums, as in most recipes for large models
enum class ResidualStream { fp32, bf16 };
constexpr auto config_names(ResidualStream) { return std::to_array<std::string_view>({"fp32", "bf16"}); }

/// Replaces `automatic` by bf16 if it is faster on the device for a model of width `d_model`, else by fp32.
/// On a CPU bf16 is faster with units for it (AVX-512 BF16 or AMX) and a width of at least 384; with a
/// smaller width rounding the numbers costs more time than the faster products save (docs/performance.md). On
/// a GPU bf16 needs compute capability 8.
Precision resolve(Precision precision, c10::Device device, int64_t d_model);

/// The 16-bit format of a resolved precision; nothing for fp32.
std::optional<torch::ScalarType> rounded_type(Precision precision);

/// While it lives, this thread's matrix products on a device run in `precision`; for fp32 it changes nothing.
/// Weights are rounded again at each use, unless there are copies of them (layers/weights/weights.h).
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, c10::DeviceType device);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_, had_cache_;
  torch::ScalarType former_type_;
};

/// Whether the gradients of a step were too large for the number format.
enum class Overflow { no, yes };

/// Dynamic loss scaling for fp16, whose smallest positive number is 6e-8. The loss is multiplied by a scale.
/// The scale grows while nothing overflows. After an overflow the step is skipped and the scale is halved.
struct LossScale {
  static constexpr double initial = 65536, growth = 2, backoff = 0.5;
  static constexpr int64_t growth_interval = 2000;  // steps without overflow
  static constexpr double least = 1.0 / 65536;      // an overflow at this scale has another cause

  double value = 1;
  int64_t good_steps = 0;  // since the scale last changed
  int64_t skipped = 0;     // number of skipped steps of the whole run
  bool operator==(const LossScale&) const = default;

  /// The scale is 1 for all formats except fp16.
  static LossScale for_precision(Precision precision);
  /// To be called after each step.
  void update(Overflow overflow);
};

}  // namespace zoo
