#include "layers/attention/block_columns.h"

#include <algorithm>
#include <unordered_set>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "kernels/grain.h"

namespace zoo {
namespace {

int64_t whole_blocks(int64_t n_columns) {
  return (n_columns + kBlockColumns - 1) / kBlockColumns * kBlockColumns;
}

torch::ScalarType type_of(CacheFormat format) {
  switch (format) {
    case CacheFormat::bf16:
      return torch::kBFloat16;
    case CacheFormat::int8:
      return torch::kChar;
    case CacheFormat::fp32:
      break;
  }
  return torch::kFloat;
}

StoredHeads heads_of_run(CacheFormat format, const torch::Tensor& numbers, const torch::Tensor& scales) {
  StoredHeads result{.format = format,
                     .numbers = static_cast<std::byte*>(numbers.data_ptr()),
                     .head_stride = numbers.stride(0),
                     .column_stride = numbers.size(2)};
  if (scales.defined()) {
    result.scales = scales.data_ptr<float>();
    result.scale_head_stride = scales.stride(0);
  }
  return result;
}

/// Vectors (B, K, T, D) as heads_of_row() takes them.
torch::Tensor plain_vectors(const torch::Tensor& x) {
  const auto numbers = x.to(torch::kFloat);
  return numbers.stride(3) == 1 ? numbers : numbers.contiguous();
}

void fill_with_zeros(const StoredHeads& heads, int64_t n_heads, int64_t n_columns, int64_t width) {
  if (n_columns == 0) return;
  std::vector<float> zeros(static_cast<size_t>(n_columns * width));
  const StoredHeads source{
      .numbers = reinterpret_cast<std::byte*>(zeros.data()), .head_stride = 0, .column_stride = width};
  copy_columns(source, heads, n_heads, n_columns, width);
}

}  // namespace

ColumnRun::ColumnRun(const ColumnShape& shape, int64_t capacity) : capacity_(capacity) {
  const auto numbers = torch::dtype(type_of(shape.format));
  keys_ = torch::empty({shape.n_heads, capacity, shape.key_width}, numbers);
  values_ = torch::empty({shape.n_heads, capacity, shape.value_width}, numbers);
  if (shape.format == CacheFormat::int8) {
    key_scales_ = torch::empty({shape.n_heads, capacity}, torch::kFloat);
    value_scales_ = torch::empty({shape.n_heads, capacity}, torch::kFloat);
  }
  key_heads_ = heads_of_run(shape.format, keys_, key_scales_);
  value_heads_ = heads_of_run(shape.format, values_, value_scales_);
}

int64_t ColumnRun::bytes() const {
  size_t total = keys_.nbytes() + values_.nbytes();
  if (key_scales_.defined()) total += key_scales_.nbytes() + value_scales_.nbytes();
  return static_cast<int64_t>(total);
}

template <class Visit>
void RowColumns::each_part(int64_t begin, int64_t end, const Visit& visit) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const int64_t next = i + 1 < parts_.size() ? parts_[i + 1].first : end;
    const int64_t from = std::max(begin, parts_[i].first), to = std::min(end, next);
    if (from < to) visit(parts_[i], from, to);
  }
}

void RowColumns::truncate(int64_t size) {
  size_ = std::min(size_, size);
  while (!parts_.empty() && parts_.back().first >= size_) parts_.pop_back();
}

/// Makes the block in which the next column lies the row's own, if others share it, with room for `count`
/// columns.
void RowColumns::own_last_block(const ColumnShape& shape, int64_t count) {
  if (parts_.empty() || parts_.back().run.use_count() == 1) return;
  const int64_t first = size_ / kBlockColumns * kBlockColumns;
  const auto last = parts_.back();
  if (first >= room()) return;
  auto own = std::make_shared<ColumnRun>(shape, whole_blocks(size_ - first + count));
  const int64_t place = first - last.first;
  copy_columns(last.run->keys().from(place), own->keys(), shape.n_heads, size_ - first, shape.key_width);
  copy_columns(last.run->values().from(place), own->values(), shape.n_heads, size_ - first,
               shape.value_width);
  if (place == 0) parts_.pop_back();
  parts_.push_back({.run = std::move(own), .first = first});
}

