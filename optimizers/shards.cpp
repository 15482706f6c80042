#include "optimizers/shards.h"

#include <algorithm>
#include <numeric>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

/// Larger parameters are sent by themselves: copying them costs more than a message.
constexpr int64_t kMostPackedNumbers = 65536;

bool is_packed(const Parameter& parameter) { return parameter.tensor.numel() <= kMostPackedNumbers; }

}  // namespace

Shards::Shards(const ProcessGroup& processes, std::vector<Parameter> parameters)
    : processes_(processes),
      parameters_(std::move(parameters)),
      owners_(parameters_.size()),
      packed_(static_cast<size_t>(processes.size())) {
  std::vector<size_t> by_size(parameters_.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, std::ranges::greater(),
                           [&](size_t i) { return parameters_[i].tensor.numel(); });
  std::vector<int64_t> sizes(packed_.size()), packed_sizes(packed_.size());
  for (const size_t i : by_size) {
    const auto least = std::ranges::min_element(sizes);
    *least += parameters_[i].tensor.numel();
    owners_[i] = least - sizes.begin();
    if (is_packed(parameters_[i]))
      packed_sizes[static_cast<size_t>(owners_[i])] += parameters_[i].tensor.numel();
  }
  for (size_t rank = 0; rank < packed_.size(); ++rank) {
    if (packed_sizes[rank] > 0)
      packed_[rank] = torch::empty({packed_sizes[rank]}, parameters_.front().tensor.options());
  }
}

std::vector<Parameter> Shards::own() const {
  std::vector<Parameter> result;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (owners_[i] == processes_.rank()) result.push_back(parameters_[i]);
  }
  return result;
}

void Shards::broadcast_parameters() const {
  const torch::NoGradGuard no_grad;
  const auto for_each_place = [&](const auto& visit) {
    std::vector<int64_t> offsets(packed_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!is_packed(parameters_[i])) continue;
      const auto owner = static_cast<size_t>(owners_[i]);
      const auto& tensor = parameters_[i].tensor;
      visit(tensor.detach(), packed_[owner].narrow(0, offsets[owner], tensor.numel()).view(tensor.sizes()),
            owners_[i] == processes_.rank());
      offsets[owner] += tensor.numel();
    }
  };
  for_each_place([](const torch::Tensor& parameter, const torch::Tensor& place, bool is_own) {
    if (is_own) place.copy_(parameter);
  });
  std::vector<ProcessGroup::Work> works;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_packed(parameters_[i]))
      works.push_back(processes_.broadcast(parameters_[i].tensor.detach(), owners_[i]));
  }
  for (size_t rank = 0; rank < packed_.size(); ++rank) {
    if (packed_[rank].defined())
      works.push_back(processes_.broadcast(packed_[rank], static_cast<int64_t>(rank)));
  }
  for (auto& work : works) work.wait();
  for_each_place([](const torch::Tensor& parameter, const torch::Tensor& place, bool is_own) {
    if (!is_own) parameter.copy_(place);
  });
}

TensorMap Shards::gather_state(const OptimizerConfig& config, const Optimizer& own) const {
  const auto own_state = own.state();
  if (!processes_.is_first()) {
    for (const auto& [name, tensor] : own_state) processes_.send(tensor.contiguous(), /*to=*/0);
    return {};
  }
  // Receives from one owner after the other, in the order of the names. Only an update rule knows which state
  // a parameter has, so a new optimiser provides the tensors to receive into.
  TensorMap all;
  for (const auto& [name, tensor] : own_state) all.emplace(name, tensor.cpu());
  for (int64_t rank = 1; rank < processes_.size(); ++rank) {
    std::vector<Parameter> theirs;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (owners_[i] == rank) theirs.push_back(parameters_[i]);
    }
    for (const auto& [name, tensor] : Optimizer(config, theirs).state()) {
      processes_.recv(tensor, /*from=*/rank);
      all.emplace(name, tensor.cpu());
    }
  }
  return all;
}

}  // namespace zoo
