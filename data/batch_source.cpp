#include "data/batch_source.h"

#include <torch/types.h>

namespace zoo {
namespace {

int64_t bytes_of(const Batch& batch) {
  int64_t bytes = 0;
  for (const auto& tensor : batch.tensors()) {
    if (tensor.defined()) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

}  // namespace

BatchSequence::BatchSequence(std::vector<Batch> batches) : kept_(std::move(batches)) {}

BatchSequence::BatchSequence(BatchSource& source, std::vector<BatchPosition> positions, int64_t kept_bytes)
    : source_(&source), positions_(std::move(positions)) {
  int64_t bytes = 0;
  for (const auto& [epoch, index] : positions_) {
    kept_.push_back(source.batch(epoch, index));
    bytes += bytes_of(kept_.back());
    if (bytes >= kept_bytes) break;
  }
}

Batch BatchSequence::operator[](size_t i) const {
  if (i < kept_.size()) return kept_[i];
  return source_->batch(positions_.at(i).epoch, positions_.at(i).index);
}

std::vector<Batch> BatchSequence::all() const {
  std::vector<Batch> batches = kept_;
  while (batches.size() < size()) batches.push_back((*this)[batches.size()]);
  return batches;
}

BatchSequence next_batches(BatchSource& source, BatchPosition& position, int64_t count) {
  std::vector<BatchPosition> positions;
  for (int64_t i = 0; i < count; ++i) {
    if (position.index >= source.n_batches(position.epoch))
      position = {.epoch = position.epoch + 1, .index = 0};
    positions.push_back(position);
    ++position.index;
  }
  const bool is_last = position.index >= source.n_batches(position.epoch);
  BatchSequence batches(source, std::move(positions));
  source.expect(position.epoch + (is_last ? 1 : 0), is_last ? 0 : position.index);
  return batches;
}

}  // namespace zoo
