#include "data/batch.h"

#include <algorithm>

namespace zoo {
namespace {

torch::Tensor moved(const torch::Tensor& tensor, torch::Device device) {
  if (!tensor.defined()) return tensor;
  // A GPU copies from pinned memory asynchronously.
  const bool to_gpu = !device.is_cpu() && tensor.is_cpu();
  return (to_gpu ? tensor.pin_memory() : tensor).to(device, /*non_blocking=*/true);
}

torch::Tensor rows(const torch::Tensor& tensor, int64_t first, int64_t count) {
  return tensor.defined() ? tensor.narrow(0, first, count) : tensor;
}

TokenBatch rows(const TokenBatch& batch, int64_t first, int64_t count) {
  return {.ids = rows(batch.ids, first, count), .lengths = rows(batch.lengths, first, count)};
}

}  // namespace

std::vector<int64_t> TokenBatch::row_lengths() const {
  std::vector<int64_t> result(static_cast<size_t>(batch_size()), length());
  if (lengths.defined()) {
    const auto values = lengths.to(torch::kCPU, torch::kInt64).contiguous();
    std::copy_n(values.const_data_ptr<int64_t>(), result.size(), result.begin());
  }
  return result;
}

TokenBatch TokenBatch::to(torch::Device device) const {
  return {.ids = moved(ids, device), .lengths = moved(lengths, device)};
}

int64_t Batch::n_rows() const {
  if (input.defined()) return input.batch_size();
  TORCH_CHECK(!fields.empty(), "a batch has neither tokens nor fields");
  return fields.begin()->second.size(0);
}

const torch::Tensor& Batch::field(const std::string& name) const {
  const auto found = fields.find(name);
  TORCH_CHECK(found != fields.end(), "a batch has no field '", name, "'");
  return found->second;
}

Batch Batch::changed(const std::function<torch::Tensor(const torch::Tensor&)>& change) const {
  const auto one = [&](const torch::Tensor& tensor) { return tensor.defined() ? change(tensor) : tensor; };
  Batch result{.input = {.ids = one(input.ids), .lengths = one(input.lengths)},
               .segments = one(segments),
               .decoder = {.ids = one(decoder.ids), .lengths = one(decoder.lengths)},
               .targets = one(targets),
               .positions = one(positions),
               .tokens = tokens,
               .first_row = first_row};
  for (const auto& [name, tensor] : fields) result.fields.emplace(name, one(tensor));
  return result;
}

Batch Batch::to(torch::Device device) const {
  return changed([&](const torch::Tensor& tensor) { return moved(tensor, device); });
}

std::vector<torch::Tensor> Batch::tensors() const {
  std::vector<torch::Tensor> all{input.ids,       input.lengths, segments, decoder.ids,
                                 decoder.lengths, targets,       positions};
  for (const auto& [name, tensor] : fields) all.push_back(tensor);
  return all;
}

Batch take_rows(const Batch& batch, int64_t first, int64_t count) {
  Batch part{.input = rows(batch.input, first, count),
             .segments = rows(batch.segments, first, count),
             .decoder = rows(batch.decoder, first, count),
             .first_row = batch.first_row + first};
  for (const auto& [name, tensor] : batch.fields) part.fields.emplace(name, rows(tensor, first, count));
  if (!batch.targets.defined()) return part;
  if (batch.positions.defined()) {
    const auto& predicting = batch.decoder.defined() ? batch.decoder : batch.input;
    const int64_t begin = first * predicting.length(), end = begin + count * predicting.length();
    const auto here = (batch.positions >= begin).logical_and(batch.positions < end).nonzero().view({-1});
    part.targets = batch.targets.index_select(0, here);
    part.positions = batch.positions.index_select(0, here) - begin;
  } else {
    const int64_t per_row = batch.n_targets() / batch.n_rows();
    part.targets = batch.targets.narrow(0, first * per_row, count * per_row);
  }
  return part;
}

RowRange rows_of_part(int64_t n_rows, int64_t index, int64_t n_parts) {
  const int64_t first = n_rows * index / n_parts;
  return {.first = first, .count = n_rows * (index + 1) / n_parts - first};
}

Batch take_part(const Batch& batch, int64_t index, int64_t n_parts) {
  const auto [first, count] = rows_of_part(batch.n_rows(), index, n_parts);
  return take_rows(batch, first, count);
}

std::vector<Batch> split_rows(const Batch& batch, int64_t n_parts) {
  std::vector<Batch> parts;
  for (int64_t i = 0; i < n_parts; ++i) parts.push_back(take_part(batch, i, n_parts));
  return parts;
}

}  // namespace zoo