void RowColumns::make_room(const ColumnShape& shape, int64_t first, int64_t count) {
  truncate(first);
  const int64_t end = first + count, missing = first - size_;
  own_last_block(shape, end - size_);
  if (end > room()) {
    // A row grows by a quarter, so a long one has few runs.
    const int64_t begin = room();
    const int64_t capacity = whole_blocks(std::max(end - begin, begin / 4));
    parts_.push_back({.run = std::make_shared<ColumnRun>(shape, capacity), .first = begin});
  }
  if (missing > 0) {
    each_part(size_, first, [&](const Part& part, int64_t from, int64_t to) {
      fill_with_zeros(part.run->keys().from(from - part.first), shape.n_heads, to - from, shape.key_width);
      fill_with_zeros(part.run->values().from(from - part.first), shape.n_heads, to - from,
                      shape.value_width);
    });
  }
  size_ = end;
}

void RowColumns::write(const ColumnShape& shape, int64_t head, int64_t n, const StoredHeads& keys,
                       const StoredHeads& values) {
  const int64_t first = size_ - n;
  each_part(first, size_, [&](const Part& part, int64_t from, int64_t to) {
    const int64_t place = from - part.first;
    copy_columns(keys.from(from - first), part.run->keys().of_head(head).from(place), 1, to - from,
                 shape.key_width);
    copy_columns(values.from(from - first), part.run->values().of_head(head).from(place), 1, to - from,
                 shape.value_width);
  });
}

void RowColumns::read(const ColumnShape& shape, int64_t head, int64_t n, const StoredHeads& keys,
                      const StoredHeads& values) const {
  const int64_t used = std::min(n, size_);
  each_part(0, used, [&](const Part& part, int64_t from, int64_t to) {
    const int64_t place = from - part.first;
    copy_columns(part.run->keys().of_head(head).from(place), keys.from(from), 1, to - from, shape.key_width);
    copy_columns(part.run->values().of_head(head).from(place), values.from(from), 1, to - from,
                 shape.value_width);
  });
  fill_with_zeros(keys.from(used), 1, n - used, shape.key_width);
  fill_with_zeros(values.from(used), 1, n - used, shape.value_width);
}

void RowColumns::append_blocks(std::vector<ColumnBlocks::Block>& to) const {
  each_part(0, size_, [&](const Part& part, int64_t from, int64_t end) {
    for (int64_t column = from; column < end; column += kBlockColumns) {
      to.push_back({.keys = part.run->keys().from(column - part.first),
                    .values = part.run->values().from(column - part.first)});
    }
  });
}

const ColumnRun* RowColumns::run_of_all(int64_t n) const {
  return parts_.size() == 1 && n <= size_ ? parts_.front().run.get() : nullptr;
}

void BlockColumns::write(const KeysAndValues& tokens, const PositionRange& range) {
  const int64_t n_rows = std::ssize(rows_);
  TORCH_CHECK(tokens.keys.size(0) == n_rows, "a state of ", n_rows, " rows reads ", tokens.keys.size(0),
              " rows of keys");
  const auto keys = plain_vectors(tokens.keys), values = plain_vectors(tokens.values);
  for (int64_t b = 0; b < n_rows; ++b) {
    auto& row = rows_[static_cast<size_t>(b)];
    if (range.count_of(b) == 0) {
      row.truncate(range.first_of(b));
    } else {
      row.make_room(shape_, range.first_of(b), range.count_of(b));
    }
  }
  each_head(range.count(), [&](int64_t b, int64_t head) {
    rows_[static_cast<size_t>(b)].write(shape_, head, range.count_of(b), heads_of_row(keys, b).of_head(head),
                                        heads_of_row(values, b).of_head(head));
  });
}

