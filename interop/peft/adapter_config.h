#pragma once
// adapter_config.json of the library PEFT (https://github.com/huggingface/peft, 0.21): adapters of LoRA.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "interop/families/foreign_config.h"
#include "interop/peft/adapted_modules.h"

namespace zoo {

struct AdapterConfig {
  std::string base;        // base_model_name_or_path; empty if there is none
  std::string task_type;   // empty if there is none
  std::string base_class;  // of transformers, written where there is no task_type; empty likewise
  int64_t rank = 8;
  double alpha = 8;
  std::map<std::string, int64_t> ranks;  // rank_pattern: of modules whose names end so
  std::map<std::string, double> alphas;  // alpha_pattern
  bool is_rank_stabilized = false;       // use_rslora (Kalajdzievski 2023): alpha / √rank
  bool is_decomposed = false;            // use_dora (Liu et al. 2024)
  AdaptedModules modules;                // adapters of others are left out, as PEFT does

  /// The rank of the adapter of a module: "model.layers.0.self_attn.q_proj".
  int64_t rank_of(std::string_view module) const;
  /// The factor of its output.
  double scale_of(std::string_view module) const;
};

/// Throws CheckpointError for other kinds of adapters than LoRA, and for what they do not compute here.
AdapterConfig read_adapter_config(ForeignConfig config);

}  // namespace zoo
