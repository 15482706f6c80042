#pragma once
// Directories in Hugging Face's form and GGUF files to runs, and back.

#include <filesystem>
#include <optional>
#include <string>

#include "interop/foreign_export.h"

namespace zoo {

struct ImportedRun {
  std::string model_type;  // of config.json
  std::string task;
  int64_t n_tensors = 0, n_parameters = 0;
  int64_t n_adapters = 0;  // that were added to matrices
};

/// Makes the new run `run_dir` from what is_foreign(). The weights keep the types in which
/// they are stored. Throws CheckpointError as open_foreign(); UsageError if `dir` is a run already or
/// `run_dir` exists; SystemError.
/// `base`: of an adapter, which is added to it, see open_foreign_source().
ImportedRun import_run(const std::filesystem::path& dir, const std::filesystem::path& run_dir,
                       const std::filesystem::path& base = {});

/// The part of a run that an export writes.
enum class ExportedPart {
  model,    // all weights, with adapters merged into them
  adapter,  // the adapters of training.lora and what else the run has trained
};

struct ExportOptions {
  std::optional<ExportedType> type = {};  // default: as they are stored
  ExportedPart part = ExportedPart::model;
  std::filesystem::path base = {};  // of an adapter of PEFT in place of a run
};

/// Writes the weights and the vocabulary of a run or of a foreign directory to a new foreign directory, or to
/// a new GGUF file if the name ends in .gguf; or the adapters of a run to a new directory for PEFT, whose
/// base is what `init_from` names. Returns its model_type or its architecture. Throws as export_foreign(),
/// export_adapter(), export_gguf() and open_stored_model(); UsageError for adapters that are not there.
std::string export_run(const std::filesystem::path& run_dir, const std::filesystem::path& to,
                       const ExportOptions& options = {});

}  // namespace zoo
