#include "layers/attention/layer_state.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/autocast.h"
#include "base/error.h"
#include "base/named_enum.h"
#include "layers/attention/block_columns.h"
#include "layers/attention/column_storage.h"
#include "layers/attention/mixer.h"

namespace zoo {
namespace {

/// `heads` in the type in which attention is computed: rounded once here, not at every step.
torch::Tensor in_type_of_products(const torch::Tensor& heads) {
  const auto type = autocast_type(heads.device().type());
  return type && heads.scalar_type() == torch::kFloat ? heads.to(*type) : heads;
}

/// Blocks on a CPU, whose kernel for decoding reads them. Other attention wants one tensor.
std::unique_ptr<KeyValueStorage> new_storage(int64_t n_rows, CacheFormat format, const KeysAndValues& like) {
  const bool in_blocks =
      like.keys.is_cpu() && (format != CacheFormat::fp32 || (like.keys.scalar_type() == torch::kFloat &&
                                                             like.values.scalar_type() == torch::kFloat));
  TORCH_CHECK(in_blocks || format == CacheFormat::fp32, "only a CPU has a cache in ", name_of(format));
  if (!in_blocks) {
    return std::make_unique<ColumnStorage>(n_rows, KeysAndValues{.keys = in_type_of_products(like.keys),
                                                                 .values = in_type_of_products(like.values)});
  }
  return std::make_unique<BlockColumns>(n_rows, ColumnShape{.format = format,
                                                            .n_heads = like.keys.size(1),
                                                            .key_width = like.keys.size(3),
                                                            .value_width = like.values.size(3)});
}

}  // namespace

std::unique_ptr<LayerState> MixerImpl::new_state(int64_t /*n_rows*/) const {
  throw UsageError(
      "this mixer keeps no state of what it has read, so it cannot write token by token: it is for encoders");
}

KeyValueState& LayerState::key_values() {
  TORCH_CHECK(false, "this state is not one of keys and values of all tokens");
}

void LayerState::store_in(CacheFormat format) {
  if (format == CacheFormat::fp32) return;
  throw UsageError(
      fmt::format("generation.cache {} needs layers that keep the keys and values of all tokens; "
                  "this model has windows or running states: use fp32",
                  name_of(format)));
}

void KeyValueState::store_in(CacheFormat format) {
  TORCH_CHECK(!storage_ || format == format_, "the format of a state is chosen before anything is read");
  format_ = format;
}

void KeyValueState::write(const KeysAndValues& tokens, const PositionRange& range) {
  const torch::NoGradGuard no_grad;
  if (!storage_) {
    n_rows_ = tokens.keys.size(0);
    storage_ = new_storage(n_rows_, format_, tokens);
  }
  storage_->write(tokens, range);
}

KeysAndValues KeyValueState::extend(const torch::Tensor& keys, const torch::Tensor& values,
                                    const PositionRange& range) {
  write({.keys = keys, .values = values}, range);
  const int64_t n = range.n_keys();
  const bool is_all = range.first() == 0 && format_ == CacheFormat::fp32;
  if (is_all && !storage_->has_views(n))
    return {.keys = keys.detach().narrow(2, 0, n), .values = values.detach().narrow(2, 0, n)};
  return storage_->columns(n);
}

std::optional<ColumnBlocks> KeyValueState::blocks(int64_t n) const {
  return storage_ ? storage_->blocks(n) : std::nullopt;
}

void KeyValueState::reorder(const torch::Tensor& rows) {
  n_rows_ = rows.size(0);
  if (storage_) storage_->reorder(rows);
}

void KeyValueState::join(const LayerState& other) {
  const auto& more = dynamic_cast<const KeyValueState&>(other);
  if (!storage_ && more.storage_) {
    storage_ = more.storage_->empty(n_rows_);
    format_ = more.format_;
  }
  // Rows that have read nothing have no columns.
  if (storage_) storage_->join(more.storage_ ? *more.storage_ : *storage_->empty(more.n_rows_));
  n_rows_ += more.n_rows_;
}

void KeyValueState::truncate(std::span<const int64_t>, std::span<const int64_t> to) {
  if (storage_) storage_->truncate(to);
}

std::unique_ptr<LayerState> KeyValueState::copy() const {
  auto result = std::make_unique<KeyValueState>(n_rows_);
  result->format_ = format_;
  if (storage_) result->storage_ = storage_->copy();
  return result;
}

ColumnStorage* KeyValueState::slots() { return dynamic_cast<ColumnStorage*>(storage_.get()); }

std::unique_ptr<LayerState> KeyValueState::row(int64_t row, int64_t n) {
  auto result = std::make_unique<KeyValueState>(1);
  result->format_ = format_;
  result->storage_ = slots()->row(row, n);
  return result;
}

int64_t KeyValueState::bytes() const { return storage_ ? storage_->bytes() : 0; }

int64_t KeyValueState::n_columns() const { return storage_ ? storage_->n_columns() : 0; }

MemoryState::MemoryState(const KeysAndValues& memories) : together_(memories) {
  for (int64_t b = 0; b < memories.keys.size(0); ++b)
    memories_.push_back({.keys = memories.keys.select(0, b), .values = memories.values.select(0, b)});
}

int64_t MemoryState::n_columns() const {
  int64_t longest = 0;
  for (const auto& memory : memories_) longest = std::max(longest, memory.keys.size(1));
  return longest;
}

const KeysAndValues& MemoryState::together() const {
  if (!together_) {
    const int64_t n = n_columns();
    const auto stacked = [&](torch::Tensor KeysAndValues::* which) {
      const auto& like = memories_.front().*which;
      auto result = torch::zeros({n_memories(), like.size(0), n, like.size(2)}, like.options());
      for (size_t b = 0; b < memories_.size(); ++b) {
        const auto& memory = memories_[b].*which;
        result[static_cast<int64_t>(b)].narrow(1, 0, memory.size(1)).copy_(memory);
      }
      return result;
    };
    together_ = {.keys = stacked(&KeysAndValues::keys), .values = stacked(&KeysAndValues::values)};
  }
  return *together_;
}

std::optional<ColumnBlocks> MemoryState::blocks() const {
  const auto& like = memories_.front();
  ColumnBlocks result{.n_heads = like.keys.size(0),
                      .key_width = like.keys.size(2),
                      .value_width = like.values.size(2),
                      .n_columns = n_columns(),
                      .key_stride = like.keys.size(2),
                      .value_stride = like.values.size(2)};
  for (const auto& [keys, values] : memories_) {
    for (const auto* const x : {&keys, &values}) {
      // Consecutive vectors of a head, as remember() makes them.
      if (!x->is_cpu() || x->scalar_type() != torch::kFloat || !x->is_contiguous() ||
          (torch::GradMode::is_enabled() && x->requires_grad()))
        return std::nullopt;
    }
    result.add_row(heads_of(keys), heads_of(values), keys.size(1));
  }
  return result;
}

void MemoryState::reorder(const torch::Tensor& rows) {
  const auto index = rows.cpu();
  std::vector<KeysAndValues> reordered;
  for (int64_t i = 0; i < index.size(0); ++i)
    reordered.push_back(memories_.at(static_cast<size_t>(index.const_data_ptr<int64_t>()[i])));
  memories_ = std::move(reordered);
  together_.reset();
}

void MemoryState::join(const LayerState& other) {
  const auto more = dynamic_cast<const MemoryState&>(other).memories_;
  memories_.insert(memories_.end(), more.begin(), more.end());
  together_.reset();
}

std::unique_ptr<LayerState> MemoryState::copy() const { return std::make_unique<MemoryState>(*this); }

int64_t MemoryState::bytes() const {
  std::unordered_set<const void*> seen;
  size_t total = 0;
  for (const auto& [keys, values] : memories_) {
    if (seen.insert(keys.data_ptr()).second) total += keys.nbytes() + values.nbytes();
  }
  return static_cast<int64_t>(total);
}

}  // namespace zoo
