#include "layers/positions.h"

#include <cmath>

#include <torch/types.h>

namespace zoo {

torch::Tensor PositionRange::ids(torch::Device device) const {
  const auto block = torch::arange(first, first + count, torch::dtype(torch::kInt64).device(device));
  if (!starts.defined()) return block;
  return (block.unsqueeze(0) - starts.to(device).unsqueeze(1)).clamp_min(0);
}

torch::Tensor sinusoidal_positions(const torch::Tensor& positions, int64_t d_model, double base) {
  const auto options = torch::dtype(torch::kFloat64).device(positions.device());
  const int64_t pairs = (d_model + 1) / 2;
  const auto rates =
      torch::exp(torch::arange(pairs, options) * (-2.0 * std::log(base) / static_cast<double>(d_model)));
  const auto angles = positions.to(torch::kFloat64).unsqueeze(-1) * rates;  // (…, pairs)
  auto shape = positions.sizes().vec();
  shape.push_back(2 * pairs);
  const auto encoding = torch::stack({angles.sin(), angles.cos()}, -1).reshape(shape);
  return encoding.narrow(-1, 0, d_model).to(torch::kFloat32);
}

}  // namespace zoo
