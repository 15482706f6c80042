#include "analysis/causes/repeated_rows.h"

#include <algorithm>
#include <vector>

#include <torch/types.h>

namespace zoo {

Batch repeated_rows(const Batch& batch, int64_t n) {
  auto rows = batch;
  const auto repeat = [n](torch::Tensor& x) {
    if (!x.defined()) return;
    std::vector<int64_t> times(static_cast<size_t>(x.dim()), 1);
    times.front() = n;
    x = x.repeat(times);
  };
  repeat(rows.input.ids);
  repeat(rows.segments);
  repeat(rows.decoder.ids);
  for (auto& [name, field] : rows.fields) repeat(field);
  if (batch.positions.defined()) {
    const int64_t width = batch.decoder.defined() ? batch.decoder.length() : batch.input.length();
    std::vector<torch::Tensor> positions;
    for (int64_t r = 0; r < n; ++r) positions.push_back(batch.positions + r * width);
    rows.positions = torch::cat(positions);
  }
  return rows;
}

int64_t rows_at_once(const Batch& batch, int64_t most_vectors) {
  constexpr int64_t pixels_of_vector = 16 * 16;
  int64_t n = 1;
  for (const auto* const ids : {&batch.input.ids, &batch.decoder.ids})
    if (ids->defined()) n = std::max(n, ids->size(1));
  if (batch.fields.contains(fields::kImages)) {
    const auto& images = batch.field(fields::kImages);
    n = std::max(n, images.size(2) * images.size(3) / pixels_of_vector);
  }
  return std::max<int64_t>(1, most_vectors / n);
}

}  // namespace zoo
