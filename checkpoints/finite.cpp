#include "checkpoints/finite.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

std::optional<std::string> find_not_finite(const TensorMap& tensors) {
  std::vector<const std::string*> names;
  std::vector<torch::Tensor> extremes;  // NaN if there is one, infinite if there is one
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) continue;
    const auto [least, most] = at::aminmax(tensor.detach());
    names.push_back(&name);
    extremes.push_back(at::stack({least, most}).to(torch::kDouble));
  }
  if (names.empty()) return std::nullopt;
  const auto numbers = at::cat(extremes).cpu();
  const double* const number = numbers.const_data_ptr<double>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!std::isfinite(number[2 * i]) || !std::isfinite(number[2 * i + 1])) return *names[i];
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
