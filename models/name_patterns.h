#pragma once
// Parts of a model that a configuration names by patterns, such as `encoder.layers.0.*`
// (matches_pattern(), base/text.h).

#include <string>
#include <string_view>
#include <vector>

#include <torch/nn/module.h>

namespace zoo {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name);

/// Throws a ConfigError for the first of `patterns` that stands for none of `names`: it begins with `key`,
/// calls the names `kind`, such as "parameter", and shows similar names.
void require_matches(std::string_view key, const std::vector<std::string>& patterns,
                     const std::vector<std::string>& names, std::string_view kind);

/// The names of the parameters of `model`, as in its files.
std::vector<std::string> parameter_names(const torch::nn::Module& model);

/// Freezes the parameters of `model` whose names match a pattern: they get no gradients, so they need neither
/// memory for gradients nor a state of the optimiser, and keep their values to the last bit. Throws
/// ConfigError for a pattern without a match, and if no parameter is left to train.
void freeze_parameters(torch::nn::Module& model, const std::vector<std::string>& patterns);

}  // namespace zoo
