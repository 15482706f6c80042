#pragma once
// Configurations from files. A file need not set every key: another file that it extends, the run or the
// foreign directory that `init_from` names, and the model's family have values for the others.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "tasks/experiment.h"

namespace zoo {

/// Reads and checks a configuration; each override is `dotted.key=value`. `path` is a file, or the name of a
/// configuration that comes with the program (io/config/find_config.h). Without a key `name` of its own the
/// experiment has the name of the file: "gpt2" for configs/models/gpt2.yaml. Paths of files and runs that are
/// there are pinned (io/config/config_path.h). Throws ConfigError.
Experiment load_experiment(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
Experiment parse_experiment(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides = {});

/// Keys that `file` does not set are as in `defaults`, except for these: a model that `init_from` names gives
/// the keys of model, of data.tokenizer, and of its task: those of `task`, unless `file` names another one,
/// the lengths of sequences, and the sizes of images. A model that can be within one of the family that
/// `file` names gives the keys of the inner model alone (ModelFamily::take_inner). Otherwise the model family
/// gives its own (ModelFamily::set_defaults). Throws ConfigError.
Experiment read_experiment(const ConfigFile& file, Experiment defaults);

/// The directory that `init_from` names: a run, or a model in Hugging Face's form. nullopt if it is not set
/// or leads to neither.
std::optional<std::filesystem::path> find_source(const Experiment& experiment);

/// The configuration of the model that `init_from` names. Throws ConfigError.
Experiment experiment_of_source(const ConfigPath& init_from);

}  // namespace zoo
