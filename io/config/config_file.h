#pragma once
// From YAML files to typed configurations and back. An error names the file, line and column, the problem,
// and the nearest valid key.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/config/describe.h"

namespace zoo {

struct ConfigNode;  // a YAML tree whose nodes record their file, line and column

/// A YAML file with its `extends` chain merged in and its `--set` overrides applied. Groups are merged key by
/// key. A list or scalar, including null, replaces the earlier value.
class ConfigFile {
 public:
  /// Reads `path`. The files that its `extends` names (one or a list; found by find_config()) are read first.
  /// Later files win, and this file's own keys win over all of them. `name` at the top is not inherited. Each
  /// override is `dotted.key=value`, with the value written as in YAML. Throws ConfigError.
  static ConfigFile load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
  /// Reads the configuration of a run, which is complete: it may not extend others. The run may come from a
  /// stranger, so links are not followed. Throws ConfigError.
  static ConfigFile load_complete(const std::filesystem::path& path);
  /// As load(), from text. Messages use `name` as the name of the file.
  static ConfigFile parse(std::string_view text, std::string_view name,
                          const std::vector<std::string>& overrides = {});
  /// As parse(), for a text that the program has made: messages have no line of it, because the user has not
  /// got it.
  static ConfigFile parse_made(std::string_view text, std::string_view name,
                               const std::vector<std::string>& overrides = {});

  /// The same from a tree that the caller built.
  static ConfigFile from_tree(std::string name, ConfigNode root,
                              const std::vector<std::string>& overrides = {});

  /// Fills `config` through its describe(). Unknown keys, wrong types and values out of range throw
  /// ConfigError.
  template <class Config>
  void read(Config& config) const {
    const auto reader = make_reader();
    describe(*reader, config);
    finish(*reader);
  }

  /// Throws a ConfigError "place: key problem" about `key` (dotted). The place is where the key was set, or
  /// else the nearest group around it, or else the file. If the problem begins with the key, the key is not
  /// repeated.
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;
  /// Whether the file or an override sets `key` (dotted) to something other than null.
  bool sets(std::string_view key) const;
  /// The same for a single value, not a group, and a file that this one extends does not count.
  bool sets_itself(std::string_view key) const;
  const std::string& name() const { return name_; }

 private:
  ConfigFile(std::string name, ConfigNode root, const std::vector<std::string>& overrides);
  std::unique_ptr<ConfigVisitor> make_reader() const;
  void finish(const ConfigVisitor& reader) const;

  std::string name_;
  std::shared_ptr<const ConfigNode> root_;
};

namespace detail {
/// A visitor that writes the configuration as text.
class ConfigText : public ConfigVisitor {
 public:
  virtual std::string text() const = 0;
};
std::unique_ptr<ConfigText> make_dumper();
std::unique_ptr<ConfigText> make_reference_writer();
}  // namespace detail

/// Every key with its value as YAML; reading it back gives the same configuration to the last bit. Absent
/// optionals are written as null. Keys of other tasks and families are left out (ConfigVisitor::only_for).
template <class Config>
std::string dump_config(Config config) {
  const auto dumper = detail::make_dumper();
  describe(*dumper, config);
  return dumper->text();
}

/// Every key with its type, default and meaning, as annotated YAML: the output of `zoo config`.
template <class Config>
std::string config_reference(Config config) {
  const auto writer = detail::make_reference_writer();
  describe(*writer, config);
  return writer->text();
}
template <class Config>
std::string config_reference() {
  Config defaults;
  return config_reference(std::move(defaults));
}

/// Takes a key (dotted) and its problem from a check that looks at several keys.
using Complain = std::function<void(std::string_view key, std::string_view problem)>;

/// Passes complaints about KEY on to `complain` as complaints about PREFIX.KEY. `complain` must outlive it.
Complain complain_under(std::string prefix, const Complain& complain);

}  // namespace zoo
