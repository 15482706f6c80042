#pragma once
// Keys of config.json that several families share.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "interop/families/foreign_config.h"
#include "interop/families/tensor_rules.h"
#include "layers/feed_forward.h"
#include "models/config/model_config.h"

namespace zoo {

/// Accounts for keys of every config.json that do not change what a model computes. Throws CheckpointError
/// for those that need a program of the author's, or arithmetic that is not here.
void ignore_common_keys(ForeignConfig& config);
/// The same for keys that say how texts are generated.
void ignore_generation_keys(ForeignConfig& config);

/// The activation that a key names, "gelu_new" for example. Throws CheckpointError for others than ours.
Activation read_activation(ForeignConfig& from, std::string_view key, const std::string& default_name);
/// The same for a gated feed-forward network, of which the key names the activation of the gate.
Activation read_gated_activation(ForeignConfig& from, std::string_view key, const std::string& default_name);
/// The name that transformers has for an activation, or for the one of a gate.
std::string foreign_name(const KindSelection<Activation>& activation);

/// rope_theta and rope_scaling, or rope_parameters, as transformers 5 says the same.
void read_rotary(ForeignConfig& from, double default_theta, ModelConfig& to);
void write_rotary(const ModelConfig& from, nlohmann::json& to);

/// layer_types, or where it is missing, which layers have a window by the family's own rule.
std::vector<bool> read_windows(ForeignConfig& from, const std::vector<bool>& rule);
/// The value of layer_types.
nlohmann::json layer_types_of(const ModelConfig& model);

/// Sets to.attention to the shortest list that repeats over `is_window`. A query sees `size` keys in a layer
/// with a window, itself included.
void set_windows(const std::vector<bool>& is_window, int64_t size, ModelConfig& to);
/// Whether each layer of a stack has a window.
std::vector<bool> windows_of(const ModelConfig& model);
/// The keys that a query sees in the layers with a window, itself included; nothing if no layer has one.
std::optional<int64_t> window_of(const ModelConfig& model);

}  // namespace zoo
