#include "models/lora.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/weights/linear.h"
#include "models/name_patterns.h"

namespace zoo {
namespace {

/// A linear map that can have an adapter.
struct Target {
  std::string name;
  LinearImpl* map;
  size_t part;
};

std::vector<Target> targets_of(const torch::nn::Module& model) {
  std::vector<Target> targets;
  std::set<const LinearImpl*> seen;  // modules may be shared
  for (const auto& item : model.named_modules()) {
    auto* const map = dynamic_cast<LinearImpl*>(item.value().get());
    if (!map || !seen.insert(map).second) continue;
    const auto& parts = map->options.parts();
    const auto parent = item.key().substr(0, item.key().rfind('.') + 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_alone = parts.size() == 1;
      targets.push_back({is_alone ? item.key() : parent + parts[i].name, map, i});
    }
  }
  return targets;
}

std::vector<std::string> trained_patterns(const LoraConfig& config, HeadKind head) {
  if (config.trained) return *config.trained;
  const bool is_classifier = head == HeadKind::classification || head == HeadKind::token_classification ||
                             head == HeadKind::regression || head == HeadKind::ctc;
  return is_classifier ? std::vector<std::string>{"head.*"} : std::vector<std::string>{};
}

}  // namespace

std::vector<std::string> adapter_targets(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& target : targets_of(model)) names.push_back(target.name);
  return names;
}

void add_adapters(Model& model, const LoraConfig& config, HeadKind head) {
  require_matches("training.lora.targets", config.targets, adapter_targets(model), "linear map");
  const auto trained = trained_patterns(config, head);
  require_matches("training.lora.trained", trained, parameter_names(model), "parameter");
  for (const auto& [name, map, part] : targets_of(model)) {
    if (!matches_any(config.targets, name)) continue;
    const int64_t n_outputs = map->options.parts()[part].n_outputs;
    if (const int64_t most = std::min(map->n_inputs(), n_outputs); config.rank > most) {
      throw ConfigError(
          fmt::format("training.lora.rank: {} is more than {}, the smaller side of the matrix of {}",
                      config.rank, most, name));
    }
    map->add_adapter(part, {.rank = config.rank, .alpha = config.alpha, .dropout = config.dropout});
  }
  for (auto& item : model.named_parameters())
    item.value().requires_grad_(is_adapter_parameter(item.key()) || matches_any(trained, item.key()));
}

bool is_adapter_parameter(std::string_view name) {
  const auto last = name.substr(name.rfind('.') + 1);
  return last.starts_with("lora_a") || last.starts_with("lora_b");
}

bool has_adapters(const torch::nn::Module& model) {
  return std::ranges::any_of(model.modules(), [](const auto& module) {
    const auto* const map = dynamic_cast<const LinearImpl*>(module.get());
    return map && map->has_adapters();
  });
}

int64_t merge_adapters(torch::nn::Module& model) {
  int64_t n_adapters = 0;
  for (const auto& module : model.modules()) {
    if (auto* const map = dynamic_cast<LinearImpl*>(module.get())) n_adapters += map->merge_adapters();
  }
  for (auto& parameter : model.parameters()) parameter.requires_grad_(true);
  return n_adapters;
}

}  // namespace zoo
