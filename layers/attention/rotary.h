#pragma once
// Rotary position embedding (Su et al. 2021). Pairs of elements of queries and keys are rotated by angles
// proportional to their positions, so that a score depends only on the distance.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <torch/nn/pimpl.h>

#include "kernels/cpu_rotary.h"
#include "layers/attention/positions.h"
#include "layers/weights/module.h"

namespace zoo {

/// How the angles change for contexts longer than the one trained on.
///   linear  positions divided by the factor (Chen et al. 2023)
///   ntk     base replaced by base·factor^(R/(R-2)) ("NTK-aware", bloc97 2023)
///   yarn    between linear and none, depending on the frequency; and a temperature (Peng et al. 2023)
///   llama3  between linear and none, depending on the wavelength (Llama 3.1)
///   longrope  each angle divided by a number of its own (Ding et al. 2024)
enum class RotaryScaling { none, linear, ntk, yarn, llama3, longrope };
constexpr auto config_names(RotaryScaling) {
  return std::to_array<std::string_view>({"none", "linear", "ntk", "yarn", "llama3", "longrope"});
}

struct RotaryOptions {
  explicit RotaryOptions(int64_t head_dim) : head_dim_(head_dim) {}
  TORCH_ARG(int64_t, head_dim);
  /// R, even: elements of each head that are rotated; default all. The others carry no position.
  TORCH_ARG(std::optional<int64_t>, width) = std::nullopt;
  TORCH_ARG(double, theta) = 10000.0;
  TORCH_ARG(RotaryLayout, layout) = RotaryLayout::half;
  TORCH_ARG(RotaryScaling, scaling) = RotaryScaling::none;
  /// Length of the context as a multiple of original_max_positions.
  TORCH_ARG(double, factor) = 1.0;
  TORCH_ARG(int64_t, original_max_positions) = 2048;
  /// yarn: a frequency with more than beta_fast turns within the original context is kept; one with fewer
  /// than beta_slow turns is divided by the factor.
  TORCH_ARG(double, beta_fast) = 32.0;
  TORCH_ARG(double, beta_slow) = 1.0;
  /// yarn: the first and the last of the pairs in between are whole numbers, as the authors have it;
  /// otherwise as they come (gpt-oss).
  TORCH_ARG(bool, rounded) = true;
  /// yarn, longrope: factor on cosine and sine; default 0.1·ln(factor) + 1 and 1.
  TORCH_ARG(std::optional<double>, attention_factor) = std::nullopt;
  /// llama3: frequencies with wavelengths above original_max_positions/low_frequency_factor are divided by
  /// the factor. Frequencies with wavelengths below original_max_positions/high_frequency_factor are kept.
  TORCH_ARG(double, low_frequency_factor) = 1.0;
  TORCH_ARG(double, high_frequency_factor) = 4.0;
  /// longrope: R/2 positive numbers.
  TORCH_ARG(std::vector<double>, divisors) = {};
};

/// The angles for the positions of one call.
struct RotaryTable : RotaryAngles {
  /// For a GPU: y = x ⊙ own + x' ⊙ other, where x' has the two elements of each pair exchanged. Shared by the
  /// layers of a call, because otherwise each of them would make it from cosine and sine.
  struct Factors {
    torch::Tensor own, other;  // (…, T, R), in the type of x
  };

  bool defined() const { return cos.defined(); }
  /// x: (B, H, T, Dh) → the same shape, with the first R elements of each vector rotated.
  torch::Tensor apply(const torch::Tensor& x) const;

  std::shared_ptr<Factors> factors = std::make_shared<Factors>();

 private:
  const Factors& factors_for(torch::ScalarType type) const;
};

class RotaryImpl : public Cloneable<RotaryImpl> {
 public:
  explicit RotaryImpl(const RotaryOptions& options);
  RotaryTable forward(const PositionRange& range, torch::Device device);
  void pretty_print(std::ostream& stream) const override;

  RotaryOptions options;

 private:
  PositionTable cos_, sin_;  // (positions so far, R/2)
};
TORCH_MODULE(Rotary);

/// (R/2) float32: the angle in radians by which each pair is rotated from one position to the next.
torch::Tensor rotary_rates(const RotaryOptions& options);

}  // namespace zoo
