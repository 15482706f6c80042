#pragma once
// The state of a generative model for the sequences that it reads and writes.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "data/batch.h"
#include "layers/attention/layer_state.h"
#include "layers/attention/mask.h"

namespace zoo {

/// The states of all layers for B rows. Each row has its own length: the number of tokens that it has read.
/// Callers truncate, reorder, copy, drop and join rows. Models read tokens into the state. If a model throws
/// while reading, its state must not be used again.
class DecodingState {
 public:
  /// No rows.
  DecodingState() = default;
  /// `n_rows` rows without tokens, on the model's device.
  DecodingState(int64_t n_rows, torch::Device device)
      : device_(device), lengths_(static_cast<size_t>(n_rows), 0) {}

  int64_t n_rows() const { return std::ssize(lengths_); }
  /// Tokens that each row has read, including its prompt but not a source that an encoder has read.
  const std::vector<int64_t>& lengths() const { return lengths_; }
  /// Bytes of all layers: keys, values and running states.
  int64_t bytes() const;

  /// Whether truncate() can cut rows to any length: layers with windows or running states forget tokens.
  bool keeps_every_token() const;
  /// Row b keeps only its first lengths[b] tokens; lengths[b] is at most the row's length. Throws c10::Error
  /// if a layer cannot do this, see LayerState::truncate().
  void truncate(const std::vector<int64_t>& lengths);
  /// Row i becomes the previous row rows[i]: rows are reordered, copied and dropped. Keys and values of a
  /// memory are not copied if all rows of the memory stay together.
  void reorder(const std::vector<int64_t>& rows);
  /// Appends the rows of `other`, a state of the same model.
  void join(DecodingState other);
  /// An independent copy.
  DecodingState copy() const;

  // Rows in slots, on a GPU: they stay where they are while others come and go, and steps have fixed shapes
  // (generation/rows/device_rows.h).

  /// The storages of the layers, if each keeps keys and values of all rows in one tensor, and there are no
  /// memories; otherwise none.
  std::vector<ColumnStorage*> slots();
  /// A copy of one row.
  DecodingState row(int64_t row);
  /// One row, whose keys and values stay in the memory of this state until the row grows. Without slots() a
  /// copy. Rows of one state never write where another one reads.
  DecodingState shared_row(int64_t row);
  /// From now on there are `lengths.size()` rows, and read() returns `next`, without counting.
  void fix(std::vector<int64_t> lengths, PositionRange next);
  /// Ends this: the rows have read `lengths`.
  void release(std::vector<int64_t> lengths);

  // The remaining functions are for models.

  /// Counts `tokens` as read and returns their positions. A length of 0 means that a row reads nothing.
  PositionRange read(const TokenBatch& tokens);
  /// One state per layer.
  std::vector<std::unique_ptr<LayerState>>& layers() { return layers_; }
  /// Sets each layer's keys and values of the memories, one memory per row. `lengths`: of each memory.
  void set_memories(std::vector<std::unique_ptr<MemoryState>> layers, std::vector<int64_t> lengths);
  /// The memories of one layer; null if there are none.
  const MemoryState* memory(size_t layer) const;
  /// A mask that hides the padding of the memories.
  Mask memory_mask() const;

 private:
  void reorder_memories(const std::vector<int64_t>& rows);
  void pick_memories(const std::vector<int64_t>& sources);
  torch::Tensor on_device(const std::vector<int64_t>& values) const;

  torch::Device device_ = torch::kCPU;
  std::vector<int64_t> lengths_;
  std::optional<PositionRange> fixed_ = {};  // what read() returns
  std::vector<std::unique_ptr<LayerState>> layers_;
  std::vector<std::unique_ptr<MemoryState>> memories_;  // one per layer
  std::vector<int64_t> memory_lengths_;                 // of each memory
  int64_t rows_of_a_memory_ = 1;                        // row b uses memory b / rows_of_a_memory_
};

}  // namespace zoo
