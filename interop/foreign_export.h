#pragma once
// Writes a model as a directory that Hugging Face transformers opens.

#include <filesystem>
#include <memory>
#include <optional>

#include "interop/model_card.h"
#include "interop/peft/adapter_export.h"
#include "io/tensor_source.h"
#include "tasks/task.h"

namespace zoo {

/// The types in which weights can be exported; q8_0 and q4_0 (8 or 4 bits with a scale for each 32 numbers)
/// only to GGUF.
enum class ExportedType { fp32, fp16, bf16, q8_0, q4_0 };
constexpr auto config_names(ExportedType) {
  return std::to_array<std::string_view>({"fp32", "fp16", "bf16", "q8_0", "q4_0"});
}

/// Writes config.json, model.safetensors, generation_config.json, the tokenizer's files and README.md, with
/// the `figures` of the run if there are any, to the new directory `dir`. A model that came from such a
/// directory gets back the keys and files that it came with. `tensors` are those of the task's model, by our
/// names. Without a `type` they keep theirs. Returns the family's model_type. Throws ConfigError if no family
/// computes what this model does (says for the nearest family which key differs), UsageError if `dir` exists,
/// CheckpointError as the tensors do, SystemError.
std::string export_foreign(const std::filesystem::path& dir, const Task& task,
                           const std::shared_ptr<const TensorSource>& tensors,
                           std::optional<ExportedType> type = std::nullopt,
                           const std::optional<TrainingFigures>& figures = std::nullopt);

/// Writes what a run with adapters has trained as an adapter of PEFT: adapter_config.json and
/// adapter_model.safetensors. `trained.base` may be anything that from_pretrained() takes. Returns the
/// family's model_type. Throws as export_foreign(); ConfigError also for what PEFT cannot express.
std::string export_adapter(const std::filesystem::path& dir, const Task& task, const TrainedAdapter& trained,
                           std::optional<ExportedType> type = std::nullopt);

}  // namespace zoo
