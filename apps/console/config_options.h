#pragma once
// Options of the command line that are keys of a configuration.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/config/given_values.h"

namespace CLI {
class App;
}

namespace zoo {

/// The options of one command that are keys of a struct with a describe(): their values, and their flags.
struct ConfigOptions {
  struct Flag {
    std::string key, name;  // "top_k", "--top-k"
    OptionUse use;
  };
  GivenValues given = {};
  std::vector<Flag> flags = {};  // in the order of the keys

  /// The names of flags that were given, of one use or of all.
  std::vector<std::string> given_flags(std::optional<OptionUse> use = std::nullopt) const;
};

namespace detail {
/// Declares an option for each key that it visits. `command` and `options` must live as long as the command.
std::unique_ptr<ConfigVisitor> make_option_adder(CLI::App& command, ConfigOptions& options);
}  // namespace detail

/// Declares an option for each key of `Struct` that has a flag (FieldInfo::elsewhere), with its meaning and
/// its limits.
template <class Struct>
void add_config_options(CLI::App& command, ConfigOptions& options) {
  Struct defaults;
  describe(*detail::make_option_adder(command, options), defaults);
}

}  // namespace zoo
