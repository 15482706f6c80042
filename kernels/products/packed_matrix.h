#pragma once
// A matrix of weights W (O, I) in panels (panels.h), packed once for many products with few rows.

#include <array>
#include <cstdint>
#include <string_view>

#include <torch/types.h>

namespace zoo {

///   bf16, fp16  each number rounded to the nearest
///   int8        whole numbers from -127 to 127, and a scale for each row: largest |w| / 127
///   int4        whole numbers from -8 to 7, and for each 32 inputs of a row a scale in fp16, chosen for the
///               least sum of squared errors among some near largest |w| / 8
enum class PackedFormat { bf16, fp16, int8, int4 };

/// The numbers of a matrix in int8 or int4, one in each byte, and what they are multiplied with.
struct WholeNumbers {
  torch::Tensor numbers;  // (O, I) int8
  torch::Tensor scales;   // int8: (O, 1), int4: (O, ⌈I/32⌉), float
};

class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// `weight` (O, I) float on the CPU. A row (int8) or group (int4) with an infinite number or NaN becomes
  /// NaN; scales of int4 end at 65504.
  PackedMatrix(const torch::Tensor& weight, PackedFormat format);

  bool defined() const { return memory_.defined(); }
  int64_t n_rows() const { return n_rows_; }
  int64_t n_columns() const { return n_columns_; }
  PackedFormat format() const { return format_; }
  /// The panels as bytes: (n) uint8.
  const torch::Tensor& memory() const { return memory_; }
  /// Bytes of one panel.
  int64_t panel_bytes() const;

  /// A matrix of the same shape and format with any numbers.
  PackedMatrix blank() const;

  /// ids: any shape (…) int64, on the CPU. Returns the rows with these ids, (…, I) float. Throws c10::Error
  /// for others.
  torch::Tensor rows(const torch::Tensor& ids) const;
  /// Throws c10::Error for other formats than int8 and int4.
  WholeNumbers whole_numbers() const;

 private:
  torch::Tensor memory_;
  int64_t n_rows_ = 0, n_columns_ = 0;
  PackedFormat format_ = PackedFormat::bf16;
};

}  // namespace zoo
