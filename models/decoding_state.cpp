#include "models/decoding_state.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <torch/types.h>

#include "layers/attention/column_storage.h"

namespace zoo {
namespace {

/// If the values consist of runs of equal values and all runs have one length, that length; else 0.
int64_t length_of_runs(const std::vector<int64_t>& values) {
  size_t run = 0;
  while (run < values.size() && values[run] == values.front()) ++run;
  if (run == 0 || values.size() % run != 0) return 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != values[i / run * run]) return 0;
  }
  return static_cast<int64_t>(run);
}

bool is_identity(const std::vector<int64_t>& rows, size_t n) {
  if (rows.size() != n) return false;
  for (size_t i = 0; i < n; ++i) {
    if (rows[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

template <class T>
std::vector<T> picked(const std::vector<T>& values, const std::vector<int64_t>& rows) {
  std::vector<T> result;
  for (const int64_t row : rows) result.push_back(values.at(static_cast<size_t>(row)));
  return result;
}

}  // namespace

torch::Tensor DecodingState::on_device(const std::vector<int64_t>& values) const {
  return torch::tensor(values, torch::kInt64).to(device_);
}

int64_t DecodingState::bytes() const {
  int64_t total = 0;
  for (const auto& layer : layers_) total += layer->bytes();
  for (const auto& memory : memories_) total += memory->bytes();
  return total;
}

bool DecodingState::keeps_every_token() const {
  return std::ranges::all_of(layers_, [](const auto& layer) { return layer->keeps_every_token(); });
}

void DecodingState::truncate(const std::vector<int64_t>& lengths) {
  TORCH_CHECK(lengths.size() == lengths_.size(), "a state of ", lengths_.size(), " rows, not ",
              lengths.size());
  for (size_t b = 0; b < lengths.size(); ++b) {
    TORCH_CHECK(lengths[b] >= 0 && lengths[b] <= lengths_[b], "row ", b, " has read ", lengths_[b],
                " tokens, not ", lengths[b]);
  }
  if (lengths == lengths_) return;
  for (auto& layer : layers_) layer->truncate(lengths_, lengths);
  lengths_ = lengths;
}

void DecodingState::reorder(const std::vector<int64_t>& rows) {
  if (is_identity(rows, lengths_.size())) return;
  if (!memories_.empty()) reorder_memories(rows);
  lengths_ = picked(lengths_, rows);
  const auto index = on_device(rows);
  for (auto& layer : layers_) layer->reorder(index);
}

/// Rows of the same memory share it if they are adjacent and each memory has equally many. Otherwise each row
/// gets a copy.
void DecodingState::reorder_memories(const std::vector<int64_t>& rows) {
  std::vector<int64_t> sources;
  for (const int64_t row : rows) sources.push_back(row / rows_of_a_memory_);
  const int64_t run = length_of_runs(sources);
  rows_of_a_memory_ = std::max<int64_t>(run, 1);
  if (run > 1) {
    std::vector<int64_t> heads;
    for (size_t i = 0; i < sources.size(); i += static_cast<size_t>(run)) heads.push_back(sources[i]);
    sources = std::move(heads);
  }
  pick_memories(sources);
}

/// Memory i becomes what memory sources[i] was.
void DecodingState::pick_memories(const std::vector<int64_t>& sources) {
  if (is_identity(sources, memory_lengths_.size())) return;
  memory_lengths_ = picked(memory_lengths_, sources);
  const auto index = on_device(sources);
  for (auto& memory : memories_) memory->reorder(index);
}

void DecodingState::join(DecodingState other) {
  if (other.n_rows() == 0) return;
  if (n_rows() == 0) {
    *this = std::move(other);
    return;
  }
  TORCH_CHECK(layers_.size() == other.layers_.size() && memories_.size() == other.memories_.size(),
              "states of different models cannot be joined");
  if (!memories_.empty() && rows_of_a_memory_ != other.rows_of_a_memory_) {
    // In both states each row gets its own memory.
    for (auto* state : {this, &other}) {
      std::vector<int64_t> sources(static_cast<size_t>(state->n_rows()));
      for (size_t b = 0; b < sources.size(); ++b)
        sources[b] = static_cast<int64_t>(b) / state->rows_of_a_memory_;
      state->pick_memories(sources);
      state->rows_of_a_memory_ = 1;
    }
  }
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->join(*other.layers_[i]);
  for (size_t i = 0; i < memories_.size(); ++i) memories_[i]->join(*other.memories_[i]);
  lengths_.insert(lengths_.end(), other.lengths_.begin(), other.lengths_.end());
  memory_lengths_.insert(memory_lengths_.end(), other.memory_lengths_.begin(), other.memory_lengths_.end());
}

DecodingState DecodingState::copy() const {
  DecodingState result;
  result.device_ = device_;
  result.lengths_ = lengths_;
  result.memory_lengths_ = memory_lengths_;
  result.rows_of_a_memory_ = rows_of_a_memory_;
  for (const auto& layer : layers_) result.layers_.push_back(layer->copy());
  for (const auto& memory : memories_) result.memories_.push_back(std::make_unique<MemoryState>(*memory));
  return result;
}

std::vector<ColumnStorage*> DecodingState::slots() {
  std::vector<ColumnStorage*> result;
  if (!memories_.empty()) return result;
  for (const auto& layer : layers_) {
    auto* const keys = dynamic_cast<KeyValueState*>(layer.get());
    result.push_back(keys ? keys->slots() : nullptr);
    if (!result.back()) return {};
  }
  return result;
}

DecodingState DecodingState::row(int64_t row) {
  return slots().empty() ? shared_row(row) : shared_row(row).copy();
}

DecodingState DecodingState::shared_row(int64_t row) {
  if (slots().empty()) {
    auto result = copy();
    result.reorder({row});
    return result;
  }
  DecodingState result(1, device_);
  result.lengths_ = {lengths_.at(static_cast<size_t>(row))};
  for (const auto& layer : layers_)
    result.layers_.push_back(layer->key_values().row(row, result.lengths_.front()));
  return result;
}

void DecodingState::fix(std::vector<int64_t> lengths, PositionRange next) {
  lengths_ = std::move(lengths);
  fixed_ = std::move(next);
}

void DecodingState::release(std::vector<int64_t> lengths) {
  lengths_ = std::move(lengths);
  fixed_.reset();
}

PositionRange DecodingState::read(const TokenBatch& tokens) {
  TORCH_CHECK(tokens.batch_size() == n_rows(), "a state of ", n_rows(), " rows reads ", tokens.batch_size(),
              " rows of tokens");
  if (fixed_) return *fixed_;
  const int64_t count = tokens.length();
  const bool same = std::ranges::all_of(lengths_, [&](int64_t n) { return n == lengths_.front(); });
  if (!tokens.lengths.defined() && same) {
    const PositionRange range(lengths_.empty() ? 0 : lengths_.front(), count);
    for (auto& length : lengths_) length += count;
    return range;
  }
  const auto counts = tokens.row_lengths();
  const PositionRange range(lengths_, counts, count, device_);
  for (size_t b = 0; b < counts.size(); ++b) lengths_[b] += counts[b];
  return range;
}

void DecodingState::set_memories(std::vector<std::unique_ptr<MemoryState>> layers,
                                 std::vector<int64_t> lengths) {
  memories_ = std::move(layers);
  memory_lengths_ = std::move(lengths);
  rows_of_a_memory_ = 1;
}

const MemoryState* DecodingState::memory(size_t layer) const {
  return memories_.empty() ? nullptr : memories_.at(layer).get();
}

Mask DecodingState::memory_mask() const {
  if (memories_.empty()) return {};
  const int64_t longest = memories_.front()->n_columns();
  const bool padded = std::ranges::any_of(memory_lengths_, [&](int64_t n) { return n < longest; });
  return padded ? Mask::lengths(on_device(memory_lengths_)) : Mask();
}

}  // namespace zoo
