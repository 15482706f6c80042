#pragma once
// Writes what a run with adapters (training.lora) has trained as an adapter of PEFT.

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/tensor_rules.h"
#include "io/safetensors.h"
#include "models/trained_adapters.h"

namespace zoo {

/// The weights that a run has trained while its base was frozen.
struct TrainedAdapter {
  std::string base;                     // base_model_name_or_path
  double dropout = 0;                   // of the adapters' inputs
  std::vector<MatrixAdapter> adapters;  // by our names
  std::vector<std::string> trained;     // our other parameters that were trained
  /// All tensors of the model by our names, with the adapters in them.
  std::shared_ptr<const TensorSource> merged;
};

/// The class of transformers that the base is opened with.
struct AdaptedClass {
  std::string name;       // "LlamaForCausalLM"
  std::string peft_task;  // "CAUSAL_LM"; empty if PEFT has no name for its task
  ForeignNames names = ForeignNames::with_prefix;
};

/// adapter_model.safetensors and adapter_config.json.
struct AdapterFiles {
  TensorMap tensors;
  nlohmann::json config;
};

/// Maps that are one matrix there, such as queries, keys and values of GPT-2, get one adapter, whose rank is
/// the sum of theirs. What was trained without adapters becomes modules_to_save: whole modules, with the
/// adapters that are in them merged. Throws ConfigError for what PEFT cannot express.
AdapterFiles adapter_files(const TrainedAdapter& trained, const TensorMapping& mapping,
                           const AdaptedClass& adapted);

}  // namespace zoo
