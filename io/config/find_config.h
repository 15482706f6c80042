#pragma once
// Finds configurations by name, also those that come with the program.

#include <filesystem>
#include <optional>
#include <vector>

#include "io/config/config_path.h"

namespace zoo {

/// The folder of the configurations that come with the program: $ZOO_CONFIGS if that is set, else
/// ../share/transformer-zoo/configs relative to the folder of the running program (an installed program),
/// else share/transformer-zoo/configs in that folder (a build tree), else the one that is installed with the
/// library that a program uses. Nothing if there is no such folder.
std::optional<std::filesystem::path> shipped_configs();

/// The configurations in shipped_configs() and its subfolders, sorted. Empty if there is no such folder.
std::vector<std::filesystem::path> list_shipped_configs();

/// The file of the configuration `name`. The first of these exists:
///   1. NAME, then NAME.yaml, at each place in which a ConfigPath is looked for
///   2. if NAME is relative and does not begin with "." or "..": the same in shipped_configs(), where
///      "configs/" in front of NAME is left out
///   3. if NAME is a single name: NAME or NAME.yaml in any subfolder of shipped_configs()
/// "gpt2" is therefore configs/models/gpt2.yaml. Throws ConfigError, which says where it looked.
std::filesystem::path find_config(const ConfigPath& name);

}  // namespace zoo
