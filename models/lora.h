#pragma once
// LoRA (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"): a trained model stays as it
// is, and some of its linear maps get adapters, which are trained (layers/weights/linear.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/nn/module.h>

#include "models/model.h"

namespace zoo {

struct LoraConfig {
  int64_t rank = 8;
  double alpha = 16;   // factor alpha / rank on the adapters' outputs
  double dropout = 0;  // of the adapters' inputs
  /// Patterns of the linear maps that get adapters, see adapter_targets().
  std::vector<std::string> targets = {"*.q", "*.v"};
  /// Patterns of the other parameters that are trained. Default: the head of a classifier (`head.*`), since
  /// it is new, and nothing for a model that predicts tokens.
  std::optional<std::vector<std::string>> trained = std::nullopt;
};

/// The names of the linear maps of `model`: of the modules, such as `encoder.layers.0.feed_forward.down`.
/// Maps that are stacked in one matrix have the names that they would have alone: `….attention.q` for the
/// queries in `….attention.qkv`.
std::vector<std::string> adapter_targets(const torch::nn::Module& model);

/// Adds adapters to `model`, and freezes everything else except the parameters in config.trained. Throws
/// ConfigError for a pattern without a match, and for a rank that is larger than a side of a matrix.
void add_adapters(Model& model, const LoraConfig& config, HeadKind head);

/// Whether `name` is the name of a parameter of an adapter.
bool is_adapter_parameter(std::string_view name);
bool has_adapters(const torch::nn::Module& model);
/// Adds the adapters to the matrices and removes them. All parameters can be trained afterwards. Returns the
/// number of adapters.
int64_t merge_adapters(torch::nn::Module& model);

}  // namespace zoo
