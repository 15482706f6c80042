#include "text/batches/padded_rows.h"

#include <algorithm>

namespace zoo {

torch::Tensor int64_tensor(int64_t n) { return torch::empty({n}, torch::kInt64); }

std::vector<int64_t> int64_values(const torch::Tensor& tensor) {
  const auto cpu = tensor.to(torch::kCPU).contiguous();
  return {cpu.const_data_ptr<int64_t>(), cpu.const_data_ptr<int64_t>() + cpu.numel()};
}

torch::Tensor int64_tensor(std::span<const int64_t> values) {
  auto tensor = int64_tensor(std::ssize(values));
  std::ranges::copy(values, tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

PaddedRows::PaddedRows(const std::vector<int64_t>& lengths, int64_t pad) {
  const auto rows = static_cast<int64_t>(lengths.size());
  width_ = *std::ranges::max_element(lengths);
  padded_ = *std::ranges::min_element(lengths) < width_;
  ids_ = torch::empty({rows, width_}, torch::kInt64);
  data_ = ids_.mutable_data_ptr<int64_t>();
  if (!padded_) return;
  lengths_ = int64_tensor(lengths);
  for (int64_t b = 0; b < rows; ++b)
    std::fill(row(b) + lengths[static_cast<size_t>(b)], row(b) + width_, pad);
}

TokenBatch padded(const std::vector<std::vector<int64_t>>& rows, int64_t pad) {
  std::vector<int64_t> lengths;
  for (const auto& row : rows) lengths.push_back(static_cast<int64_t>(row.size()));
  PaddedRows result(lengths, pad);
  for (size_t b = 0; b < rows.size(); ++b) std::ranges::copy(rows[b], result.row(static_cast<int64_t>(b)));
  return result.batch();
}

std::vector<std::vector<int64_t>> rows_at(const std::vector<std::vector<int64_t>>& rows,
                                          std::span<const int64_t> numbers) {
  std::vector<std::vector<int64_t>> result;
  for (const int64_t number : numbers) result.push_back(rows[static_cast<size_t>(number)]);
  return result;
}

}  // namespace zoo
