#include "layers/attention/layer_state.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/column_storage.h"

namespace zoo {
namespace {

/// Writes `x` (B, K, T, D) into the columns of `range`.
void write(torch::Tensor& storage, const torch::Tensor& x, const PositionRange& range) {
  if (!range.differs_by_row()) {
    storage.narrow(2, range.first(), range.count()).copy_(x);
    return;
  }
  const auto rows = torch::arange(x.size(0), range.columns().options()).unsqueeze(1);  // (B, 1)
  storage.transpose(1, 2).index_put_({rows, range.columns()}, x.transpose(1, 2).to(storage.scalar_type()));
}

}  // namespace

KeysAndValues KeyValueState::extend(const torch::Tensor& keys, const torch::Tensor& values,
                                    const PositionRange& range) {
  const torch::NoGradGuard no_grad;
  n_rows_ = keys.size(0);
  constexpr int64_t fewest = 32;
  const int64_t needed = range.n_columns(), capacity = keys_.defined() ? keys_.size(2) : 0;
  if (needed > capacity) {
    const int64_t larger = std::max({needed, 2 * capacity, fewest});
    keys_ = with_capacity(capacity > 0 ? keys_ : keys, n_columns_, larger);
    values_ = with_capacity(capacity > 0 ? values_ : values, n_columns_, larger);
  }
  write(keys_, keys, range);
  write(values_, values, range);
  n_columns_ = range.n_keys();
  return {.keys = keys_.narrow(2, 0, n_columns_), .values = values_.narrow(2, 0, n_columns_)};
}

void KeyValueState::reorder(const torch::Tensor& rows) {
  n_rows_ = rows.size(0);
  if (!keys_.defined()) return;
  // With their whole capacity: beams are reordered at every step, and must not grow anew each time.
  keys_ = keys_.index_select(0, rows);
  values_ = values_.index_select(0, rows);
}

void KeyValueState::join(const LayerState& other) {
  const auto& more = dynamic_cast<const KeyValueState&>(other);
  // Rows that have read nothing have no columns.
  const auto columns = [](const torch::Tensor& storage, int64_t n_rows, int64_t n,
                          const torch::Tensor& like) {
    return storage.defined() ? storage.narrow(2, 0, n) : rows_without_columns(n_rows, like);
  };
  if (keys_.defined() || more.keys_.defined()) {
    const auto& like_keys = keys_.defined() ? keys_ : more.keys_;
    const auto& like_values = values_.defined() ? values_ : more.values_;
    keys_ = joined_rows(columns(keys_, n_rows_, n_columns_, like_keys),
                        columns(more.keys_, more.n_rows_, more.n_columns_, like_keys));
    values_ = joined_rows(columns(values_, n_rows_, n_columns_, like_values),
                          columns(more.values_, more.n_rows_, more.n_columns_, like_values));
  }
  n_rows_ += more.n_rows_;
  n_columns_ = std::max(n_columns_, more.n_columns_);
}

void KeyValueState::truncate(std::span<const int64_t>, std::span<const int64_t> to) {
  n_columns_ = to.empty() ? 0 : std::min(n_columns_, *std::ranges::max_element(to));
}

std::unique_ptr<LayerState> KeyValueState::copy() const {
  auto result = std::make_unique<KeyValueState>(*this);
  if (keys_.defined()) {
    result->keys_ = keys_.clone();
    result->values_ = values_.clone();
  }
  return result;
}

int64_t KeyValueState::bytes() const {
  return keys_.defined() ? static_cast<int64_t>(keys_.nbytes() + values_.nbytes()) : 0;
}

void MemoryState::reorder(const torch::Tensor& rows) {
  memory_ = {.keys = memory_.keys.index_select(0, rows), .values = memory_.values.index_select(0, rows)};
}

void MemoryState::join(const LayerState& other) {
  const auto& more = dynamic_cast<const MemoryState&>(other).memory_;
  memory_ = {.keys = joined_rows(memory_.keys, more.keys),
             .values = joined_rows(memory_.values, more.values)};
}

std::unique_ptr<LayerState> MemoryState::copy() const { return std::make_unique<MemoryState>(*this); }

int64_t MemoryState::bytes() const {
  return static_cast<int64_t>(memory_.keys.nbytes() + memory_.values.nbytes());
}

}  // namespace zoo
