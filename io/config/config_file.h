#pragma once
// From YAML files to typed configurations and back. An error names file, line and column, what is wrong and
// the nearest key that would have been right.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/config/describe.h"

namespace zoo {

struct ConfigNode;  // a YAML tree in which every node knows the file, line and column that it came from

/// A YAML file with its `extends` chain merged in and its `--set` overrides applied. Groups are merged key by
/// key; lists and scalars, null included, replace.
class ConfigFile {
 public:
  /// Reads `path`. `extends: other.yaml` or a list of files (relative to the file that says it) is read
  /// first; later ones win, and this file's keys win over all. Each override is `dotted.key=value`, the value
  /// written as in YAML. Throws ConfigError.
  static ConfigFile load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
  /// The same from text; `name` stands for the file in messages.
  static ConfigFile parse(std::string_view text, std::string_view name,
                          const std::vector<std::string>& overrides = {});

  /// The same from a tree that was put together otherwise.
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

  /// Raises a ConfigError "place: key problem" about `key` (dotted). The place is where the key was set, or
  /// else the nearest group around it, or else the file. A problem that begins with the key is not prefixed
  /// by it again.
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;
  /// Whether the file or an override sets `key` (dotted) to something other than null.
  bool sets(std::string_view key) const;
  const std::string& name() const { return name_; }

 private:
  ConfigFile(std::string name, ConfigNode root, const std::vector<std::string>& overrides);
  std::unique_ptr<ConfigVisitor> make_reader() const;
  void finish(const ConfigVisitor& reader) const;

  std::string name_;
  std::shared_ptr<const ConfigNode> root_;
};

namespace detail {
/// A visitor that writes what it sees.
class ConfigText : public ConfigVisitor {
 public:
  virtual std::string text() const = 0;
};
std::unique_ptr<ConfigText> make_dumper();
std::unique_ptr<ConfigText> make_reference_writer();
}  // namespace detail

/// Every key with its value as YAML; reading it back gives the same configuration to the last bit. Absent
/// optionals are written as null.
template <class Config>
std::string dump_config(Config config) {
  const auto dumper = detail::make_dumper();
  describe(*dumper, config);
  return dumper->text();
}

/// Every key with its type, default and meaning as annotated YAML: the output of `zoo config`.
template <class Config>
std::string config_reference(Config config = {}) {
  const auto writer = detail::make_reference_writer();
  describe(*writer, config);
  return writer->text();
}

/// How a check that looks at several keys reports what it found: key (dotted), problem.
using Complain = std::function<void(std::string_view key, std::string_view problem)>;

}  // namespace zoo
