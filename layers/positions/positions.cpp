#include "layers/positions/positions.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {

torch::Tensor PositionRange::ids(torch::Device device) const {
  auto block = torch::arange(first, first + count, torch::dtype(torch::kInt64).device(device));
  if (!starts.defined()) return block;
  return (block.unsqueeze(0) - starts.to(device).unsqueeze(1)).clamp_min(0);
}

torch::Tensor PositionTable::rows(const PositionRange& range, torch::Device device) {
  const auto all = first_rows(range.end(), device);
  return range.starts.defined() ? all.index({range.ids(device)}) : all.narrow(0, range.first, range.count);
}

torch::Tensor PositionTable::first_rows(int64_t n_positions, torch::Device device) {
  const std::lock_guard lock(mutex_);
  if (!rows_.defined() || rows_.size(0) < n_positions || rows_.device() != device) {
    const torch::NoGradGuard no_grad;
    const int64_t size = std::max<int64_t>(n_positions, rows_.defined() ? 2 * rows_.size(0) : 64);
    if (rows_.defined()) outgrown_.push_back(rows_);
    rows_ = make_(torch::arange(size, torch::dtype(torch::kInt64).device(device)));
  }
  return rows_;
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
