#include "models/batch.h"

namespace zoo {
namespace {

torch::Tensor moved(const torch::Tensor& tensor, torch::Device device) {
  if (!tensor.defined()) return tensor;
  // A GPU fetches from pinned memory by itself, while this thread goes on.
  const bool to_gpu = device.is_cuda() && tensor.is_cpu();
  return (to_gpu ? tensor.pin_memory() : tensor).to(device, /*non_blocking=*/true);
}

torch::Tensor rows(const torch::Tensor& tensor, int64_t first, int64_t count) {
  return tensor.defined() ? tensor.narrow(0, first, count) : tensor;
}

TokenBatch rows(const TokenBatch& batch, int64_t first, int64_t count) {
  return {.ids = rows(batch.ids, first, count), .lengths = rows(batch.lengths, first, count)};
}

}  // namespace

TokenBatch TokenBatch::to(torch::Device device) const {
  return {.ids = moved(ids, device), .lengths = moved(lengths, device)};
}

Batch Batch::to(torch::Device device) const {
  return {.input = input.to(device),
          .segments = moved(segments, device),
          .decoder = decoder.to(device),
          .targets = moved(targets, device),
          .positions = moved(positions, device),
          .tokens = tokens};
}

Batch take_rows(const Batch& batch, int64_t first, int64_t count) {
  const auto& predicting = batch.decoder.defined() ? batch.decoder : batch.input;
  const int64_t n_rows = predicting.batch_size(), length = predicting.length();
  Batch part{.input = rows(batch.input, first, count),
             .segments = rows(batch.segments, first, count),
             .decoder = rows(batch.decoder, first, count)};
  if (batch.positions.defined()) {
    const int64_t begin = first * length, end = begin + count * length;
    const auto here = (batch.positions >= begin).logical_and(batch.positions < end);
    part.targets = batch.targets.masked_select(here);
    part.positions = batch.positions.masked_select(here) - begin;
  } else {
    const int64_t per_row = batch.n_targets() / n_rows;
    part.targets = batch.targets.narrow(0, first * per_row, count * per_row);
  }
  return part;
}

Batch take_part(const Batch& batch, int64_t index, int64_t n_parts) {
  const int64_t n_rows = batch.input.batch_size(), first = n_rows * index / n_parts;
  return take_rows(batch, first, n_rows * (index + 1) / n_parts - first);
}

std::vector<Batch> split_rows(const Batch& batch, int64_t n_parts) {
  std::vector<Batch> parts;
  for (int64_t i = 0; i < n_parts; ++i) parts.push_back(take_part(batch, i, n_parts));
  return parts;
}

}  // namespace zoo
