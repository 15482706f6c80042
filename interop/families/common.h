#pragma once
// Keys of config.json that several families share.

#include <cstdint>
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

struct Experiment;

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

/// Whether the model predicts masked tokens.
bool fills_masks(const Experiment& experiment);
/// Fails if such a model has layers with another activation than GELU, which the head always has.
void require_gelu_to_fill_masks(const ForeignConfig& from, const Experiment& to);

/// The number, or null.
nlohmann::json or_null(const std::optional<double>& value);

/// What a family's files say of rotary positions.
struct RotaryDefaults {
  double theta = 10000;
  /// The part of a head that is turned; nothing: all of it, and the family has no key for it.
  std::optional<double> fraction = {};
  std::string_view theta_key = "rope_theta", fraction_key = "partial_rotary_factor";
};

/// rope_theta and rope_scaling, or rope_parameters, as transformers 5 says the same.
void read_rotary(ForeignConfig& from, const RotaryDefaults& defaults, ModelConfig& to);
void write_rotary(const ModelConfig& from, nlohmann::json& to);

/// Sets to.rotary.turns to the shortest list that repeats over `is_turned`. At least one layer must be.
void set_turns(const std::vector<bool>& is_turned, ModelConfig& to);

/// Layers with a window, and after each `period` - 1 of them a full one.
std::vector<bool> windows_with_period(int64_t n_layers, int64_t period);
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
/// The same as a value of config.json: null if no layer has one.
nlohmann::json window_value(const ModelConfig& model);

/// The number whose reciprocal is `x`, to the last bit if there is one.
double reciprocal_of(double x);

/// Queries, keys and values that are one module there, three or one here. Their rows there are in `n_groups`
/// groups, each with its queries, keys and values; 1: all queries, then all keys, then all values.
void add_stacked_attention(const ModelConfig& model, const std::string& ours, const std::string& theirs,
                           int64_t n_groups, TensorRules& rules);
/// The output and the classifier "score" of a decoder. `table`: the module of its tokens' vectors.
void add_decoder_heads(const Experiment& experiment, const std::string& output, const std::string& table,
                       TensorRules& rules);
/// The names of a head for hidden tokens.
struct MaskedHeadNames {
  std::string transform, norm;  // modules
  std::string output;           // before "bias" and the module "decoder", which has the bias once more
  std::string table;            // the module of the tokens' vectors
};
void add_masked_head(const Experiment& experiment, const MaskedHeadNames& names, TensorRules& rules);
/// Gate and up projections that are one module there, two or one here.
void add_stacked_gate(const std::string& ours, const std::string& theirs, TensorRules& rules);

}  // namespace zoo
