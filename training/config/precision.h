#pragma once
// Mixed precision: weights, their updates and the residual stream stay in float, matrix products and
// attention run in a format of 16 bits (Micikevicius et al. 2018).

#include <c10/core/Device.h>
#include <torch/types.h>

#include "training/config/training_config.h"

namespace zoo {

/// What `automatic` stands for on a device, for a model that is `d_model` wide: bf16 where it is faster, else
/// fp32. On a CPU that takes units for it (AVX-512 BF16 or AMX) and a width of 384 or more, below which
/// rounding the numbers costs more than multiplying them gains (docs/performance.md); on a GPU compute
/// capability 8.
Precision resolve(Precision precision, c10::Device device, int64_t d_model);

/// While it lives, this thread's matrix products on a device run in `precision`; nothing else changes for
/// fp32. Weights are rounded anew at each use.
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

/// Whether the gradients of a step were too large for the format.
enum class Overflow { no, yes };

/// Dynamic loss scaling for fp16, whose smallest numbers are 6e-8: the loss is multiplied by a scale that
/// grows while nothing overflows, and is halved, the step being left out, when something does.
struct LossScale {
  static constexpr double initial = 65536, growth = 2, backoff = 0.5;
  static constexpr int64_t growth_interval = 2000;  // steps without overflow
  static constexpr double least = 1.0 / 65536;      // below, it is not the scale that is wrong

  double value = 1;
  int64_t good_steps = 0;  // since the scale last changed
  int64_t skipped = 0;     // steps left out in all
  bool operator==(const LossScale&) const = default;

  /// 1 for all formats but fp16.
  static LossScale for_precision(Precision precision);
  /// After a step whose gradients were finite, or not.
  void update(Overflow overflow);
};

}  // namespace zoo
