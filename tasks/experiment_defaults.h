#pragma once
// What the keys are that a configuration does not set.

#include <filesystem>
#include <optional>

#include "io/config/config_file.h"
#include "tasks/experiment.h"

namespace zoo {

/// The directory that `init_from` names; nullopt if it is not set or leads to no run.
std::optional<std::filesystem::path> find_source(const Experiment& experiment);

/// `defaults` with the values for the keys that `file` does not set. A run that `init_from` names gives the
/// keys of model, of data.tokenizer, and of its task: those of `task`, unless `file` names another one, the
/// lengths of sequences, and the sizes of images. Otherwise the model family gives its own
/// (ModelFamily::set_defaults). Throws ConfigError as ConfigFile::read().
Experiment defaults_for(const ConfigFile& file, Experiment defaults);

}  // namespace zoo
