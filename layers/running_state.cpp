#include "layers/running_state.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {

// The copy drops the graph, and the storage of which the value may be a small part.
void RunningState::set(size_t index, const torch::Tensor& value) {
  TORCH_CHECK(value.sizes() == tensors_.at(index).sizes(), "a running state keeps its size");
  tensors_[index] = value.detach().clone(torch::MemoryFormat::Contiguous);
}

void RunningState::reorder(const torch::Tensor& rows) {
  for (auto& tensor : tensors_) tensor = tensor.index_select(0, rows);
}

void RunningState::join(const LayerState& other) {
  const auto& more = dynamic_cast<const RunningState&>(other);
  TORCH_CHECK(tensors_.size() == more.tensors_.size(), "states of different layers cannot be joined");
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i] = torch::cat({tensors_[i], more.tensors_[i]});
}

void RunningState::truncate(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<int64_t> emptied;
  for (size_t b = 0; b < from.size(); ++b) {
    TORCH_CHECK(to[b] == 0 || to[b] == from[b], "a running state of ", from[b], " tokens cannot go back to ",
                to[b], ": keep a copy of the earlier state");
    if (to[b] == 0) emptied.push_back(static_cast<int64_t>(b));
  }
  if (emptied.empty()) return;
  for (auto& tensor : tensors_)
    tensor = tensor.index_fill(0, torch::tensor(emptied, torch::kInt64).to(tensor.device()), 0);
}

std::unique_ptr<LayerState> RunningState::copy() const {
  std::vector<torch::Tensor> tensors;
  for (const auto& tensor : tensors_) tensors.push_back(tensor.clone());
  return std::make_unique<RunningState>(std::move(tensors));
}

int64_t RunningState::bytes() const {
  int64_t total = 0;
  for (const auto& tensor : tensors_) total += static_cast<int64_t>(tensor.nbytes());
  return total;
}

}  // namespace zoo