/// Calls visit(row, head) for every head of every row, by several threads if `n` columns of all are much
/// work.
template <class Visit>
void BlockColumns::each_head(int64_t n, const Visit& visit) const {
  const int64_t width = std::max<int64_t>(1, n * (shape_.key_width + shape_.value_width));
  at::parallel_for(0, std::ssize(rows_) * shape_.n_heads, grain_rows(width),
                   [&](int64_t first, int64_t last) {
                     for (int64_t i = first; i < last; ++i) visit(i / shape_.n_heads, i % shape_.n_heads);
                   });
}

bool BlockColumns::has_views(int64_t n) const {
  return rows_.size() == 1 && shape_.format == CacheFormat::fp32 && rows_.front().run_of_all(n);
}

KeysAndValues BlockColumns::columns(int64_t n) const {
  if (has_views(n)) {
    const auto& run = *rows_.front().run_of_all(n);
    return {.keys = run.key_numbers().unsqueeze(0).narrow(2, 0, n),
            .values = run.value_numbers().unsqueeze(0).narrow(2, 0, n)};
  }
  const int64_t n_rows = std::ssize(rows_);
  const auto keys = torch::empty({n_rows, shape_.n_heads, n, shape_.key_width}, torch::kFloat);
  const auto values = torch::empty({n_rows, shape_.n_heads, n, shape_.value_width}, torch::kFloat);
  each_head(n, [&](int64_t b, int64_t head) {
    rows_[static_cast<size_t>(b)].read(shape_, head, n, heads_of_row(keys, b).of_head(head),
                                       heads_of_row(values, b).of_head(head));
  });
  return {.keys = keys, .values = values};
}

std::optional<ColumnBlocks> BlockColumns::blocks(int64_t n) const {
  ColumnBlocks result{.format = shape_.format,
                      .n_heads = shape_.n_heads,
                      .key_width = shape_.key_width,
                      .value_width = shape_.value_width,
                      .n_columns = n,
                      .key_stride = shape_.key_width,
                      .value_stride = shape_.value_width};
  size_t n_blocks = 0;
  for (const auto& row : rows_) n_blocks += static_cast<size_t>(whole_blocks(row.size()) / kBlockColumns);
  result.blocks.reserve(n_blocks);
  for (const auto& row : rows_) {
    result.first_blocks.push_back(std::ssize(result.blocks));
    result.lengths.push_back(row.size());
    row.append_blocks(result.blocks);
  }
  return result;
}

int64_t BlockColumns::n_columns() const {
  int64_t longest = 0;
  for (const auto& row : rows_) longest = std::max(longest, row.size());
  return longest;
}

void BlockColumns::reorder(const torch::Tensor& rows) {
  const auto index = rows.accessor<int64_t, 1>();
  std::vector<RowColumns> reordered;
  for (int64_t i = 0; i < index.size(0); ++i) reordered.push_back(rows_.at(static_cast<size_t>(index[i])));
  rows_ = std::move(reordered);
}

void BlockColumns::join(const KeyValueStorage& other) {
  const auto& more = dynamic_cast<const BlockColumns&>(other);
  TORCH_CHECK(shape_.format == more.shape_.format, "rows of different formats cannot be joined");
  rows_.insert(rows_.end(), more.rows_.begin(), more.rows_.end());
}

void BlockColumns::truncate(std::span<const int64_t> to) {
  for (size_t b = 0; b < rows_.size(); ++b) rows_[b].truncate(to[b]);
}

int64_t BlockColumns::bytes() const {
  std::unordered_set<const ColumnRun*> seen;
  int64_t total = 0;
  for (const auto& row : rows_) {
    row.each_run([&](const ColumnRun& run) {
      if (seen.insert(&run).second) total += run.bytes();
    });
  }
  return total;
}

}  // namespace zoo
