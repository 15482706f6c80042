#include "layers/attention/positions.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {

PositionRange::PositionRange(std::span<const int64_t> before, std::span<const int64_t> counts, int64_t count,
                             torch::Device device)
    : count_(count) {
  TORCH_CHECK(!before.empty() && before.size() == counts.size(), "every row needs a position and a count");
  const bool same_place = std::ranges::all_of(before, [&](int64_t n) { return n == before.front(); });
  const bool all_tokens = std::ranges::all_of(counts, [&](int64_t n) { return n == count; });
  first_ = *std::ranges::max_element(before);
  n_keys_ = 1;  // also if no row has a token
  for (size_t b = 0; b < before.size(); ++b) n_keys_ = std::max(n_keys_, before[b] + counts[b]);
  if (same_place && all_tokens) return;
  for (size_t b = 0; b < before.size(); ++b) rows_.push_back({.first = before[b], .count = counts[b]});
  const auto on_device = [&](std::span<const int64_t> values) {
    return torch::tensor(at::ArrayRef<int64_t>(values.data(), values.size()), torch::kInt64).to(device);
  };
  offsets_ = on_device(before);
  if (!all_tokens) counts_ = on_device(counts);
  columns_ = offsets_.unsqueeze(1) + torch::arange(count, offsets_.options());
}

PositionRange PositionRange::at(const torch::Tensor& offsets, int64_t n_keys) {
  PositionRange range(n_keys - 1, 1);
  range.offsets_ = offsets;
  range.columns_ = offsets.unsqueeze(1);
  return range;
}

PositionRange PositionRange::part(int64_t first, int64_t count) const {
  PositionRange part = *this;
  part.first_ += first;
  part.count_ = count;
  if (!differs_by_row()) {
    part.n_keys_ = part.first_ + count;
    return part;
  }
  for (auto& row : part.rows_)
    row = {.first = row.first + first, .count = std::clamp<int64_t>(row.count - first, 0, count)};
  // The longest row may end in another part, so n_keys() stays.
  part.offsets_ = offsets_ + first;
  part.columns_ = columns_.narrow(1, first, count);
  if (counts_.defined()) part.counts_ = (counts_ - first).clamp(0, count);
  return part;
}

torch::Tensor PositionRange::ids(torch::Device device) const {
  if (!differs_by_row())
    return torch::arange(first_, first_ + count_, torch::dtype(torch::kInt64).device(device));
  return columns_.clamp_max(n_keys_ - 1);
}

torch::Tensor PositionTable::rows(const PositionRange& range, torch::Device device) {
  const auto all = first_rows(range.n_keys(), device);
  return range.differs_by_row() ? all.index({range.ids(device)})
                                : all.narrow(0, range.first(), range.count());
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

torch::Tensor sinusoidal_positions(const torch::Tensor& positions, int64_t d_model, double base,
                                   SinusoidLayout layout) {
  const auto options = torch::dtype(torch::kFloat64).device(positions.device());
  const int64_t pairs = (d_model + 1) / 2;
  const bool is_closed = layout == SinusoidLayout::half_closed;  // the last rate is 1/base
  TORCH_CHECK(!is_closed || (d_model % 2 == 0 && d_model >= 4), "half_closed needs an even width from 4 on");
  const auto step = -2.0 * std::log(base) / static_cast<double>(is_closed ? d_model - 2 : d_model);
  const auto rates = torch::exp(torch::arange(pairs, options) * step);
  const auto angles = positions.to(torch::kFloat64).unsqueeze(-1) * rates;  // (…, pairs)
  if (layout != SinusoidLayout::interleaved)
    return torch::cat({angles.sin(), angles.cos()}, -1).narrow(-1, 0, d_model).to(torch::kFloat32);
  const auto encoding = torch::stack({angles.sin(), angles.cos()}, -1).flatten(-2);
  return encoding.narrow(-1, 0, d_model).to(torch::kFloat32);
}

torch::Tensor grid_positions(int64_t height, int64_t width, int64_t d_model, double base) {
  return grid_positions(torch::arange(height), torch::arange(width), d_model, base);
}

torch::Tensor grid_positions(const torch::Tensor& rows, const torch::Tensor& columns, int64_t d_model,
                             double base) {
  TORCH_CHECK(d_model % 2 == 0, "positions on a grid have two halves: d_model ", d_model, " must be even");
  const int64_t half = d_model / 2;
  const auto of_rows = sinusoidal_positions(rows, half, base).unsqueeze(-2);        // (…, H, 1, D/2)
  const auto of_columns = sinusoidal_positions(columns, half, base).unsqueeze(-3);  // (…, 1, W, D/2)
  auto sizes = of_rows.sizes().vec();
  sizes[sizes.size() - 2] = columns.size(-1);
  return torch::cat({of_rows.expand(sizes), of_columns.expand(sizes)}, -1).flatten(-3, -2);
}

}  // namespace zoo
