#include "models/trained_adapters.h"

#include <set>

#include "layers/weights/linear.h"

namespace zoo {

std::vector<MatrixAdapter> adapters_of(const torch::nn::Module& model, const LoraConfig& config) {
  std::vector<MatrixAdapter> result;
  std::set<const LinearImpl*> seen;  // modules may be shared
  for (const auto& item : model.named_modules()) {
    const auto* const map = dynamic_cast<const LinearImpl*>(item.value().get());
    if (!map || !map->has_adapters() || !seen.insert(map).second) continue;
    const auto parameters = map->named_parameters(/*recurse=*/false);
    const auto& parts = map->options.parts();
    int64_t row = 0;
    for (const auto& part : parts) {
      const auto suffix = parts.size() == 1 ? "" : "_" + std::string(part.name);
      if (const auto* const a = parameters.find("lora_a" + suffix)) {
        result.push_back({.matrix = item.key() + ".weight",
                          .first_row = row,
                          .a = a->detach(),
                          .b = parameters["lora_b" + suffix].detach(),
                          .scale = config.alpha / static_cast<double>(config.rank)});
      }
      row += part.n_outputs;
    }
  }
  return result;
}

}  // namespace zoo
