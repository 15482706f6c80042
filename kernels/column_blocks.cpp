#include "kernels/column_blocks.h"

#include <algorithm>
#include <cstring>

#include <torch/types.h>

#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

template <class Number>
Number* numbers_at(const StoredHeads& x, int64_t head, int64_t column) {
  return reinterpret_cast<Number*>(x.numbers) + head * x.head_stride + column * x.column_stride;
}

float* scale_at(const StoredHeads& x, int64_t head, int64_t column) {
  return x.scales + head * x.scale_head_stride + column;
}

void store_vector(const StoredHeads& from, const StoredHeads& to, int64_t head, int64_t column,
                  int64_t width) {
  const auto* const numbers = numbers_at<const float>(from, head, column);
  if (to.format == CacheFormat::bf16) {
    kernels().store_bf16(numbers, numbers_at<uint16_t>(to, head, column), width);
  } else {
    *scale_at(to, head, column) = kernels().store_int8(numbers, numbers_at<int8_t>(to, head, column), width);
  }
}

void load_vector(const StoredHeads& from, const StoredHeads& to, int64_t head, int64_t column,
                 int64_t width) {
  auto* const numbers = numbers_at<float>(to, head, column);
  if (from.format == CacheFormat::bf16) {
    kernels().load_bf16(numbers_at<const uint16_t>(from, head, column), numbers, width);
  } else {
    kernels().load_int8(numbers_at<const int8_t>(from, head, column), *scale_at(from, head, column), numbers,
                        width);
  }
}

void copy_head(const StoredHeads& from, const StoredHeads& to, int64_t head, int64_t n_columns,
               int64_t width) {
  const int64_t size = bytes_of_number(from.format);
  const auto place = [&](const StoredHeads& x, int64_t column) {
    return x.numbers + (head * x.head_stride + column * x.column_stride) * size;
  };
  if (from.column_stride == width && to.column_stride == width) {
    std::memcpy(place(to, 0), place(from, 0), static_cast<size_t>(n_columns * width * size));
  } else {
    for (int64_t column = 0; column < n_columns; ++column)
      std::memcpy(place(to, column), place(from, column), static_cast<size_t>(width * size));
  }
  if (from.scales) std::copy_n(scale_at(from, head, 0), n_columns, scale_at(to, head, 0));
}

}  // namespace

int64_t bytes_of_number(CacheFormat format) {
  switch (format) {
    case CacheFormat::bf16:
      return 2;
    case CacheFormat::int8:
      return 1;
    case CacheFormat::fp32:
      break;
  }
  return 4;
}

StoredHeads StoredHeads::from(int64_t column) const {
  StoredHeads result = *this;
  result.numbers += column * column_stride * bytes_of_number(format);
  if (scales) result.scales += column;
  return result;
}

StoredHeads StoredHeads::of_head(int64_t head) const {
  StoredHeads result = *this;
  result.numbers += head * head_stride * bytes_of_number(format);
  if (scales) result.scales += head * scale_head_stride;
  return result;
}

StoredHeads heads_of(const torch::Tensor& x) {
  return {.numbers = reinterpret_cast<std::byte*>(x.data_ptr<float>()),
          .head_stride = x.stride(0),
          .column_stride = x.stride(1)};
}

StoredHeads heads_of_row(const torch::Tensor& x, int64_t b) {
  return {.numbers = reinterpret_cast<std::byte*>(x.data_ptr<float>() + b * x.stride(0)),
          .head_stride = x.stride(1),
          .column_stride = x.stride(2)};
}

void ColumnBlocks::add_row(const StoredHeads& keys, const StoredHeads& values, int64_t length) {
  first_blocks.push_back(std::ssize(blocks));
  lengths.push_back(length);
  for (int64_t column = 0; column < length; column += kBlockColumns)
    blocks.push_back({.keys = keys.from(column), .values = values.from(column)});
}

void copy_columns(const StoredHeads& from, const StoredHeads& to, int64_t n_heads, int64_t n_columns,
                  int64_t width) {
  if (n_columns == 0) return;
  TORCH_CHECK(from.format == to.format || from.format == CacheFormat::fp32 || to.format == CacheFormat::fp32,
              "columns are converted from fp32 or to fp32");
  for (int64_t head = 0; head < n_heads; ++head) {
    if (from.format == to.format) {
      copy_head(from, to, head, n_columns, width);
      continue;
    }
    for (int64_t column = 0; column < n_columns; ++column) {
      if (from.format == CacheFormat::fp32) {
        store_vector(from, to, head, column, width);
      } else {
        load_vector(from, to, head, column, width);
      }
    }
  }
}

}  // namespace zoo
