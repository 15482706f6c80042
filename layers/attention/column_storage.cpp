#include "layers/attention/column_storage.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <torch/types.h>

#include "base/transfer.h"

namespace zoo {
namespace {

/// Writes `x` (B, K, T, D) into the columns of `range`.
void write_columns(const torch::Tensor& storage, const torch::Tensor& x, const PositionRange& range) {
  if (!range.differs_by_row()) {
    storage.narrow(2, range.first(), range.count()).copy_(x);
    return;
  }
  if (range.count() == 1) {
    const auto columns = range.columns().view({-1, 1, 1, 1}).expand(x.sizes());
    storage.scatter_(2, columns, x.to(storage.scalar_type()));
    return;
  }
  const auto rows = torch::arange(x.size(0), range.columns().options()).unsqueeze(1);  // (B, 1)
  storage.transpose(1, 2).index_put_({rows, range.columns()}, x.transpose(1, 2).to(storage.scalar_type()));
}

}  // namespace

torch::Tensor with_capacity(const torch::Tensor& x, int64_t n, int64_t capacity) {
  auto result = torch::empty({x.size(0), x.size(1), capacity, x.size(3)}, x.options());
  if (n > 0) result.narrow(2, 0, n).copy_(x.narrow(2, 0, n));
  result.narrow(2, n, capacity - n).zero_();
  return result;
}

torch::Tensor joined_rows(const torch::Tensor& a, const torch::Tensor& b) {
  const int64_t n_a = a.size(2), n_b = b.size(2);
  auto result = torch::zeros({a.size(0) + b.size(0), a.size(1), std::max(n_a, n_b), a.size(3)}, a.options());
  result.narrow(0, 0, a.size(0)).narrow(2, 0, n_a).copy_(a);
  result.narrow(0, a.size(0), b.size(0)).narrow(2, 0, n_b).copy_(b);
  return result;
}

torch::Tensor rows_without_columns(int64_t n_rows, const torch::Tensor& like) {
  return torch::empty({n_rows, like.size(1), 0, like.size(3)}, like.options());
}

ColumnPlaces column_places(std::span<const int64_t> slots, std::span<const int64_t> lengths,
                           torch::Device device) {
  const auto n_rows = std::ssize(slots),
             n_columns = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const auto all = torch::empty({n_rows + 2 * n_columns}, torch::kInt64);
  auto* const numbers = all.mutable_data_ptr<int64_t>();
  std::ranges::copy(slots, numbers);
  auto *column_slots = numbers + n_rows, *columns = column_slots + n_columns;
  for (size_t i = 0; i < slots.size(); ++i) {
    column_slots = std::fill_n(column_slots, lengths[i], slots[i]);
    for (int64_t column = 0; column < lengths[i]; ++column) *columns++ = column;
  }
  const auto there = sent(all, device);
  return {.slots = there.narrow(0, 0, n_rows),
          .column_slots = there.narrow(0, n_rows, n_columns),
          .columns = there.narrow(0, n_rows + n_columns, n_columns)};
}

ColumnStorage::ColumnStorage(int64_t n_rows, const KeysAndValues& like)
    : keys_(rows_without_columns(n_rows, like.keys)),
      values_(rows_without_columns(n_rows, like.values)),
      n_rows_(n_rows) {}

KeysAndValues ColumnStorage::room_for(const PositionRange& range) {
  constexpr int64_t fewest = 32;
  const int64_t needed = range.n_columns(), capacity = keys_.size(2);
  if (needed > capacity) {
    const int64_t larger = std::max({needed, 2 * capacity, fewest});
    keys_ = with_capacity(keys_, n_columns_, larger);
    values_ = with_capacity(values_, n_columns_, larger);
  }
  n_columns_ = range.n_keys();
  return columns(n_columns_);
}

void ColumnStorage::write(const KeysAndValues& tokens, const PositionRange& range) {
  room_for(range);
  write_columns(keys_.narrow(0, 0, n_rows_), tokens.keys, range);
  write_columns(values_.narrow(0, 0, n_rows_), tokens.values, range);
}

KeysAndValues ColumnStorage::columns(int64_t n) const {
  const auto first = [&](const torch::Tensor& all) { return all.narrow(0, 0, n_rows_).narrow(2, 0, n); };
  return {.keys = first(keys_), .values = first(values_)};
}

void ColumnStorage::reorder(const torch::Tensor& rows) {
  // With their whole capacity: beams are reordered at every step, and must not grow anew each time.
  keys_ = keys_.index_select(0, rows);
  values_ = values_.index_select(0, rows);
  n_rows_ = rows.size(0);
}

void ColumnStorage::join(const KeyValueStorage& other) {
  const auto& more = dynamic_cast<const ColumnStorage&>(other);
  const auto mine = columns(n_columns_), others = more.columns(more.n_columns_);
  keys_ = joined_rows(mine.keys, others.keys);
  values_ = joined_rows(mine.values, others.values);
  n_rows_ += more.n_rows_;
  n_columns_ = std::max(n_columns_, more.n_columns_);
}

void ColumnStorage::truncate(std::span<const int64_t> to) {
  n_columns_ = to.empty() ? 0 : std::min(n_columns_, *std::ranges::max_element(to));
}

std::unique_ptr<KeyValueStorage> ColumnStorage::copy() const {
  auto result = std::make_unique<ColumnStorage>(*this);
  result->keys_ = keys_.clone();
  result->values_ = values_.clone();
  return result;
}

int64_t ColumnStorage::bytes() const { return static_cast<int64_t>(keys_.nbytes() + values_.nbytes()); }

bool ColumnStorage::reserve(int64_t n_rows, int64_t n_columns) {
  const int64_t rows = std::max(n_rows, keys_.size(0)), columns = std::max(n_columns, keys_.size(2));
  if (rows == keys_.size(0) && columns == keys_.size(2)) return false;
  const auto larger = [&](const torch::Tensor& x) {
    auto result = torch::zeros({rows, x.size(1), columns, x.size(3)}, x.options());
    result.narrow(0, 0, x.size(0)).narrow(2, 0, x.size(2)).copy_(x);
    return result;
  };
  keys_ = larger(keys_);
  values_ = larger(values_);
  return true;
}

void ColumnStorage::place(int64_t slot, const ColumnStorage& from, int64_t row, int64_t n) {
  const auto copy = [&](const torch::Tensor& to, const torch::Tensor& source) {
    to[slot].narrow(1, 0, n).copy_(source[row].narrow(1, 0, n));
    to[slot].narrow(1, n, to.size(2) - n).zero_();
  };
  copy(keys_, from.keys_);
  copy(values_, from.values_);
}

void ColumnStorage::place(std::span<const PlacedRow> rows, const ColumnPlaces& places) {
  const auto copy = [&](torch::Tensor ColumnStorage::* which) {
    std::vector<torch::Tensor> columns;  // (n, K, D)
    for (const auto& [from, row, n] : rows)
      columns.push_back((from->*which)[row].narrow(1, 0, n).transpose(0, 1));
    auto& to = this->*which;
    to.index_fill_(0, places.slots, 0);
    to.transpose(1, 2).index_put_({places.column_slots, places.columns}, torch::cat(columns));
  };
  copy(&ColumnStorage::keys_);
  copy(&ColumnStorage::values_);
}

std::unique_ptr<ColumnStorage> ColumnStorage::row(int64_t row, int64_t n) const {
  auto result = std::make_unique<ColumnStorage>(1, KeysAndValues{.keys = keys_, .values = values_});
  result->keys_ = keys_.narrow(0, row, 1).narrow(2, 0, n);
  result->values_ = values_.narrow(0, row, 1).narrow(2, 0, n);
  result->n_columns_ = n;
  return result;
}

std::unique_ptr<KeyValueStorage> ColumnStorage::empty(int64_t n_rows) const {
  return std::make_unique<ColumnStorage>(n_rows, KeysAndValues{.keys = keys_, .values = values_});
}

}  // namespace zoo
