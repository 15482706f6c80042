#include "layers/attention/window_state.h"

#include <algorithm>

#include "layers/attention/column_storage.h"

namespace zoo {
namespace {

/// (B or 1, 1) int64: the tokens of each row before a range, or with it.
torch::Tensor lengths_before(const PositionRange& range, torch::Device device) {
  if (range.differs_by_row()) return range.offsets().unsqueeze(1);
  return torch::full({1, 1}, range.first(), torch::dtype(torch::kInt64).device(device));
}
torch::Tensor lengths_after(const PositionRange& range, torch::Device device) {
  const auto before = lengths_before(range, device);
  return range.counts().defined() ? before + range.counts().unsqueeze(1) : before + range.count();
}

}  // namespace

/// (B or 1, capacity): the position in each column when rows have read `lengths` (B or 1, 1) tokens. Column
/// `first + r` has the latest position first + r + n·ring that was read, where `ring` is the size of the
/// ring.
torch::Tensor WindowState::positions(const torch::Tensor& lengths) const {
  const int64_t first = reach_.first, ring = std::max<int64_t>(capacity() - first, 1);
  const auto columns = torch::arange(capacity(), lengths.options()).unsqueeze(0);
  const auto turns = (lengths - 1 - columns).div(ring, "floor").clamp_min(0);
  const auto latest = torch::where(columns.lt(first), columns, columns + turns * ring);
  return latest.masked_fill(latest.ge(lengths), -1);
}

KeysAndValues WindowState::of_equal_rows(int64_t length) const {
  const int64_t used = std::min(capacity(), length);
  return {.keys = keys_.narrow(2, 0, used), .values = values_.narrow(2, 0, used)};
}

WindowState::Contents WindowState::contents(const torch::Tensor& lengths, int64_t longest) const {
  const auto stored = of_equal_rows(longest);
  return {.keys = stored.keys,
          .values = stored.values,
          .positions = positions(lengths).narrow(1, 0, stored.keys.size(2))};
}

WindowState::Contents WindowState::before(const PositionRange& range) const {
  return contents(lengths_before(range, keys_.device()), range.n_keys());
}

WindowState::Contents WindowState::after(const PositionRange& range) const {
  return contents(lengths_after(range, keys_.device()), range.n_keys());
}

void WindowState::grow(int64_t n_positions, const torch::Tensor& like_keys,
                       const torch::Tensor& like_values) {
  constexpr int64_t fewest = 32;
  const int64_t most = reach_.first + reach_.recent;
  if (!keys_.defined()) {
    keys_ = rows_without_columns(like_keys.size(0), like_keys);
    values_ = rows_without_columns(like_values.size(0), like_values);
  }
  if (n_positions <= capacity() || capacity() == most) return;
  // Nothing has been overwritten yet, so positions stay in their columns.
  const int64_t larger = std::min(most, std::max({n_positions, 2 * capacity(), fewest}));
  keys_ = with_capacity(keys_, capacity(), larger);
  values_ = with_capacity(values_, values_.size(2), larger);
}

void WindowState::write(const torch::Tensor& keys, const torch::Tensor& values, const PositionRange& range) {
  const torch::NoGradGuard no_grad;
  n_rows_ = keys.size(0);
  grow(range.n_keys(), keys, values);
  const int64_t ring = capacity() - reach_.first;
  if (!range.differs_by_row() && range.count() == 1) {
    const int64_t p = range.first();
    const int64_t column = p < reach_.first ? p : reach_.first + (p - reach_.first) % ring;
    keys_.narrow(2, column, 1).copy_(keys);
    values_.narrow(2, column, 1).copy_(values);
    return;
  }
  const auto begin = lengths_before(range, keys.device());
  const auto after = positions(lengths_after(range, keys.device()));  // (B or 1, capacity)
  const auto is_new = after.ge(begin).view({-1, 1, capacity(), 1});
  const auto source = (after - begin).clamp(0, keys.size(2) - 1).view({-1, 1, capacity(), 1});
  const auto update = [&](torch::Tensor& storage, const torch::Tensor& x) {
    const auto from = source.expand({x.size(0), x.size(1), capacity(), x.size(3)});
    storage = torch::where(is_new, x.gather(2, from).to(storage.scalar_type()), storage);
  };
  update(keys_, keys);
  update(values_, values);
}

void WindowState::reorder(const torch::Tensor& rows) {
  n_rows_ = rows.size(0);
  if (!keys_.defined()) return;
  keys_ = keys_.index_select(0, rows);
  values_ = values_.index_select(0, rows);
}

void WindowState::join(const LayerState& other) {
  const auto& more = dynamic_cast<const WindowState&>(other);
  // Rows that have read nothing have no columns. The smaller storage has not overwritten anything.
  const auto joined = [&](const torch::Tensor& a, const torch::Tensor& b) {
    if (!a.defined() && !b.defined()) return a;
    return joined_rows(a.defined() ? a : rows_without_columns(n_rows_, b),
                       b.defined() ? b : rows_without_columns(more.n_rows_, a));
  };
  keys_ = joined(keys_, more.keys_);
  values_ = joined(values_, more.values_);
  n_rows_ += more.n_rows_;
}

void WindowState::truncate(std::span<const int64_t> from, std::span<const int64_t> to) {
  for (size_t b = 0; b < from.size(); ++b) {
    TORCH_CHECK(to[b] == from[b] || to[b] == 0 || from[b] <= capacity(),
                "a window of keys cannot be truncated: it no longer has the keys before it");
  }
}

std::unique_ptr<LayerState> WindowState::copy() const {
  auto result = std::make_unique<WindowState>(*this);
  if (keys_.defined()) {
    result->keys_ = keys_.clone();
    result->values_ = values_.clone();
  }
  return result;
}

int64_t WindowState::bytes() const {
  return keys_.defined() ? static_cast<int64_t>(keys_.nbytes() + values_.nbytes()) : 0;
}

}  // namespace zoo
