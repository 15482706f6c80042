#include "interop/peft/adapter_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

/// The value of the first key that is the module's name or the end of it, from a dot on.
template <class Value>
Value value_of(std::string_view module, const std::map<std::string, Value>& patterns, Value usual) {
  std::optional<Value> found;
  for (const auto& [pattern, value] : patterns) {
    if (module != pattern && !module.ends_with("." + pattern)) continue;
    // PEFT takes the first one in the order of the file.
    if (found && *found != value) {
      throw CheckpointError(fmt::format(
          "adapter_config.json: two patterns give other values for {}: keep one", excerpt(module)));
    }
    found = value;
  }
  return found.value_or(usual);
}

/// The keys are expressions, of which only plain names are read: others could mean anything.
template <class Value>
std::map<std::string, Value> read_pattern(ForeignConfig& from, std::string_view key) {
  std::map<std::string, Value> patterns;
  auto object = from.object(key);
  if (!object) return patterns;
  for (const auto& [name, value] : object->json().items()) {
    const bool is_plain = std::ranges::all_of(
        name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
    if (!is_plain || name.empty()) from.fail(key, "only names of modules and their ends are supported");
    if constexpr (std::is_integral_v<Value>) {
      patterns[name] = object->integer(name);
    } else {
      patterns[name] = object->number(name);
    }
  }
  return patterns;
}

/// Ways to begin that leave the base as it is. Others (PiSSA, OLoRA, LoftQ, CorDA) change its weights.
void check_initialization(ForeignConfig& from) {
  from.ignore({"init_lora_weights"});
  const auto found = from.json().find("init_lora_weights");
  if (found == from.json().end() || found->is_boolean() || found->is_null()) return;
  for (const char* const known : {"gaussian", "eva", "orthogonal"})
    if (*found == known) return;
  from.fail("init_lora_weights",
            "such an adapter belongs to changed weights of its base; in Python, save it with "
            "path_initial_model_for_weight_conversion");
}

}  // namespace

int64_t AdapterConfig::rank_of(std::string_view module) const { return value_of(module, ranks, rank); }

double AdapterConfig::scale_of(std::string_view module) const {
  const auto r = static_cast<double>(rank_of(module));
  return value_of(module, alphas, alpha) / (is_rank_stabilized ? std::sqrt(r) : r);
}

AdapterConfig read_adapter_config(ForeignConfig from) {
  from.require("peft_type", "LORA");
  AdapterConfig config;
  config.base = from.optional_text("base_model_name_or_path").value_or("");
  config.task_type = from.optional_text("task_type").value_or("");
  if (auto mapping = from.object("auto_mapping")) {
    config.base_class = mapping->optional_text("base_model_class").value_or("");
    mapping->ignore({"parent_library", "unsloth_fixed"});
    mapping->finish();
  }
  config.rank = from.integer("r", config.rank);
  config.alpha = from.number("lora_alpha", config.alpha);
  config.ranks = read_pattern<int64_t>(from, "rank_pattern");
  config.alphas = read_pattern<double>(from, "alpha_pattern");
  config.is_rank_stabilized = from.flag("use_rslora", false);
  config.is_decomposed = from.flag("use_dora", false);
  if (config.rank < 1) from.fail("r", "expected a positive number");
  check_initialization(from);
  config.modules = AdaptedModules(from);
  // The tensors and the base tell which modules are saved whole and which are transposed. The
  // first versions of PEFT wrote merge_weights, which says when the sum is computed.
  from.ignore({"revision", "inference_mode", "peft_version", "fan_in_fan_out", "bias", "lora_dropout",
               "merge_weights", "loftq_config", "eva_config", "corda_config", "megatron_config",
               "megatron_core", "runtime_config", "qalora_group_size", "lora_ga_config"});
  from.require("lora_bias", false);
  from.require("use_qalora", false);
  from.require("ensure_weight_tying", false);
  for (const char* const key : {"layer_replication", "trainable_token_indices", "target_parameters",
                                "arrow_config", "alora_invocation_tokens", "use_bdlora", "kasa_config",
                                "monteclora_config", "velora_config", "enable_lora"}) {
    if (from.has(key) && !from.json()[key].empty()) from.fail(key, "not supported");
    from.ignore({key});
  }
  from.finish();
  return config;
}

}  // namespace zoo
