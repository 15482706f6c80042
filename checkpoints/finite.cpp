#include "checkpoints/finite.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

namespace {

/// Tensors on one device, and their extremes there: NaN if there is one, infinite if there is one.
struct Group {
  torch::Device device;
  std::vector<const std::string*> names = {};
  std::vector<torch::Tensor> extremes = {};
};

}  // namespace

std::optional<std::string> find_not_finite(const TensorMap& tensors) {
  std::vector<Group> groups;  // an optimiser has some of its state on the CPU
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) continue;
    auto group = std::ranges::find(groups, tensor.device(), &Group::device);
    if (group == groups.end()) group = groups.insert(groups.end(), {.device = tensor.device()});
    const auto [least, most] = at::aminmax(tensor.detach());
    group->names.push_back(&name);
    group->extremes.push_back(at::stack({least, most}).to(torch::kDouble));
  }
  for (const auto& group : groups) {
    const auto numbers = at::cat(group.extremes).cpu();
    const double* const number = numbers.const_data_ptr<double>();
    for (size_t i = 0; i < group.names.size(); ++i) {
      if (!std::isfinite(number[2 * i]) || !std::isfinite(number[2 * i + 1])) return *group.names[i];
    }
  }
  return std::nullopt;
}

void check_finite(const std::filesystem::path& path, const TensorMap& tensors) {
  if (const auto name = find_not_finite(tensors)) {
    throw CheckpointError(fmt::format(
        "{}: the tensor '{}' has elements that are not numbers: it is damaged, or the training diverged; "
        "take an earlier checkpoint",
        path.string(), excerpt(*name)));
  }
}

}  // namespace zoo
