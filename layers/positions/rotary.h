#pragma once
// Rotary position embedding (Su et al. 2021): queries and keys are turned, pair by pair, by angles
// proportional to their positions, so that a score depends on the distance alone.

#include <cstdint>
#include <optional>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "layers/kernels/cpu_rotary.h"
#include "layers/positions/positions.h"

namespace zoo {

/// How the angles change for contexts longer than the one trained on.
///   linear  positions divided by the factor (Chen et al. 2023)
///   ntk     base raised to base·factor^(R/(R-2)) ("NTK-aware", bloc97 2023)
///   yarn    per frequency between linear and none, and a temperature (Peng et al. 2023)
///   llama3  per wavelength between linear and none (Llama 3.1)
enum class RotaryScaling { none, linear, ntk, yarn, llama3 };

struct RotaryOptions {
  explicit RotaryOptions(int64_t head_dim) : head_dim_(head_dim) {}
  TORCH_ARG(int64_t, head_dim);
  /// Elements of each head that are turned (R, even); the rest carry no position.
  TORCH_ARG(std::optional<int64_t>, width) = std::nullopt;
  TORCH_ARG(double, theta) = 10000.0;
  TORCH_ARG(RotaryLayout, layout) = RotaryLayout::half;
  TORCH_ARG(RotaryScaling, scaling) = RotaryScaling::none;
  /// How many times longer than original_max_positions the context is to be.
  TORCH_ARG(double, factor) = 1.0;
  TORCH_ARG(int64_t, original_max_positions) = 2048;
  /// yarn: turns within the original context above which a frequency is kept, and below which it is divided.
  TORCH_ARG(double, beta_fast) = 32.0;
  TORCH_ARG(double, beta_slow) = 1.0;
  /// yarn: factor on cosine and sine; default 0.1·ln(factor) + 1.
  TORCH_ARG(std::optional<double>, attention_factor) = std::nullopt;
  /// llama3: wavelengths above original_max_positions/low are divided, those below
  /// original_max_positions/high kept.
  TORCH_ARG(double, low_frequency_factor) = 1.0;
  TORCH_ARG(double, high_frequency_factor) = 4.0;
};

/// The angles for the positions of one call.
struct RotaryTable : RotaryAngles {
  bool defined() const { return cos.defined(); }
  /// x: (B, H, T, Dh) → the same, its first R elements turned.
  torch::Tensor apply(const torch::Tensor& x) const;
};

class RotaryImpl : public torch::nn::Module {
 public:
  explicit RotaryImpl(const RotaryOptions& options);
  RotaryTable forward(const PositionRange& range, torch::Device device);

  RotaryOptions options;

 private:
  PositionTable cos_, sin_;  // (positions so far, R/2)
};
TORCH_MODULE(Rotary);

/// (R/2) float32: the angle in radians that each pair turns from one position to the next.
torch::Tensor rotary_rates(const RotaryOptions& options);

}  // namespace zoo
